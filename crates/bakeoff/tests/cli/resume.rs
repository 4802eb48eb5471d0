//! Runs that were killed, interrupted or are made larger.

use crate::support::Workplace;
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

fn workplace(trials: u32, count: usize) -> Workplace {
    Workplace::with_suite(&suite(trials)).write("cases.jsonl", cases(count))
}

/// A summary without what may differ: times, and the run's own name.
fn aggregates(place: &Workplace) -> String {
    let mut summary = place.summary();
    let fields = summary.as_object_mut().unwrap();
    fields.remove("stats");
    fields.remove("run_id");
    fields.remove("run_dir");
    summary.to_string()
}

/// How often each trial is in the journal with a verdict.
fn judged(place: &Workplace) -> BTreeMap<String, usize> {
    let mut judged = BTreeMap::new();
    for trial in place.trials() {
        assert_ne!(trial["status"], "error", "{trial}");
        *judged.entry(trial["key"].to_string()).or_default() += 1;
    }
    judged
}

/// The journal of the only run, as soon as there is one.
fn journal(place: &Workplace) -> Option<PathBuf> {
    let runs = std::fs::read_dir(place.path().join("runs")).ok()?;
    let journal = |entry: std::io::Result<std::fs::DirEntry>| {
        Some(entry.ok()?.path().join("journal.jsonl")).filter(|path| path.is_file())
    };
    runs.filter_map(journal).next()
}

