//! Acceptance criteria of trials and parallelism, one test each.

use crate::support::TestDir;
use serde_json::Value;

/// Program that passes in trials 1 to 3 and fails in the others.
const THREE: &str =
    r#"["sh", "-c", "case $BAKEOFF_TRIAL_ID in */1|*/2|*/3) echo ok;; *) echo no;; esac"]"#;

fn suite(settings: &str, command: &str) -> String {
    format!(
        r#"
[suite]
name = "accepted"
{settings}
[[target]]
name = "program"
command = {command}
prompt = "prompt of {{{{ id }}}}"
[cases]
inline = [{{ id = "one" }}, {{ id = "two" }}]
[[check]]
kind = "equals"
value = "ok"
"#
    )
}

fn read(path: impl AsRef<std::path::Path>) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn criterion_1_default_is_one_trial_that_must_pass() {
    let dir = TestDir::with_suite(&suite("", r#"["echo", "ok"]"#));
    assert_eq!(dir.run(&["run", "--quiet"]).code, 0);
    let summary = dir.summary();
    assert_eq!((&summary["trials_per_case"], &summary["pass_threshold"]), (&1.into(), &1.0.into()));
    assert_eq!(dir.trials().len(), 2);
}

#[test]
fn criterion_2_out_of_range_numbers_are_usage_errors() {
    let expect_usage_error = |settings: &str, arguments: &[&str], code: &str| {
        let dir = TestDir::with_suite(&suite(settings, THREE));
        let output = dir.run(&[&["run"], arguments].concat());
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.stderr.contains(code), "{}", output.stderr);
        assert!(!dir.path().join("runs").exists(), "no run exists");
    };
    for trials in ["0", "1001", "-1"] {
        expect_usage_error(&format!("trials = {trials}"), &[], "EVAL_INVALID_TRIALS_CONFIG");
    }
    expect_usage_error("", &["--trials", "0"], "EVAL_INVALID_TRIALS_CONFIG");
    expect_usage_error("", &["--trials", "1001"], "EVAL_INVALID_TRIALS_CONFIG");
    expect_usage_error("", &["--trials", "-3"], "EVAL_INVALID_TRIALS_CONFIG");
    expect_usage_error("", &["--trials", "many"], "EVAL_INVALID_TRIALS_CONFIG");
    for threshold in ["-0.1", "1.01", "nan"] {
        expect_usage_error(&format!("threshold = {threshold}"), &[], "EVAL_INVALID_THRESHOLD");
    }
    expect_usage_error("", &["--threshold", "1.5"], "EVAL_INVALID_THRESHOLD");
}

#[test]
fn criterion_3_three_of_five_pass_at_three_fifths() {
    let dir = TestDir::with_suite(&suite("trials = 5\nthreshold = 0.6", THREE));
    assert_eq!(dir.run(&["run", "--quiet"]).code, 0);
    let case = &dir.summary()["cases"][0];
    assert_eq!((&case["status"], &case["pass_rate"]), (&"passed".into(), &0.6.into()));
    let dir = TestDir::with_suite(&suite("trials = 5\nthreshold = 0.61", THREE));
    assert_eq!(dir.run(&["run", "--quiet"]).code, 1);
    // 0.7 has no exact binary representation, but 7 of 10 must meet it.
    let seven = THREE.replace("*/3)", "*/3|*/4|*/5|*/6|*/7)");
    let dir = TestDir::with_suite(&suite("trials = 10\nthreshold = 0.7", &seven));
    assert_eq!(dir.run(&["run", "--quiet"]).code, 0);
}

/// Program that waits until four instances run at once and prints their number.
const MEET: &str = r#"
mkdir "$1/in-$$"
while [ ! -e "$1/met" ]; do
  [ "$(ls -d "$1"/in-* | wc -l)" -ge 4 ] && touch "$1/met"
done
ls -d "$1"/in-* | wc -l >> "$1/counts"
rmdir "$1/in-$$"
echo ok
"#;

#[test]
fn criterion_4_parallel_four_runs_exactly_four_trials() {
    let shared = tempfile::tempdir().unwrap();
    let command = format!(r#"["sh", "meet.sh", "{}"]"#, shared.path().display());
    let settings = "trials = 6\nparallel = 4\ntimeout_seconds = 60";
    let dir = TestDir::with_suite(&suite(settings, &command)).write("meet.sh", MEET);
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    let counts = std::fs::read_to_string(shared.path().join("counts")).unwrap();
    let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 12);
    assert!(counts.iter().all(|count| (1..=4).contains(count)), "{counts:?}");
    // The journal agrees.
    let window = |trial: &Value| {
        let timing = &trial["attempt"]["timing"];
        let start = timing["started_ms"].as_u64().unwrap();
        (start, start + timing["elapsed_ms"].as_u64().unwrap())
    };
    let windows: Vec<(u64, u64)> = dir.trials().iter().map(window).collect();
    let overlap = |one: &(u64, u64), other: &(u64, u64)| one.0 <= other.1 && other.0 <= one.1;
    let overlaps = windows.iter().map(|one| windows.iter().filter(|two| overlap(one, two)).count());
    assert!(overlaps.max() >= Some(4), "{windows:?}");
}

#[test]
fn criterion_5_every_trial_has_a_directory() {
    let dir = TestDir::with_suite(&suite("trials = 2\nthreshold = 0.5", THREE));
    dir.run(&["run", "--quiet"]);
    for case in ["one", "two"] {
        let folder = dir.run_folder().join(case);
        for trial in ["trial-1", "trial-2"] {
            for name in ["stdout.txt", "stderr.txt", "trace.jsonl", "result.json"] {
                assert!(folder.join(trial).join(name).is_file(), "{case}/{trial}/{name}");
            }
        }
        let aggregated = read(folder.join("aggregated.json"));
        assert_eq!(aggregated["id"], case);
        assert_eq!(aggregated["aggregated_status"], "passed");
        assert_eq!(
            (&aggregated["pass_count"], &aggregated["total_trials"]),
            (&2.into(), &2.into())
        );
        let trials = aggregated["trials"].as_array().unwrap();
        let ids: Vec<u64> =
            trials.iter().map(|trial| trial["trial_id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2]);
        assert_eq!(trials[0]["check_results"][0]["check_name"], "equals");
    }
}

#[test]
fn criterion_6_ci_fails_below_the_share_of_cases() {
    // Case `two` fails.
    let half = r#"["sh", "-c", "case $BAKEOFF_TRIAL_ID in */one/*) echo ok;; *) echo no;; esac"]"#;
    let dir = TestDir::with_suite(&suite("", half));
    let code = |arguments: &[&str]| dir.run(&[&["run", "--quiet"], arguments].concat()).code;
    assert_eq!(code(&["--ci"]), 1);
    assert_eq!(code(&["--ci", "--threshold", "0.5"]), 0);
    assert_eq!(code(&["--ci", "--suite-threshold", "0.5"]), 0);
    assert_eq!(code(&["--ci", "--suite-threshold", "0.51"]), 1);
    assert_eq!(code(&["--ci", "--no-fail"]), 0);
    assert_eq!(code(&[]), 1, "without a share every case must pass");
}

#[test]
fn criterion_7_a_hundred_trials_print_a_warning() {
    let warns = |trials: u32| {
        let settings = format!("trials = {trials}");
        let run = TestDir::with_suite(&suite(&settings, r#"["echo", "ok"]"#)).run(&["run"]);
        run.stderr.contains("[EVAL_COST_WARNING]")
    };
    assert!(warns(50));
    assert!(!warns(49));
}

#[test]
fn criterion_8_program_arguments_are_passed_unchanged() {
    let command = r#"["sh", "-c", "printf '%s|' \"$@\"; cat", "sh", "a b", "--c", ""]"#;
    let dir = TestDir::with_suite(&suite("trials = 3", command));
    dir.run(&["run", "--quiet"]);
    for trial in dir.trials() {
        let case = trial["key"]["case"].as_str().unwrap();
        assert_eq!(trial["attempt"]["output"], format!("a b|--c||prompt of {case}"));
    }
}

#[test]
fn criterion_9_summary_keeps_all_earlier_fields() {
    let dir = TestDir::with_suite(&suite("trials = 5\nthreshold = 0.6", THREE));
    dir.run(&["run", "--quiet"]);
    let summary = dir.summary();
    for name in ["suite_pass", "suite_pass_rate", "total_cases", "passed", "failed", "cases"] {
        assert!(!summary[name].is_null(), "{name}");
    }
    for name in ["trials_per_case", "pass_threshold", "verdict", "targets", "schema_version"] {
        assert!(!summary[name].is_null(), "{name}");
    }
    // Fields without a value here must still exist.
    for name in ["agent", "model", "parallel", "run_dir", "checks_path", "skill_project_root"] {
        assert!(summary.as_object().unwrap().contains_key(name), "{name}");
    }
    let case = &summary["cases"][1];
    assert_eq!(case["id"], "two");
    assert_eq!((&case["pass_count"], &case["total_trials"]), (&3.into(), &5.into()));
    let statuses: Vec<&str> = case["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["passed", "passed", "passed", "failed", "failed"]);
    assert_eq!(case["flake_rate"], 0.6);
    assert!(case["interval"]["low"].as_f64().unwrap() > 0.2, "{case}");
}
