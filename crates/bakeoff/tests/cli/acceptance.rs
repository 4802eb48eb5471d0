//! What was asked of trials and parallelism, criterion by criterion.

use crate::support::Workplace;
use serde_json::Value;

/// A program that passes in trials 1 to 3 and fails in the others.
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
fn criterion_1_without_settings_there_is_one_trial_and_it_must_pass() {
    let place = Workplace::with_suite(&suite("", r#"["echo", "ok"]"#));
    assert_eq!(place.run(&["run", "--quiet"]).code, 0);
    let summary = place.summary();
    assert_eq!((&summary["trials_per_case"], &summary["pass_threshold"]), (&1.into(), &1.0.into()));
    assert_eq!(place.trials().len(), 2);
}

#[test]
fn criterion_2_numbers_out_of_range_are_refused() {
    let refused = |settings: &str, arguments: &[&str], code: &str| {
        let place = Workplace::with_suite(&suite(settings, THREE));
        let ran = place.run(&[&["run"], arguments].concat());
        assert_eq!(ran.code, 2, "{}", ran.shown());
        assert!(ran.stderr.contains(code), "{}", ran.stderr);
        assert!(!place.path().join("runs").exists(), "nothing was begun");
    };
    for trials in ["0", "1001", "-1"] {
        refused(&format!("trials = {trials}"), &[], "EVAL_INVALID_TRIALS_CONFIG");
    }
    refused("", &["--trials", "0"], "EVAL_INVALID_TRIALS_CONFIG");
    refused("", &["--trials", "1001"], "EVAL_INVALID_TRIALS_CONFIG");
    refused("", &["--trials", "-3"], "EVAL_INVALID_TRIALS_CONFIG");
    refused("", &["--trials", "many"], "EVAL_INVALID_TRIALS_CONFIG");
    for threshold in ["-0.1", "1.01", "nan"] {
        refused(&format!("threshold = {threshold}"), &[], "EVAL_INVALID_THRESHOLD");
    }
    refused("", &["--threshold", "1.5"], "EVAL_INVALID_THRESHOLD");
}

#[test]
fn criterion_3_three_of_five_pass_at_three_fifths() {
    let place = Workplace::with_suite(&suite("trials = 5\nthreshold = 0.6", THREE));
    assert_eq!(place.run(&["run", "--quiet"]).code, 0);
    let case = &place.summary()["cases"][0];
    assert_eq!((&case["status"], &case["pass_rate"]), (&"passed".into(), &0.6.into()));
    let place = Workplace::with_suite(&suite("trials = 5\nthreshold = 0.61", THREE));
    assert_eq!(place.run(&["run", "--quiet"]).code, 1);
    // 0.7 is no binary number, and 7 of 10 are 0.7 all the same.
    let seven = THREE.replace("*/3)", "*/3|*/4|*/5|*/6|*/7)");
    let place = Workplace::with_suite(&suite("trials = 10\nthreshold = 0.7", &seven));
    assert_eq!(place.run(&["run", "--quiet"]).code, 0);
}

/// Comes in, waits until four have been in at the same time, says how many there are, and goes.
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
fn criterion_4_four_trials_run_at_once_and_no_more() {
    let hall = tempfile::tempdir().unwrap();
    let command = format!(r#"["sh", "meet.sh", "{}"]"#, hall.path().display());
    let settings = "trials = 6\nparallel = 4\ntimeout_seconds = 60";
    let place = Workplace::with_suite(&suite(settings, &command)).write("meet.sh", MEET);
    let run = place.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let counts = std::fs::read_to_string(hall.path().join("counts")).unwrap();
    let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 12);
    assert!(counts.iter().all(|count| (1..=4).contains(count)), "{counts:?}");
    // What was written down says the same.
    let window = |trial: &Value| {
        let timing = &trial["attempt"]["timing"];
        let start = timing["started_ms"].as_u64().unwrap();
        (start, start + timing["elapsed_ms"].as_u64().unwrap())
    };
    let windows: Vec<(u64, u64)> = place.trials().iter().map(window).collect();
    let overlap = |one: &(u64, u64), other: &(u64, u64)| one.0 <= other.1 && other.0 <= one.1;
    let most = windows.iter().map(|one| windows.iter().filter(|two| overlap(one, two)).count());
    assert!(most.max() >= Some(4), "{windows:?}");
}

#[test]
fn criterion_5_every_trial_has_a_folder() {
    let place = Workplace::with_suite(&suite("trials = 2\nthreshold = 0.5", THREE));
    place.run(&["run", "--quiet"]);
    for case in ["one", "two"] {
        let folder = place.run_folder().join(case);
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
fn criterion_6_a_pipeline_fails_below_the_share_of_cases() {
    // Case `two` fails.
    let half = r#"["sh", "-c", "case $BAKEOFF_TRIAL_ID in */one/*) echo ok;; *) echo no;; esac"]"#;
    let place = Workplace::with_suite(&suite("", half));
    let code = |arguments: &[&str]| place.run(&[&["run", "--quiet"], arguments].concat()).code;
    assert_eq!(code(&["--ci"]), 1);
    assert_eq!(code(&["--ci", "--threshold", "0.5"]), 0);
    assert_eq!(code(&["--ci", "--suite-threshold", "0.5"]), 0);
    assert_eq!(code(&["--ci", "--suite-threshold", "0.51"]), 1);
    assert_eq!(code(&["--ci", "--no-fail"]), 0);
    assert_eq!(code(&[]), 1, "without a share every case must pass");
}

#[test]
fn criterion_7_a_hundred_trials_are_worth_a_warning() {
    let warns = |trials: u32| {
        let settings = format!("trials = {trials}");
        let run = Workplace::with_suite(&suite(&settings, r#"["echo", "ok"]"#)).run(&["run"]);
        run.stderr.contains("[EVAL_COST_WARNING]")
    };
    assert!(warns(50));
    assert!(!warns(49));
}

#[test]
fn criterion_8_a_program_is_run_as_it_is_written() {
    let command = r#"["sh", "-c", "printf '%s|' \"$@\"; cat", "sh", "a b", "--c", ""]"#;
    let place = Workplace::with_suite(&suite("trials = 3", command));
    place.run(&["run", "--quiet"]);
    for trial in place.trials() {
        let case = trial["key"]["case"].as_str().unwrap();
        assert_eq!(trial["attempt"]["output"], format!("a b|--c||prompt of {case}"));
    }
}

#[test]
fn criterion_9_the_summary_has_what_it_had_and_more() {
    let place = Workplace::with_suite(&suite("trials = 5\nthreshold = 0.6", THREE));
    place.run(&["run", "--quiet"]);
    let summary = place.summary();
    for name in ["suite_pass", "suite_pass_rate", "total_cases", "passed", "failed", "cases"] {
        assert!(!summary[name].is_null(), "{name}");
    }
    for name in ["trials_per_case", "pass_threshold", "verdict", "targets", "schema_version"] {
        assert!(!summary[name].is_null(), "{name}");
    }
    // Those that say nothing here are there all the same.
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