/// Starts a run and kills it as soon as its journal has so many bytes. Returns whether it was still
/// running.
fn kill_at(place: &Workplace, arguments: &[&str], bytes: u64) -> bool {
    let mut child =
        place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        let length = journal(place).and_then(|path| Some(path.metadata().ok()?.len()));
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
fn a_killed_run_goes_on_to_the_same_end() {
    let whole = workplace(10, 100);
    let undisturbed = whole.run(&["run", "--seed", "7", "--quiet"]);
    let expected = aggregates(&whole);
    assert_eq!(judged(&whole).len(), TRIALS);
    let length = journal(&whole).unwrap().metadata().unwrap().len();
    let mut killed = 0;
    // Moments that look random and are the same each time.
    for number in 0..25_u64 {
        let share = (number * 7919 + 13) % 1000;
        let place = workplace(10, 100);
        let arguments = ["run", "--seed", "7", "--quiet"];
        killed += u32::from(kill_at(&place, &arguments, length * share / 1000));
        let resumed = place.run(&["run", "--resume", "last", "--quiet"]);
        assert_eq!(resumed.code, undisturbed.code, "{}", resumed.shown());
        assert_eq!(aggregates(&place), expected, "killed after {share} ‰");
        let judged = judged(&place);
        assert_eq!(judged.len(), TRIALS, "killed after {share} ‰");
        assert!(judged.values().all(|count| *count == 1), "nothing is made twice");
        assert!(!place.run_folder().join("work").exists());
    }
    assert!(killed >= 20, "only {killed} were still running");
}

#[test]
fn a_torn_last_line_is_cut_and_a_damaged_one_in_the_middle_refused() {
    let place = workplace(2, 5);
    place.run(&["run", "--quiet"]);
    let expected = aggregates(&place);
    let path = journal(&place).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // As if the process had died while it wrote the eighth line.
    std::fs::write(&path, format!("{}\n{}", lines[..7].join("\n"), &lines[7][..30])).unwrap();
    let resumed = place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(resumed.code, 1, "{}", resumed.shown());
    assert_eq!(aggregates(&place), expected);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[3] = "{\"event\": \"trial_fin";
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let refused = place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(refused.code, 4, "{}", refused.shown());
    assert!(refused.stderr.contains("journal.jsonl:4: damaged line"), "{}", refused.stderr);
}

/// Edits a file of a place.
fn edit(place: &Workplace, name: &str, old: &str, new: &str) {
    let path = place.path().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{old} in {name}");
    std::fs::write(path, text.replace(old, new)).unwrap();
}

fn refusal(place: &Workplace, arguments: &[&str]) -> String {
    let words = [&["run", "--resume", "last", "--quiet"], arguments].concat();
    let refused = place.run(&words);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    // The run's name is another each time.
    let (_, rest) = refused.stderr.split_once("killed-").unwrap_or(("", &refused.stderr));
    rest.split_once(' ').map_or(rest, |(_, rest)| rest).to_owned()
}

#[test]
fn a_run_does_not_go_on_with_another_plan() {
    let place = workplace(2, 5);
    place.run(&["run", "--quiet"]);
    insta::assert_snapshot!(refusal(&place, &["--trials", "3"]), @r"
    3 trials instead of 2
      hint: extend the run with `--extend`
    ");
    insta::assert_snapshot!(refusal(&place, &["--trials", "1", "--seed", "4"]), @r"
    the plan has changed: the number of trials was 2 and is 1; the seed was 0 and is 4
      hint: start a new run, or check its outputs again with `bakeoff score`
    ");
    edit(&place, "bakeoff.toml", "good?", "bad?");
    edit(&place, "bakeoff.toml", "value = \"ok\"", "value = \"okay\"");
    edit(&place, "cases.jsonl", "t3", "t33");
    insta::assert_snapshot!(refusal(&place, &["--extend"]), @r"
    the plan has changed: cases have changed, or new cases are not at the end; check 1 (equals) has changed; target `one` has changed
      hint: start a new run, or check its outputs again with `bakeoff score`
    ");
}

#[test]
fn a_program_that_was_changed_is_another_target() {
    let place = workplace(1, 2).write("agent.sh", "echo ok");
    edit(&place, "bakeoff.toml", "model = \"sim/pass-0.6\"", "command = [\"sh\", \"agent.sh\"]");
    place.run(&["run", "--quiet"]);
    let place = place.write("agent.sh", "echo fine");
    let refused = refusal(&place, &[]);
    assert!(refused.contains("target `other` has changed"), "{refused}");
    // What it works on is a part of it.
    let place = workplace(1, 2).write("agent.sh", "echo ok");
    std::fs::create_dir(place.path().join("box")).unwrap();
    let place = place.write("box/file", "one");
    let command = "command = [\"sh\", \"agent.sh\"]\nworkspace = \"box\"";
    edit(&place, "bakeoff.toml", "model = \"sim/pass-0.6\"", command);
    place.run(&["run", "--quiet"]);
    let again = place.run(&["run", "--resume", "last", "--quiet"]);
    assert_ne!(again.code, 2, "{}", again.shown());
    let place = place.write("box/file", "two");
    let refused = refusal(&place, &[]);
    assert!(refused.contains("target `other` has changed"), "{refused}");
}

#[test]
fn an_extended_run_is_what_a_larger_one_would_have_been() {
    let place = workplace(2, 5);
    place.run(&["run", "--quiet"]);
    std::fs::write(place.path().join("cases.jsonl"), cases(8)).unwrap();
    edit(&place, "bakeoff.toml", "trials = 2", "trials = 4");
    let extended = place.run(&["run", "--resume", "last", "--extend", "--quiet"]);
    assert_eq!(extended.code, 1, "{}", extended.shown());
    let whole = workplace(4, 8);
    whole.run(&["run", "--quiet"]);
    assert_eq!(aggregates(&place), aggregates(&whole));
    assert!(judged(&place).values().all(|count| *count == 1), "what was there is not made again");
    // One that is whole has nothing left to do.
    let again = place.run(&["run", "--resume", "last"]);
    assert_eq!(again.code, 1, "{}", again.shown());
    assert_eq!(judged(&place).len(), 64);
}

#[test]
fn a_run_with_one_target_has_no_room_for_another() {
    let place = workplace(1, 2);
    place.run(&["run", "--target", "one", "--quiet"]);
    let arguments = ["--target", "one", "--target", "other", "--extend"];
    insta::assert_snapshot!(refusal(&place, &arguments), @r"
    has a single target, and its folder layout allows no other
      hint: start a new run with all targets
    ");
}

#[test]
fn what_failed_before_is_told_again_and_half_files_are_gone() {
    let place = workplace(1, 3);
    edit(&place, "bakeoff.toml", "pass-0.6", "pass-0");
    edit(&place, "bakeoff.toml", "artifacts = \"none\"", "artifacts = \"failures\"");
    place.run(&["run", "--quiet"]);
    let half = place.run_folder().join("other/c1/trial-1/result.json.7-1.tmp");
    std::fs::write(&half, "{").unwrap();
    let resumed = place.run(&["run", "--resume", "last"]);
    assert!(resumed.stdout.contains("failed  other / c1 (trial 1)"), "{}", resumed.stdout);
    assert!(!half.exists());
}

#[test]
fn errors_are_made_again() {
    let place = workplace(1, 3);
    edit(&place, "bakeoff.toml", "sim/pass-0.6", "sim/fault-400");
    let broken = place.run(&["run", "--quiet"]);
    assert_eq!(broken.code, 3, "{}", broken.shown());
    let errors = |place: &Workplace| place.summary()["targets"][1]["errors"].as_u64().unwrap();
    assert_eq!(errors(&place), 3);
    let before = place.trials().len();
    place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!((errors(&place), place.trials().len()), (3, before + 3));
}

#[test]
fn two_processes_do_not_work_on_one_run() {
    let place = workplace(1, 2);
    place.run(&["run", "--quiet"]);
    let file = std::fs::File::open(journal(&place).unwrap()).unwrap();
    file.lock().unwrap();
    let refused = place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(refused.code, 4, "{}", refused.shown());
    assert!(refused.stderr.contains("is being written by another process"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("CORRUPT"), "{}", refused.stderr);
}

#[test]
fn what_is_no_run_is_refused() {
    let place = workplace(1, 2);
    place.run(&["run", "--quiet"]);
    std::fs::write(place.run_folder().join("run.json"), "{}").unwrap();
    let refused = place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    let value: Value = serde_json::json!({"schema_version": 99});
    std::fs::write(place.run_folder().join("run.json"), value.to_string()).unwrap();
    let refused = place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    assert!(refused.stderr.contains("newer version of Bakeoff"), "{}", refused.stderr);
}
