//! Early stops, budgets, and targets with too many errors.

use crate::support::{CommandOutput, TestDir, suite_of};
use serde_json::Value;

fn test_dir(model: &str, settings: &str, cases: usize) -> TestDir {
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
    TestDir::with_suite(&suite).write("cases.jsonl", cases)
}

fn target(dir: &TestDir) -> Value {
    dir.summary()["targets"][0].clone()
}

#[test]
fn decided_cases_stop_early() {
    let settings = "trials = 10\nthreshold = 0.6\nearly_stop = \"decided\"";
    let dir = test_dir("sim/pass-1", settings, 3);
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    let one = target(&dir);
    assert_eq!(
        (&one["counted"], &one["saved"], &one["skipped"]),
        (&18.into(), &12.into(), &12.into())
    );
    assert_eq!(one["cases"][0]["stopped_early"], true);
    assert_eq!(dir.trials().len(), 18);
    assert!(run.stdout.contains("early stops saved 12 of 30 trials (40 %)"), "{}", run.stdout);
    assert!(run.stdout.contains("~100 %"), "{}", run.stdout);
}

#[test]
fn confident_cases_stop_at_the_boundary() {
    let settings = "trials = 50\nthreshold = 0.7\nearly_stop = \"confident\"";
    let dir = test_dir("sim/pass-1", settings, 1);
    dir.run(&["run", "--quiet"]);
    assert_eq!((target(&dir)["counted"].as_u64(), dir.trials().len()), (Some(10), 10));
    let dir = test_dir("sim/pass-0", settings, 1);
    let failed = dir.run(&["run", "--quiet"]);
    assert_eq!((failed.code, dir.trials().len()), (1, 4));
}

#[test]
fn suite_threshold_stops_the_target_early() {
    let settings = "trials = 1\nearly_stop = \"confident\"";
    let dir = test_dir("sim/pass-1", settings, 200);
    let run = dir.run(&["run", "--suite-threshold", "0.8", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    let one = target(&dir);
    // Trials in flight at that point do not count.
    assert_eq!((&one["counted"], &one["passed"]), (&22.into(), &22.into()));
    assert_eq!((&one["saved"], &one["inconclusive"]), (&178.into(), &0.into()));
    assert_eq!(one["verdict"], "passed");
}

#[test]
fn early_stops_survive_a_resume() {
    let settings = "trials = 30\nthreshold = 0.7\nearly_stop = \"confident\"";
    let dir = test_dir("sim/pass-0.8", settings, 5);
    dir.run(&["run", "--quiet"]);
    let (before, trials) = (target(&dir), dir.trials().len());
    dir.run(&["run", "--resume", "last", "--quiet"]);
    assert_eq!((target(&dir), dir.trials().len()), (before, trials));
}

#[test]
fn cost_token_and_time_budgets_stop_the_run() {
    // Each call costs one dollar: a dollar per token, with one token.
    let dir = test_dir("priced", "parallel = 1\nmax_cost_usd = 3", 10);
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 3, "{}", run.transcript());
    assert_eq!(dir.trials().len(), 3);
    assert!(run.stderr.contains("$3.00 of $3.00 spent [EVAL_BUDGET_USED_UP]"), "{}", run.stderr);
    let dir = test_dir("priced", "parallel = 1", 10);
    let run = dir.run(&["run", "--max-cost", "0.5", "--quiet"]);
    assert_eq!((run.code, dir.trials().len()), (3, 0), "the first call is too expensive");
    // Before the first answer, 200 tokens are reserved for it; each trial uses two.
    let dir = test_dir("sim/pass-1", "max_tokens = 210", 200);
    assert_eq!(dir.run(&["run", "--quiet"]).code, 3);
    assert_eq!(dir.trials().len(), 105);
    // A verdict that the missing trials cannot change stands.
    let dir = test_dir("sim/pass-0", "max_tokens = 210", 200);
    assert_eq!(dir.run(&["run", "--quiet"]).code, 1);
    let dir = test_dir("sim/pass-1", "deadline = 0.001\nparallel = 1", 2000);
    assert_eq!(dir.run(&["run", "--quiet"]).code, 3);
    assert!(dir.trials().len() < 2000);
}

#[test]
fn cost_budget_requires_prices() {
    let dir = test_dir("openai/unpriced", "max_cost_usd = 3", 1);
    let mut command = dir.command(&["run"]);
    let output = command.env("OPENAI_API_KEY", "k").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no price known for `openai/unpriced`"), "{stderr}");
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn target_with_only_errors_stops_early() {
    let dir = test_dir("sim/fault-400", "parallel = 1", 500);
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 3, "{}", run.transcript());
    assert_eq!(dir.trials().len(), 20);
    assert!(run.stderr.contains("[EVAL_TOO_MANY_ERRORS]"), "{}", run.stderr);
    let dir = test_dir("sim/fault-400", "parallel = 1\nmax_error_rate = 1", 30);
    dir.run(&["run", "--quiet"]);
    assert_eq!(dir.trials().len(), 30);
}

#[test]
fn many_trials_print_a_warning() {
    let run = test_dir("sim/pass-1", "trials = 10", 10).run(&["run"]);
    assert!(run.stderr.contains("100 trials: about $0.00 [EVAL_COST_WARNING]"), "{}", run.stderr);
    let run = test_dir("sim/pass-1", "trials = 9", 11).run(&["run"]);
    assert!(!run.stderr.contains("EVAL_COST_WARNING"), "{}", run.stderr);
    let run = test_dir("sim/pass-1", "cost_warning = 5", 5).run(&["run"]);
    assert!(run.stderr.contains("EVAL_COST_WARNING"), "{}", run.stderr);
}

#[test]
fn unusable_proxy_stops_the_run_and_is_named_without_its_password() {
    let table = [
        ("HTTPS_PROXY", ":::bad:secret", "not a URL of the form http://HOST:PORT"),
        ("ALL_PROXY", "socks5://user:secret@127.0.0.1:1080", "scheme `socks5` is not supported"),
    ];
    for (name, value, problem) in table {
        let dir = suite_of("https://models.invalid/v1", "", 20);
        let mut command = dir.command(&["run"]);
        command.env("OPENAI_API_KEY", "sk-test").env(name, value);
        let output = CommandOutput::from(command.output().unwrap());
        let text = output.transcript();
        assert_eq!(output.code, 3, "{text}");
        let message = format!("cannot use the proxy for models.invalid (from {name}): {problem}");
        assert!(text.contains(&message) && !text.contains("secret"), "{text}");
    }
}
