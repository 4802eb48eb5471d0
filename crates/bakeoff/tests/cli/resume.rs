//! Resuming killed, interrupted and extended runs.

use crate::support::TestDir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

const TRIALS: usize = 2000;

fn suite(trials: u32) -> String {
    format!(
        r#"
[suite]
name = "killed"
trials = {trials}
threshold = 0.7
parallel = 40
artifacts = "none"
[models.priced]
provider = "sim"
model = "pass-0.8"
prices = {{ input = 1.0, output = 2.0 }}
[[target]]
name = "one"
model = "priced"
prompt = "Is {{{{ thing }}}} good?"
[[target]]
name = "other"
model = "sim/pass-0.6"
prompt = "Is {{{{ thing }}}} bad?"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "ok"
"#
    )
}

fn cases(count: usize) -> String {
    (1..=count).map(|n| format!("{{\"id\": \"c{n}\", \"thing\": \"t{n}\"}}\n")).collect()
}

fn test_dir(trials: u32, count: usize) -> TestDir {
    TestDir::with_suite(&suite(trials)).write("cases.jsonl", cases(count))
}

/// Returns the summary without times and the run id.
fn aggregates(dir: &TestDir) -> String {
    let mut summary = dir.summary();
    let fields = summary.as_object_mut().unwrap();
    fields.remove("stats");
    fields.remove("run_id");
    fields.remove("run_dir");
    summary.to_string()
}

/// Counts the verdicts of each trial in the journal.
fn verdict_counts(dir: &TestDir) -> BTreeMap<String, usize> {
    let mut judged = BTreeMap::new();
    for trial in dir.trials() {
        assert_ne!(trial["status"], "error", "{trial}");
        *judged.entry(trial["key"].to_string()).or_default() += 1;
    }
    judged
}

/// Returns the journal of the only run, if it exists.
fn journal(dir: &TestDir) -> Option<PathBuf> {
    let runs = std::fs::read_dir(dir.path().join("runs")).ok()?;
    let journal = |entry: std::io::Result<std::fs::DirEntry>| {
        Some(entry.ok()?.path().join("journal.jsonl")).filter(|path| path.is_file())
    };
    runs.filter_map(journal).next()
}

