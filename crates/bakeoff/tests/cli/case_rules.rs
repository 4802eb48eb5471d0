//! Number of trials and threshold of single cases.

use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};

/// Returns a suite of two trials per case; the output of a case is its id.
fn test_dir(cases: &str) -> TestDir {
    TestDir::with_suite(
        r#"
[suite]
trials = 2
[[target]]
name = "echo"
model = "sim/echo"
prompt = "{{ id }}"
[cases]
file = "cases.csv"
[[check]]
kind = "contains"
value = "bad"
negate = true
"#,
    )
    .write("cases.csv", cases)
}

const CASES: &str = "id,trials,threshold\na,,\nb,5,\nbad,3,0\nc,1,0.5\n";

fn run(dir: &TestDir, arguments: &[&str]) -> CommandOutput {
    dir.run(&[&["run"], arguments].concat())
}

/// Returns id, status, planned trials and executed trials of each case.
fn cases(summary: &Value) -> Vec<Value> {
    let cases = summary["targets"][0]["cases"].as_array().unwrap();
    let fields =
        |case: &Value| json!([case["id"], case["status"], case["total_trials"], case["counted"]]);
    cases.iter().map(fields).collect()
}

#[test]
fn cases_have_their_own_trials_and_thresholds() {
    let dir = test_dir(CASES);
    let output = run(&dir, &[]);
    // A threshold of 0 needs no passed trial.
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(
        output.stderr.contains("2 trials unless a case has its own = 11 trials"),
        "{}",
        output.stderr
    );
    let summary = dir.summary();
    let expected = [
        json!(["a", "passed", 2, 2]),
        json!(["b", "passed", 5, 5]),
        json!(["bad", "passed", 3, 3]),
        json!(["c", "passed", 1, 1]),
    ];
    assert_eq!(cases(&summary), expected);
    assert_eq!(summary["targets"][0]["total_trials"], 11);
    assert_eq!(summary["targets"][0]["cases"][2]["pass_threshold"], 0.0);
    assert_eq!(
        summary["rule"],
        "4 of 4 cases pass, needs 4 (a case passes with 2 of 2 trials, but 3 have their own rule)"
    );
}

#[test]
fn command_line_replaces_the_values_of_cases() {
    let dir = test_dir(CASES);
    assert_eq!(run(&dir, &["--trials", "1", "--threshold", "1"]).code, 1);
    let summary = dir.summary();
    let expected = [
        json!(["a", "passed", 1, 1]),
        json!(["b", "passed", 1, 1]),
        json!(["bad", "failed", 1, 1]),
        json!(["c", "passed", 1, 1]),
    ];
    assert_eq!(cases(&summary), expected);
}

#[test]
fn resume_and_score_keep_the_values_of_cases() {
    let dir = test_dir(CASES);
    assert_eq!(run(&dir, &[]).code, 0);
    let resumed = run(&dir, &["--resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());
    assert!(resumed.stderr.contains("11 trials done"), "{}", resumed.stderr);
    let before = cases(&dir.summary());

    let fewer = run(&dir, &["--resume", "last", "--trials", "2"]);
    assert_eq!(fewer.code, 2, "{}", fewer.transcript());
    assert!(fewer.stderr.contains("the trials of case `b` were 5 and are 2"), "{}", fewer.stderr);

    let scored = dir.run(&["score", "last", "--json"]);
    assert_eq!(scored.code, 0, "{}", scored.transcript());
    assert_eq!(cases(&scored.done()["summary"]), before);
    let strict = dir.run(&["score", "last", "--threshold", "1"]);
    assert_eq!(strict.code, 1, "{}", strict.transcript());
}

#[test]
fn extension_adds_trials_to_cases() {
    let dir = test_dir(CASES);
    assert_eq!(run(&dir, &["--trials", "1"]).code, 0);
    let error = run(&dir, &["--resume", "last", "--trials", "5"]);
    assert_eq!(error.code, 2, "{}", error.transcript());
    let extended = run(&dir, &["--resume", "last", "--trials", "5", "--extend"]);
    assert_eq!(extended.code, 0, "{}", extended.transcript());
    assert_eq!(dir.summary()["targets"][0]["total_trials"], 20);
}

#[test]
fn invalid_values_have_a_position() {
    for (cell, message) in [
        ("0,", "case `trials` must be an integer from 1 to 1000, not `0`"),
        ("1001,", "case `trials` must be an integer from 1 to 1000, not `1001`"),
        ("2.5,", "case `trials` must be an integer from 1 to 1000, not `2.5`"),
        (",1.5", "case `threshold` must be a plain decimal from 0 to 1, not `1.5`"),
        (",most", "case `threshold` must be a plain decimal from 0 to 1, not `most`"),
    ] {
        let dir = test_dir(&format!("id,trials,threshold\na,,\nb,{cell}\n"));
        let output = dir.run(&["check"]);
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.stderr.contains(message), "{}", output.stderr);
        assert!(output.stderr.contains("cases.csv:3"), "{}", output.stderr);
    }
}

#[test]
fn check_estimates_the_trials_of_all_cases() {
    let output = test_dir(CASES).run(&["check"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let size = "4 cases × 1 target × 2 trials unless a case has its own = 11 trials";
    assert!(output.stdout.contains(size), "{}", output.stdout);
    assert!(output.stdout.contains("echo (sim/echo): 11 trials"), "{}", output.stdout);
}

#[test]
fn search_gives_all_cases_the_trials_of_the_suite() {
    let text = crate::select::suite(2, 2, "method = \"brute_force\"", 1);
    let dir = TestDir::with_suite(&text.replace("q = \"question 1\"", "q = \"x\"\ntrials = 4"));
    let output = dir.run(&["select"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let warning = "a search runs `trials` of [suite] for all cases; 1 with their own number do not";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
    assert_eq!(dir.summary()["targets"][0]["total_trials"], 2);
}
