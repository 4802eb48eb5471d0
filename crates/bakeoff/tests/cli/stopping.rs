//! Early stops, budgets, and runs that are given up.

use crate::support::Workplace;
use serde_json::Value;

fn workplace(model: &str, settings: &str, cases: usize) -> Workplace {
    let suite = format!(
        r#"
[suite]
name = "stops"
{settings}
[models.priced]
provider = "sim"
model = "pass-1"
prices = {{ input = 1000000.0, output = 0.0 }}
[[target]]
name = "one"
model = "{model}"
prompt = "{{{{ thing }}}}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "ok"
"#
    );
    let cases: String =
        (0..cases).map(|n| format!("{{\"id\": \"c{n}\", \"thing\": \"t{n}\"}}\n")).collect();
    Workplace::with_suite(&suite).write("cases.jsonl", cases)
}

fn target(place: &Workplace) -> Value {
    place.summary()["targets"][0].clone()
}

#[test]
fn decided_cases_need_no_more_trials() {
    let settings = "trials = 10\nthreshold = 0.6\nearly_stop = \"decided\"";
    let place = workplace("sim/pass-1", settings, 3);
    let run = place.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let one = target(&place);
    assert_eq!(
        (&one["counted"], &one["saved"], &one["skipped"]),
        (&18.into(), &12.into(), &12.into())
    );
    assert_eq!(one["cases"][0]["stopped_early"], true);
    assert_eq!(place.trials().len(), 18);
    assert!(run.stdout.contains("early stops saved 12 of 30 trials (40 %)"), "{}", run.stdout);
    assert!(run.stdout.contains("~100 %"), "{}", run.stdout);
}

#[test]
fn confident_cases_stop_at_the_boundary() {
    let settings = "trials = 50\nthreshold = 0.7\nearly_stop = \"confident\"";
    let place = workplace("sim/pass-1", settings, 1);
    place.run(&["run", "--quiet"]);
    assert_eq!((target(&place)["counted"].as_u64(), place.trials().len()), (Some(10), 10));
    let place = workplace("sim/pass-0", settings, 1);
    let failed = place.run(&["run", "--quiet"]);
    assert_eq!((failed.code, place.trials().len()), (1, 4));
}

#[test]
fn with_a_share_of_cases_the_target_stops_too() {
    let settings = "trials = 1\nearly_stop = \"confident\"";
    let place = workplace("sim/pass-1", settings, 200);
    let run = place.run(&["run", "--suite-threshold", "0.8", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let one = target(&place);
    // Those that were under way when it became certain do not count.
    assert_eq!((&one["counted"], &one["passed"]), (&22.into(), &22.into()));
    assert_eq!((&one["saved"], &one["inconclusive"]), (&178.into(), &0.into()));
    assert_eq!(one["verdict"], "passed");
}

#[test]
fn early_stops_survive_a_resume() {
    let settings = "trials = 30\nthreshold = 0.7\nearly_stop = \"confident\"";
    let place = workplace("sim/pass-0.8", settings, 5);
    place.run(&["run", "--quiet"]);
    let (before, trials) = (target(&place), place.trials().len());
    place.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!((target(&place), place.trials().len()), (before, trials));
}

#[test]
fn money_tokens_and_time_are_bounded() {
    // Each call costs a dollar per token of its prompt, which has one.
    let place = workplace("priced", "parallel = 1\nmax_cost_usd = 3", 10);
    let run = place.run(&["run"]);
    assert_eq!(run.code, 3, "{}", run.shown());
    assert_eq!(place.trials().len(), 3);
    assert!(run.stderr.contains("$3.00 of $3.00 spent [EVAL_BUDGET_USED_UP]"), "{}", run.stderr);
    let place = workplace("priced", "parallel = 1", 10);
    place.run(&["run", "--max-cost", "0.5", "--quiet"]);
    assert_eq!(place.trials().len(), 1, "a trial that has begun is finished");
    let place = workplace("sim/pass-1", "parallel = 1\nmax_tokens = 4", 10);
    place.run(&["run", "--quiet"]);
    assert!(place.trials().len() < 5);
    // A verdict that nothing can change stands.
    let place = workplace("sim/pass-0", "parallel = 1\nmax_tokens = 4", 10);
    assert_eq!(place.run(&["run", "--quiet"]).code, 1);
    let place = workplace("sim/pass-1", "deadline = 0.001\nparallel = 1", 2000);
    assert_eq!(place.run(&["run", "--quiet"]).code, 3);
    assert!(place.trials().len() < 2000);
}

#[test]
fn a_budget_of_money_needs_prices() {
    let place = workplace("openai/nobody-knows", "max_cost_usd = 3", 1);
    let mut command = place.command(&["run"]);
    let output = command.env("OPENAI_API_KEY", "k").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no price known for `openai/nobody-knows`"), "{stderr}");
    assert!(!place.path().join("runs").exists());
}

#[test]
fn a_target_that_only_errors_is_given_up() {
    let place = workplace("sim/fault-400", "parallel = 1", 500);
    let run = place.run(&["run"]);
    assert_eq!(run.code, 3, "{}", run.shown());
    assert_eq!(place.trials().len(), 20);
    assert!(run.stderr.contains("[EVAL_TOO_MANY_ERRORS]"), "{}", run.stderr);
    let place = workplace("sim/fault-400", "parallel = 1\nmax_error_rate = 1", 30);
    place.run(&["run", "--quiet"]);
    assert_eq!(place.trials().len(), 30);
}

#[test]
fn many_trials_are_worth_a_warning() {
    let run = workplace("sim/pass-1", "trials = 10", 10).run(&["run"]);
    assert!(run.stderr.contains("100 trials: about $0.00 [EVAL_COST_WARNING]"), "{}", run.stderr);
    let run = workplace("sim/pass-1", "trials = 9", 11).run(&["run"]);
    assert!(!run.stderr.contains("EVAL_COST_WARNING"), "{}", run.stderr);
    let run = workplace("sim/pass-1", "cost_warning = 5", 5).run(&["run"]);
    assert!(run.stderr.contains("EVAL_COST_WARNING"), "{}", run.stderr);
}