/// Starts a run and kills it once its journal has this many bytes. Returns whether it was still running.
fn kill_at(dir: &TestDir, arguments: &[&str], bytes: u64) -> bool {
    let mut child =
        dir.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        let length = journal(dir).and_then(|path| Some(path.metadata().ok()?.len()));
        if length.unwrap_or(0) >= bytes {
            break;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    was_running
}

#[test]
fn killed_run_resumes_to_the_same_result() {
    let whole = test_dir(10, 100);
    let undisturbed = whole.run(&["run", "--seed", "7", "--quiet"]);
    let expected = aggregates(&whole);
    assert_eq!(verdict_counts(&whole).len(), TRIALS);
    let length = journal(&whole).unwrap().metadata().unwrap().len();
    let mut killed = 0;
    // Pseudo-random but reproducible moments.
    for number in 0..25_u64 {
        let share = (number * 7919 + 13) % 1000;
        let dir = test_dir(10, 100);
        let arguments = ["run", "--seed", "7", "--quiet"];
        killed += u32::from(kill_at(&dir, &arguments, length * share / 1000));
        let resumed = dir.run(&["run", "--resume", "last", "--quiet"]);
        assert_eq!(resumed.code, undisturbed.code, "{}", resumed.transcript());
        assert_eq!(aggregates(&dir), expected, "killed after {share} ‰");
        let judged = verdict_counts(&dir);
        assert_eq!(judged.len(), TRIALS, "killed after {share} ‰");
        assert!(judged.values().all(|count| *count == 1), "no trial is repeated");
        assert!(!dir.left_workspaces());
    }
    assert!(killed >= 20, "only {killed} were still running");
}

#[test]
fn torn_last_line_is_dropped() {
    let dir = test_dir(2, 5);
    dir.run(&["run", "--quiet"]);
    let expected = aggregates(&dir);
    let path = journal(&dir).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The state after a kill during the write of the eighth line.
    std::fs::write(&path, format!("{}\n{}", lines[..7].join("\n"), &lines[7][..30])).unwrap();
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert_eq!(resumed.code, 1, "{}", resumed.transcript());
    assert_eq!(aggregates(&dir), expected);
    let warning = "journal.jsonl: skipped the incomplete last line; ";
    assert!(resumed.stderr.contains(warning), "{}", resumed.stderr);
}

/// Replaces text in a file.
fn edit(dir: &TestDir, name: &str, old: &str, new: &str) {
    let path = dir.path().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{old} in {name}");
    std::fs::write(path, text.replace(old, new)).unwrap();
}

fn rejection(dir: &TestDir, arguments: &[&str]) -> String {
    let words = [&["run", "--resume", "last", "--quiet"], arguments].concat();
    let rejected = dir.run(&words);
    assert_eq!(rejected.code, 2, "{}", rejected.transcript());
    // The run id differs each time.
    let (_, rest) = rejected.stderr.split_once("killed-").unwrap_or(("", &rejected.stderr));
    rest.split_once(' ').map_or(rest, |(_, rest)| rest).to_owned()
}

#[test]
fn resume_with_a_different_plan_is_rejected() {
    let dir = test_dir(2, 5);
    dir.run(&["run", "--quiet"]);
    insta::assert_snapshot!(rejection(&dir, &["--trials", "3"]), @"
    3 trials instead of 2
      hint: extend the run with `--extend`
    ");
    insta::assert_snapshot!(rejection(&dir, &["--trials", "1", "--seed", "4"]), @"
    the plan has changed: the number of trials was 2 and is 1; the seed was 0 and is 4
      hint: start a new run, or check its outputs again with `bakeoff score`
    ");
    edit(&dir, "bakeoff.toml", "good?", "bad?");
    edit(&dir, "bakeoff.toml", "value = \"ok\"", "value = \"okay\"");
    edit(&dir, "cases.jsonl", "t3", "t33");
    insta::assert_snapshot!(rejection(&dir, &["--extend"]), @"
    the plan has changed: cases have changed, or new cases are not at the end; check 1 (equals) has changed; target `one` has changed
      hint: start a new run, or check its outputs again with `bakeoff score`
    ");
}

#[test]
fn resume_with_a_changed_program_is_rejected() {
    let dir = test_dir(1, 2).write("agent.sh", "echo ok");
    edit(&dir, "bakeoff.toml", "model = \"sim/pass-0.6\"", "command = [\"sh\", \"agent.sh\"]");
    dir.run(&["run", "--quiet"]);
    let dir = dir.write("agent.sh", "echo fine");
    let rejected = rejection(&dir, &[]);
    assert!(rejected.contains("target `other` has changed"), "{rejected}");
    // The workspace is part of the target.
    let dir = test_dir(1, 2).write("agent.sh", "echo ok");
    std::fs::create_dir(dir.path().join("box")).unwrap();
    let dir = dir.write("box/file", "one");
    let command = "command = [\"sh\", \"agent.sh\"]\nworkspace = \"box\"";
    edit(&dir, "bakeoff.toml", "model = \"sim/pass-0.6\"", command);
    dir.run(&["run", "--quiet"]);
    let again = dir.run(&["run", "--resume", "last", "--quiet"]);
    assert_ne!(again.code, 2, "{}", again.transcript());
    let dir = dir.write("box/file", "two");
    let rejected = rejection(&dir, &[]);
    assert!(rejected.contains("target `other` has changed"), "{rejected}");
}

#[test]
fn extended_run_equals_a_larger_run() {
    let dir = test_dir(2, 5);
    dir.run(&["run", "--quiet"]);
    std::fs::write(dir.path().join("cases.jsonl"), cases(8)).unwrap();
    edit(&dir, "bakeoff.toml", "trials = 2", "trials = 4");
    let extended = dir.run(&["run", "--resume", "last", "--extend", "--quiet"]);
    assert_eq!(extended.code, 1, "{}", extended.transcript());
    let whole = test_dir(4, 8);
    whole.run(&["run", "--quiet"]);
    assert_eq!(aggregates(&dir), aggregates(&whole));
    assert!(
        verdict_counts(&dir).values().all(|count| *count == 1),
        "finished trials are not repeated"
    );
    // A complete run has nothing left to do.
    let again = dir.run(&["run", "--resume", "last"]);
    assert_eq!(again.code, 1, "{}", again.transcript());
    assert_eq!(verdict_counts(&dir).len(), 64);
}

#[test]
fn flat_run_cannot_be_extended_by_a_target() {
    let dir = test_dir(1, 2);
    dir.run(&["run", "--target", "one", "--quiet"]);
    let arguments = ["--target", "one", "--target", "other", "--extend"];
    insta::assert_snapshot!(rejection(&dir, &arguments), @"
    has a single target, and its folder layout allows no other
      hint: start a new run with all targets
    ");
}

#[test]
fn resume_prints_earlier_failures_and_removes_partial_files() {
    let dir = test_dir(1, 3);
    edit(&dir, "bakeoff.toml", "pass-0.6", "pass-0");
    edit(&dir, "bakeoff.toml", "artifacts = \"none\"", "artifacts = \"failures\"");
    dir.run(&["run", "--quiet"]);
    let half = dir.run_folder().join("other/c1/trial-1/result.json.7-1.tmp");
    std::fs::write(&half, "{").unwrap();
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert!(resumed.stdout.contains("failed  other / c1 (trial 1)"), "{}", resumed.stdout);
    assert!(!half.exists());
}

#[test]
fn resume_repeats_errored_trials() {
    let dir = test_dir(1, 3);
    edit(&dir, "bakeoff.toml", "sim/pass-0.6", "sim/fault-400");
    let broken = dir.run(&["run", "--quiet"]);
    assert_eq!(broken.code, 3, "{}", broken.transcript());
    let errors = |dir: &TestDir| dir.summary()["targets"][1]["errors"].as_u64().unwrap();
    assert_eq!(errors(&dir), 3);
    let before = dir.trials().len();
    dir.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!((errors(&dir), dir.trials().len()), (3, before + 3));
}

#[test]
fn run_is_locked_by_one_process() {
    let dir = test_dir(1, 2);
    dir.run(&["run", "--quiet"]);
    let file = std::fs::File::open(journal(&dir).unwrap()).unwrap();
    file.lock().unwrap();
    let rejected = dir.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(rejected.code, 4, "{}", rejected.transcript());
    assert!(rejected.stderr.contains("is being written by another process"), "{}", rejected.stderr);
    assert!(!rejected.stderr.contains("CORRUPT"), "{}", rejected.stderr);
}

#[test]
fn resume_of_an_invalid_run_is_rejected() {
    let dir = test_dir(1, 2);
    dir.run(&["run", "--quiet"]);
    std::fs::write(dir.run_folder().join("run.json"), "{}").unwrap();
    let rejected = dir.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(rejected.code, 2, "{}", rejected.transcript());
    let value: Value = serde_json::json!({"schema_version": 99});
    std::fs::write(dir.run_folder().join("run.json"), value.to_string()).unwrap();
    let rejected = dir.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(rejected.code, 2, "{}", rejected.transcript());
    assert!(rejected.stderr.contains("newer version of Bakeoff"), "{}", rejected.stderr);
}
