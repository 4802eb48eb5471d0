//! Files written by version 0.1.0 stay readable: finished runs, killed runs, searches, map jobs, race sessions.
//!
//! The fixtures were written by that version's binary. `@FOLDER@` in them stands for the folder of the suite,
//! which is absolute in `run.json`.

use crate::support::TestDir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Folder of the finished run.
const RUN: &str = "2026-11-16T08-48-58Z-written-before-zxmx";

/// Copies one of the fixture folders into a new workplace.
fn fixture(name: &str) -> TestDir {
    let dir = TestDir::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/written-by-0.1.0");
    copy(&folder.join(name), dir.path(), &dir.path().display().to_string());
    dir
}

fn copy(from: &Path, to: &Path, suite_folder: &str) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target, suite_folder);
        } else {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            std::fs::write(target, text.replace("@FOLDER@", suite_folder)).unwrap();
        }
    }
}

/// Returns how often each trial is in the journal, by `target/case/trial`.
fn journaled_trials(dir: &TestDir) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for trial in dir.trials() {
        let key = &trial["key"];
        *counts
            .entry(format!("{}/{}/{}", key["target"], key["case"], key["trial"]))
            .or_insert(0) += 1;
    }
    counts
}

#[test]
fn finished_run_is_reported_compared_and_scored() {
    let dir = fixture("finished");
    let summary = dir.summary();
    assert_eq!(summary["verdict"], "inconclusive");

    let report = dir.run(&["report"]);
    assert_eq!(report.code, 0, "{}", report.transcript());
    for line in ["echo     passed            100 %", "half     passed             78 %"] {
        assert!(report.stdout.contains(line), "{}", report.transcript());
    }

    let compare = dir.run(&["compare", "last:echo", "last:half"]);
    assert_eq!(compare.code, 0, "{}", compare.transcript());
    assert!(compare.stdout.contains("half"), "{}", compare.transcript());

    let score = dir.run(&["score"]);
    assert_eq!(score.code, 3, "{}", score.transcript());
    let rates = |summary: &Value| -> Vec<Value> {
        let targets = summary["targets"].as_array().unwrap();
        targets.iter().map(|target| target["pass_rate"].clone()).collect()
    };
    // The scored run is a new one.
    let scored =
        std::fs::read_dir(dir.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let is_new = |path: &PathBuf| path.is_dir() && !path.ends_with(RUN);
    let scored: Vec<PathBuf> = scored.filter(is_new).collect();
    assert_eq!(scored.len(), 1, "{scored:?}");
    let scored = std::fs::read(scored[0].join("summary.json")).unwrap();
    assert_eq!(rates(&serde_json::from_slice(&scored).unwrap()), rates(&summary));
    assert!(dir.run(&["list"]).stdout.contains("written-before"));
}

#[test]
fn killed_run_is_resumed_without_repeating_finished_trials() {
    let dir = fixture("killed");
    let before = journaled_trials(&dir);
    assert!(!before.is_empty() && before.len() < 27, "{before:?}");
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());
    let after = journaled_trials(&dir);
    assert_eq!(after.len(), 27, "{after:?}");
    assert!(after.values().all(|count| *count == 1), "{after:?}");
}

#[test]
fn search_is_resumed_with_a_larger_budget() {
    let dir = fixture("search");
    let before = journaled_trials(&dir);
    assert_eq!(before.len(), 100);
    let resumed = dir.run(&["select", "--resume", "last", "--max-cells", "150"]);
    assert!([0, 3].contains(&resumed.code), "{}", resumed.transcript());
    let after = journaled_trials(&dir);
    assert!(after.len() > 100, "{}", resumed.transcript());
    assert!(after.values().all(|count| *count == 1), "{after:?}");
}

#[test]
fn interrupted_map_job_is_resumed_to_the_same_output() {
    let dir = fixture("rows");
    let arguments = ["map", "reviews.csv", "--task", "task.toml", "--model", "sim/map"];
    let rest = ["--out", "labels.jsonl", "--pack", "2", "--resume"];
    let resumed = dir.run(&[&arguments[..], &rest[..]].concat());
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("labels.jsonl"), read("expected.jsonl"));
}

#[test]
fn race_session_is_continued() {
    let dir = fixture("session");
    let models = ["--model", "sim/a", "--model", "sim/b", "--judge", "sim/judge"];
    let raced = dir.run(&[&["race", "One more.", "--session", "talk.jsonl"], &models[..]].concat());
    assert_eq!(raced.code, 0, "{}", raced.transcript());
    let text = std::fs::read_to_string(dir.path().join("talk.jsonl")).unwrap();
    let races = text.lines().filter(|line| line.contains("\"event\":\"race_started\"")).count();
    assert_eq!(races, 3, "{text}");
}
