//! Resuming runs whose journal was damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::{Event, Summary};
use bakeoff_eval::{JOURNAL_FILE, Run, RunConfig, SUMMARY_FILE, Stopper};
use bakeoff_history::{PastRun, resume_state};
use bakeoff_suite::Suite;
use std::fs;
use std::path::{Path, PathBuf};

/// Two targets whose results depend on the seed, with several trials.
const SUITE: &str = r#"
[suite]
name = "damaged"
trials = 3
threshold = 0.4
artifacts = "none"
[[target]]
name = "one"
model = "sim/pass-0.6"
prompt = "{{ id }} {{ n }}"
[[target]]
name = "two"
model = "sim/pass-0.8"
prompt = "{{ id }} {{ n }}"
gate = false
[cases]
inline = [{ id = "a", n = 10 }, { id = "b", n = 20 }, { id = "c", n = 30 }, { id = "d", n = 40 }]
[[check]]
kind = "equals"
value = "ok"
"#;

const TRIALS: usize = 24;

/// Result of a run: its summary without figures that depend on the clock, and the messages about damage.
struct Outcome {
    targets: serde_json::Value,
    damage: Vec<String>,
    executed: Vec<String>,
    path: PathBuf,
}

async fn run(folder: &Path, resume: Option<&Path>) -> Outcome {
    let path = folder.join("bakeoff.toml");
    fs::write(&path, SUITE).unwrap();
    let suite = Suite::load(&path, &|_| None).unwrap();
    let mut run = Run::new(suite, RunConfig::new(folder.join("runs"))).unwrap();
    if let Some(path) = resume {
        let state = resume_state(&run, path, false).unwrap();
        run = run.resume_from(state);
    }
    let (mut damage, mut executed) = (Vec::new(), Vec::new());
    let mut listen = |event: &Event| match event {
        Event::Warning { code, message } if code == "EVAL_JOURNAL_DAMAGED" => {
            damage.push(message.clone());
        }
        Event::TrialFinished { result } => {
            let key = &result.key;
            executed.push(format!("{}/{}/{}", key.target, key.case, key.trial));
        }
        _ => {}
    };
    let finished = run.execute(&Stopper::default(), &mut listen).await.unwrap();
    let targets = without_stats(&finished.summary);
    Outcome { targets, damage, executed, path: finished.folder.path }
}

fn without_stats(summary: &Summary) -> serde_json::Value {
    fn remove(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.remove("stats");
                fields.values_mut().for_each(remove);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(remove),
            _ => {}
        }
    }
    let mut targets = serde_json::to_value(&summary.targets).unwrap();
    remove(&mut targets);
    targets
}

/// Pseudo-random numbers that are the same in each execution of the test (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

#[tokio::test(start_paused = true)]
async fn resume_restores_the_result_of_100_damaged_journals() {
    let folder = tempfile::tempdir().unwrap();
    let whole = run(folder.path(), None).await;
    assert_eq!(whole.executed.len(), TRIALS);
    let journal = fs::read(whole.path.join(JOURNAL_FILE)).unwrap();
    let mut numbers = Numbers(18);
    let mut repeated = 0;
    for number in 0..100 {
        let mut damaged = journal.clone();
        let places: Vec<usize> =
            (0..=numbers.below(5)).map(|_| numbers.below(journal.len())).collect();
        for place in &places {
            damaged[*place] = numbers.below(256) as u8;
        }
        let copy = whole.path.with_file_name(format!("damaged-{number}"));
        fs::create_dir(&copy).unwrap();
        fs::copy(whole.path.join("run.json"), copy.join("run.json")).unwrap();
        fs::write(copy.join(JOURNAL_FILE), &damaged).unwrap();
        let resumed = run(folder.path(), Some(&copy)).await;
        assert_eq!(resumed.targets, whole.targets, "{number}: {places:?}");
        // The message names all trials that run again.
        for trial in &resumed.executed {
            let is_named = resumed.damage.iter().any(|message| message.contains(trial));
            assert!(is_named, "{number}: {trial} in {:?}", resumed.damage);
        }
        assert_eq!(damaged == journal, resumed.damage.is_empty(), "{number}: {places:?}");
        repeated += resumed.executed.len();
        // The damage was repaired, so nothing runs again.
        let again = run(folder.path(), Some(&copy)).await;
        assert!(
            again.executed.is_empty() && again.damage.is_empty(),
            "{number}: {:?}",
            again.damage
        );
    }
    assert!(repeated > 100, "{repeated}");
}

#[tokio::test(start_paused = true)]
async fn damaged_lines_are_skipped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let whole = run(folder.path(), None).await;
    let path = whole.path.join(JOURNAL_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let changed = lines[4].replacen("\"trial\":", "\"trial\":1", 1);
    lines[4] = &changed;
    lines[7] = "{\"event\": \"trial_fin";
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let past = PastRun::open(&whole.path).unwrap();
    assert_eq!(past.damage().unwrap().lines, [5, 8]);
    assert_eq!(past.results().unwrap().filter_map(Result::ok).count(), TRIALS - 2);
    // The summary is intact, and without it the journal has the other results.
    let skipped = || -> Vec<u64> {
        past.summary().unwrap().targets.iter().map(|target| target.skipped).collect()
    };
    assert_eq!(skipped(), [0, 0]);
    fs::remove_file(whole.path.join(SUMMARY_FILE)).unwrap();
    assert_eq!(skipped().iter().sum::<u64>(), 2);
}
