//! Damaged, lost and moved files of runs.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::path::PathBuf;

const SUITE: &str = r#"
[suite]
name = "damaged"
trials = 2
threshold = 0.5
[[target]]
name = "one"
model = "sim/pass-0.6"
prompt = "{{ n }}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "ok"
"#;

/// Returns a directory with a finished run, and the output of its report.
fn finished() -> (TestDir, CommandOutput) {
    let cases: String = (0..6).map(|n| format!("{{\"id\": \"c{n}\", \"n\": {n}}}\n")).collect();
    let dir = TestDir::with_suite(SUITE).write("cases.jsonl", cases);
    let output = dir.run(&["run", "--quiet"]);
    assert!(output.code < 2, "{}", output.transcript());
    let report = dir.run(&["report"]);
    assert_eq!((report.code, report.stderr.as_str()), (0, ""), "{}", report.transcript());
    (dir, report)
}

/// Damages the line of the first finished trial. Returns the number of the line and the name of the trial.
fn damage(dir: &TestDir) -> (usize, String) {
    let path = dir.run_folder().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.iter().position(|line| line.contains("\"trial_finished\"")).unwrap();
    let key = serde_json::from_str::<Value>(&lines[line]).unwrap()["result"]["key"].clone();
    let [target, case] = ["target", "case"].map(|name| key[name].as_str().unwrap().to_owned());
    lines[line].replace_range(20..21, "\u{1}");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    (line + 1, format!("{target}/{case}/{}", key["trial"]))
}

fn run_folders(dir: &TestDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.path().join("runs")).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn stored_runs_can_be_read_in_spite_of_damaged_lines() {
    let (dir, report) = finished();
    let list = dir.run(&["list"]).stdout;
    let (line, _) = damage(&dir);
    let message = format!(
        "warning: journal.jsonl: skipped the unreadable line {line} [EVAL_JOURNAL_DAMAGED]"
    );
    let damaged = dir.run(&["report"]);
    assert_eq!(damaged.code, 0, "{}", damaged.transcript());
    let table = |output: &CommandOutput| output.stdout.split("\n\n").next().unwrap().to_owned();
    assert_eq!(table(&damaged), table(&report));
    assert!(damaged.stderr.contains(&message), "{}", damaged.stderr);
    let id = dir.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    let hint = format!("hint: `bakeoff run --resume {id}` runs the trials without a result again");
    assert!(damaged.stderr.contains(&hint), "{}", damaged.stderr);
    assert_eq!(dir.run(&["list"]).stdout, list);
    assert_eq!(dir.run(&["compare", "last", "last"]).code, 0);
    for words in [["--csv", "out.csv"], ["--jsonl", "out.jsonl"], ["--junit", "out.xml"]] {
        assert_eq!(dir.run(&[&["report"][..], &words].concat()).code, 0);
    }
    // Without a summary, all other lines count.
    std::fs::remove_file(dir.run_folder().join("summary.json")).unwrap();
    let unfinished = dir.run(&["report", "--json"]).done();
    assert_eq!(unfinished["summary"]["targets"][0]["skipped"], 1);
    assert_eq!(dir.run(&["list", "--json"]).done()["runs"][0]["trials"], 11);
    let scored = dir.run(&["score", "--no-fail"]);
    assert_eq!(scored.code, 0, "{}", scored.transcript());
    assert!(scored.stderr.contains(&message), "{}", scored.stderr);
}

#[test]
fn trials_of_damaged_lines_run_again() {
    let (dir, _) = finished();
    let targets = dir.summary()["targets"].clone();
    let (line, trial) = damage(&dir);
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert!(resumed.code < 2, "{}", resumed.transcript());
    let message = format!(
        "warning: journal.jsonl: skipped the unreadable line {line}; 1 trial lacks a result and runs again: {trial} \
         [EVAL_JOURNAL_DAMAGED]"
    );
    assert!(resumed.stderr.contains(&message), "{}", resumed.stderr);
    assert_eq!(dir.summary()["targets"], targets);
    assert_eq!(dir.run(&["report"]).stderr, "");
}

