//! What is on disk: full disks, and case ids that are no good as file names.

use crate::support::{Ran, Workplace};
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

/// Runs where no file may be longer than so many blocks of 512 bytes: to a program, that is how a full
/// disk looks.
fn run_on_full_disk(place: &Workplace, blocks: u32) -> Ran {
    let inner = place.command(&["run"]);
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(place.path()).env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    Ran::from(command.output().unwrap())
}

#[test]
fn a_full_disk_is_no_verdict_and_the_run_goes_on_later() {
    let cases: String = (0..100).map(|number| format!("{{\"id\": \"c{number}\"}}\n")).collect();
    let place = Workplace::with_suite(&suite("cache = \"none\"")).write("cases.jsonl", &cases);
    let full = run_on_full_disk(&place, 64);
    assert_eq!(full.code, 4, "{}", full.shown());
    assert!(full.stderr.contains("journal.jsonl"), "{}", full.stderr);
    assert!(full.stderr.contains("[EVAL_TRIAL_ARTIFACTS_CORRUPT]"), "{}", full.stderr);
    assert!(!full.stdout.contains("verdict"), "{}", full.stdout);
    assert!(!place.run_folder().join("summary.json").exists());
    let before = place.run(&["report"]);
    assert_eq!(before.code, 0, "{}", before.shown());
    let resumed = place.run(&["run", "--resume", "last", "--quiet"]);
    let whole = Workplace::with_suite(&suite("")).write("cases.jsonl", &cases);
    assert_eq!(resumed.code, whole.run(&["run", "--quiet"]).code, "{}", resumed.shown());
    assert_eq!(place.summary()["targets"], whole.summary()["targets"]);
}

/// All files below a folder, as paths within it.
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
fn case_ids_are_no_paths() {
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
    let place = Workplace::with_suite(&suite("")).write("cases.jsonl", cases);
    let ran = place.run(&["run", "--quiet"]);
    assert!(ran.code == 0 || ran.code == 1, "{}", ran.shown());
    let shown: Vec<String> = place.summary()["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(shown, ids, "the true ids are in the JSON");
    let all = files(&place.run_folder());
    let trials: Vec<&String> = all.iter().filter(|path| path.ends_with("result.json")).collect();
    assert_eq!(trials.len(), ids.len() * 5, "no two share a folder");
    let mut folders: Vec<String> =
        trials.iter().map(|path| path.split('/').next().unwrap().to_lowercase()).collect();
    folders.sort();
    folders.dedup();
    assert_eq!(folders.len(), ids.len(), "not even where upper and lower case are the same");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    assert!(folders.iter().all(|name| name.chars().all(plain) && name.len() <= 80), "{folders:?}");
    // Nothing outside of its folder.
    let outside: Vec<String> = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(outside.len(), 4, "{outside:?}");
}
