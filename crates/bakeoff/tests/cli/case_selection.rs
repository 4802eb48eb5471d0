//! Selection of cases by number and by the results of an earlier run.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;

/// Returns a suite in which the cases with even numbers fail for `strict`, and all pass for `mild`.
fn test_dir() -> TestDir {
    let cases: String = (1..=20)
        .map(|number| {
            let parity = if number % 2 == 0 { "even" } else { "odd" };
            format!(
                "{{\"id\": \"c{number}\", \"parity\": \"{parity}\", \"tags\": [\"{parity}\"]}}\n"
            )
        })
        .collect();
    TestDir::with_suite(
        r#"
[[target]]
name = "strict"
model = "sim/echo"
prompt = "{{ parity }}"
[[target]]
name = "mild"
model = "sim/echo"
prompt = "odd {{ parity }}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "contains"
value = "odd"
"#,
    )
    .write("cases.jsonl", cases)
}

/// Returns the ids of the cases of a run.
fn chosen(dir: &TestDir, run: &CommandOutput) -> Vec<String> {
    let folder = run.stderr.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    let text = std::fs::read_to_string(dir.path().join(folder).join("run.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let ids = file["suite"]["cases"]["chosen"].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

fn error(dir: &TestDir, arguments: &[&str]) -> String {
    let output = dir.run(arguments);
    assert_eq!(output.code, 2, "{}", output.transcript());
    output.stderr
}

#[test]
fn limit_selects_the_first_cases_with_a_tag() {
    let dir = test_dir();
    let output = dir.run(&["run", "--limit", "3", "--tag", "even", "--target", "mild"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(chosen(&dir, &output), ["c2", "c4", "c6"]);
    assert!(output.stderr.contains("3 cases × 1 target"), "{}", output.stderr);

    let resumed = dir.run(&["run", "--resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());
    assert_eq!(chosen(&dir, &resumed), ["c2", "c4", "c6"]);
    let resume = |flags: &[&'static str]| [&["run", "--resume", "last"], flags].concat();
    let larger = error(&dir, &resume(&["--limit", "4"]));
    assert!(larger.contains("--limit 4 instead of 3"), "{larger}");
    let smaller = error(&dir, &resume(&["--extend", "--limit", "2"]));
    assert!(smaller.contains("--limit selects other cases"), "{smaller}");
    let extended = dir.run(&resume(&["--extend", "--limit", "4"]));
    assert_eq!(extended.code, 0, "{}", extended.transcript());
    assert_eq!(chosen(&dir, &extended), ["c2", "c4", "c6", "c8"]);

    let zero = error(&dir, &["run", "--limit", "0"]);
    assert!(zero.contains("must be at least 1"), "{zero}");
    let both = error(&dir, &["run", "--limit", "1", "--sample", "1"]);
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
fn sample_is_random_by_seed_and_nested() {
    let sample = |number: &str, seed: &str| {
        let dir = test_dir();
        let arguments = ["run", "--target", "mild", "--sample", number, "--seed", seed];
        let output = dir.run(&arguments);
        assert_eq!(output.code, 0, "{}", output.transcript());
        chosen(&dir, &output)
    };
    let number = |id: &String| id[1..].parse::<u32>().unwrap();
    let small = sample("5", "7");
    assert_eq!(small.len(), 5);
    assert!(small.is_sorted_by_key(number), "{small:?}");
    assert_eq!(sample("5", "7"), small);
    assert_ne!(sample("5", "8"), small);
    let large = sample("9", "7");
    assert!(small.iter().all(|id| large.contains(id)), "{small:?} {large:?}");
    assert_eq!(sample("99", "7").len(), 20);
}

#[test]
fn resumed_sample_rejects_displaced_cases() {
    let dir = test_dir();
    assert_eq!(dir.run(&["run", "--target", "mild", "--sample", "15"]).code, 0);
    let path = dir.path().join("cases.jsonl");
    let mut cases = std::fs::read_to_string(&path).unwrap();
    for number in 21..=60 {
        cases += &format!("{{\"id\": \"c{number}\", \"parity\": \"odd\"}}\n");
    }
    std::fs::write(&path, cases).unwrap();
    let displaced = error(&dir, &["run", "--resume", "last", "--extend"]);
    assert!(displaced.contains("--sample selects other cases"), "{displaced}");
}

#[test]
fn failed_of_selects_the_cases_that_did_not_pass() {
    let dir = test_dir();
    assert_eq!(dir.run(&["run", "--limit", "5"]).code, 1);
    let failed = ["run", "--failed-of", "last"];
    let again = dir.run(&failed);
    assert_eq!(again.code, 1, "{}", again.transcript());
    assert_eq!(chosen(&dir, &again), ["c2", "c4"]);
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert_eq!(resumed.code, 1, "{}", resumed.transcript());
    assert_eq!(chosen(&dir, &resumed), ["c2", "c4"]);

    let passed = error(&dir, &[&failed[..], &["--target", "mild"]].concat());
    assert!(passed.contains("no case left: all cases passed in"), "{passed}");
    let unknown = error(&dir, &["run", "--failed-of", "gone"]);
    assert!(unknown.contains("no run in runs starts with `gone`"), "{unknown}");
    let none = error(&dir, &[&failed[..], &["--tag", "odd"]].concat());
    assert!(none.contains("no case has both"), "{none}");
    let other = dir.run(&["run", "--target", "mild", "--limit", "1"]);
    assert_eq!(other.code, 0, "{}", other.transcript());
    let other = error(&dir, &[&failed[..], &["--target", "strict"]].concat());
    assert!(other.contains("has none of the targets of this run"), "{other}");
}

#[test]
fn check_estimates_the_selected_cases() {
    let dir = test_dir();
    let plan = |flags: &[&str]| {
        let output = dir.run(&[&["check"], flags].concat());
        assert_eq!(output.code, 0, "{}", output.transcript());
        output.stdout.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(plan(&[]), "20 cases × 2 targets × 1 trial = 40 trials");
    assert_eq!(plan(&["--tag", "odd", "--limit", "4"]), "4 cases × 2 targets × 1 trial = 8 trials");
    assert_eq!(plan(&["--sample", "3", "--seed", "5"]), "3 cases × 2 targets × 1 trial = 6 trials");
    let tokens = |flags: &[&str]| dir.run(&[&["check"], flags].concat()).stdout;
    let one = tokens(&["--case", "c1"]);
    assert!(one.contains("mild (sim/echo): 1 trial, about 2 input and 200 output"), "{one}");
    let unknown = error(&dir, &["check", "--case", "gone"]);
    assert!(unknown.contains("there is no case `gone`"), "{unknown}");
}
