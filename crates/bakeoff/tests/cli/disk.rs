//! Full disks, and case ids that are unsafe as file names.

use crate::support::{CommandOutput, TestDir};
use std::path::Path;
use std::process::Command;

fn suite(settings: &str) -> String {
    format!(
        r#"
[suite]
name = "disk"
trials = 5
threshold = 0.4
cost_warning = 10000
{settings}
[[target]]
name = "one"
model = "sim/pass-0.8"
prompt = "{{{{ id }}}}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "ok"
"#
    )
}

/// Runs with a file size limit in blocks of 512 bytes, which looks like a full disk to a program.
fn run_on_full_disk(dir: &TestDir, blocks: u32) -> CommandOutput {
    let inner = dir.command(&["run"]);
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(dir.path()).env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    CommandOutput::from(command.output().unwrap())
}

#[test]
fn full_disk_is_an_error_and_the_run_can_be_resumed() {
    let cases: String = (0..100).map(|number| format!("{{\"id\": \"c{number}\"}}\n")).collect();
    let dir = TestDir::with_suite(&suite("cache = \"none\"")).write("cases.jsonl", &cases);
    let full = run_on_full_disk(&dir, 64);
    assert_eq!(full.code, 4, "{}", full.transcript());
    assert!(full.stderr.contains("journal.jsonl"), "{}", full.stderr);
    assert!(full.stderr.contains("[EVAL_TRIAL_ARTIFACTS_CORRUPT]"), "{}", full.stderr);
    assert!(!full.stdout.contains("verdict"), "{}", full.stdout);
    assert!(!dir.run_folder().join("summary.json").exists());
    let before = dir.run(&["report"]);
    assert_eq!(before.code, 0, "{}", before.transcript());
    let resumed = dir.run(&["run", "--resume", "last", "--quiet"]);
    let whole = TestDir::with_suite(&suite("")).write("cases.jsonl", &cases);
    assert_eq!(resumed.code, whole.run(&["run", "--quiet"]).code, "{}", resumed.transcript());
    assert_eq!(dir.summary()["targets"], whole.summary()["targets"]);
}

/// Returns the relative paths of all files below a directory.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    found
}

#[test]
fn unsafe_case_ids_do_not_become_paths() {
    let long = "x".repeat(300);
    let ids = [
        "../../etc/x",
        "a/b",
        "a\\b",
        "a:b",
        "CON",
        "con",
        "é",
        "e\u{301}",
        &long,
        "Same",
        "same",
        "a b",
        "a_b",
        ".",
        "..",
        "summary.json",
        "work",
        "-rf",
        "~",
        "$HOME",
        "trial-1",
        "\u{202e}x",
    ];
    let cases: String =
        ids.iter().map(|id| format!("{}\n", serde_json::json!({ "id": id }))).collect();
    let dir = TestDir::with_suite(&suite("")).write("cases.jsonl", cases);
    let output = dir.run(&["run", "--quiet"]);
    assert!(output.code == 0 || output.code == 1, "{}", output.transcript());
    let printed: Vec<String> = dir.summary()["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(printed, ids, "the true ids are in the JSON");
    let all = files(&dir.run_folder());
    let trials: Vec<&String> = all.iter().filter(|path| path.ends_with("result.json")).collect();
    assert_eq!(trials.len(), ids.len() * 5, "no two share a folder");
    let mut folders: Vec<String> =
        trials.iter().map(|path| path.split('/').next().unwrap().to_lowercase()).collect();
    folders.sort();
    folders.dedup();
    assert_eq!(folders.len(), ids.len(), "not even where upper and lower case are the same");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    assert!(folders.iter().all(|name| name.chars().all(plain) && name.len() <= 80), "{folders:?}");
    // Nothing is written outside of the directory of the run.
    let outside: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(outside.len(), 4, "{outside:?}");
}