#[test]
fn report_needs_no_journal() {
    let (dir, report) = finished();
    let targets = dir.summary()["targets"].clone();
    std::fs::remove_file(dir.run_folder().join("journal.jsonl")).unwrap();
    let output = dir.run(&["report"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    // The rates of checks need the journal.
    let (table, verdict) = output.stdout.split_once("\nverdict: ").unwrap();
    assert!(report.stdout.starts_with(table), "{}", output.stdout);
    assert!(report.stdout.contains(&format!("verdict: {verdict}")), "{}", output.stdout);
    assert_eq!(dir.run(&["compare", "last", "last"]).code, 0);
    let scored = dir.run(&["score"]);
    assert_eq!(scored.code, 2, "{}", scored.transcript());
    assert!(scored.stderr.contains("has no stored outputs to check"), "{}", scored.stderr);
    assert!(scored.stderr.contains("hint: "), "{}", scored.stderr);
    assert_eq!(run_folders(&dir).len(), 1);
    let warning = "warning: journal.jsonl: missing [EVAL_JOURNAL_DAMAGED]";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert!(resumed.code < 2, "{}", resumed.transcript());
    assert!(resumed.stderr.contains("12 trials lack a result and run again"), "{}", resumed.stderr);
    assert_eq!(dir.summary()["targets"], targets);
}

#[test]
fn failed_score_leaves_no_run() {
    let (dir, _) = finished();
    let inner = dir.command(&["score"]);
    // A limit on the size of files looks like a full disk.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\""]).arg(inner.get_program());
    limited.args(inner.get_args()).current_dir(dir.path());
    let variables = inner.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let output = CommandOutput::from(limited.env_clear().envs(variables).output().unwrap());
    assert_eq!(output.code, 4, "{}", output.transcript());
    assert!(output.stderr.contains("hint: check permissions and free space"), "{}", output.stderr);
    assert_eq!(run_folders(&dir).len(), 1);
}

#[test]
fn run_of_a_moved_project_can_be_resumed() {
    let (dir, _) = finished();
    damage(&dir);
    std::fs::create_dir(dir.path().join("moved")).unwrap();
    for name in ["bakeoff.toml", "cases.jsonl"] {
        std::fs::rename(dir.path().join(name), dir.path().join("moved").join(name)).unwrap();
    }
    for words in [["run", "--resume", "last"], ["score", "last", "--json"]] {
        let lost = dir.run(&words);
        assert_eq!(lost.code, 2, "{}", lost.transcript());
        let shown = lost.stdout + &lost.stderr;
        assert!(shown.contains("the suite of the run is not at"), "{shown}");
        assert!(shown.contains("name its new location with `--suite PATH`"), "{shown}");
    }
    let found = dir.run(&["run", "--resume", "last", "--suite", "moved"]);
    assert!(found.code < 2, "{}", found.transcript());
    // The new location is stored.
    let again = dir.run(&["run", "--resume", "last"]);
    assert!(again.code < 2, "{}", again.transcript());
}

#[test]
fn logs_and_traces_are_read_in_spite_of_damage() {
    let (dir, _) = finished();
    let folder = dir.run_folder();
    let path = folder.join("limits.jsonl");
    std::fs::write(&path, "{\"damaged\n").unwrap();
    let output = dir.run(&["trace", "limits"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.contains("skipped 1 unreadable line"), "{}", output.stderr);
    std::fs::write(folder.join("c0/trial-1/result.json"), "{").unwrap();
    let output = dir.run(&["trace", "trials"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.contains("c0/trial-1/result.json"), "{}", output.stderr);
    assert!(output.stdout.contains("one/c0/2"), "{}", output.stdout);
}

#[test]
fn journal_that_lacks_results_of_the_summary_is_reported() {
    let (dir, _) = finished();
    let journal = dir.run_folder().join("journal.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    assert!(!dir.run(&["report"]).stderr.contains("EVAL_JOURNAL_DAMAGED"));
    // Whole lines are gone, so no checksum is wrong.
    let kept: String = whole.lines().take(4).map(|line| format!("{line}\n")).collect();
    for cut in ["", &kept] {
        std::fs::write(&journal, cut).unwrap();
        let output = dir.run(&["report"]);
        assert!(output.stderr.contains("EVAL_JOURNAL_DAMAGED"), "{}", output.transcript());
        assert!(output.stderr.contains("that summary.json counts"), "{}", output.stderr);
    }
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert!(resumed.code < 2, "{}", resumed.transcript());
    assert!(resumed.stderr.contains("EVAL_JOURNAL_DAMAGED"), "{}", resumed.stderr);
    assert!(!dir.run(&["report"]).stderr.contains("EVAL_JOURNAL_DAMAGED"), "repaired");
    // A line that is damaged after the resume although it was written before it.
    let whole = std::fs::read_to_string(&journal).unwrap();
    let line = whole.lines().position(|line| line.contains("trial_finished")).unwrap();
    let damaged = whole.lines().enumerate().map(|(number, text)| match number == line {
        true => "damage\n".to_owned(),
        false => format!("{text}\n"),
    });
    std::fs::write(&journal, damaged.collect::<String>()).unwrap();
    let reported = dir.run(&["report"]).stderr;
    assert!(reported.contains(&format!("unreadable line {}", line + 1)), "{reported}");
}
