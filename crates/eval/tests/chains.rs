//! Chain targets with simulated models, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod support;

use bakeoff_core::{ErrorKind, NanoDollars, Status, Usage};
use bakeoff_eval::estimate;
use bakeoff_pace::Strategy;
use bakeoff_suite::Budget;
use support::{COMBINATIONS, RUN, TestRun, TestSuite};

/// A planner with a fixed answer, and a solver that repeats its prompt.
const SUITE: &str = r#"
[roles]
planner = "small"
solver = "large"

[sim.planning]
default = "divide"
latency_ms = 30
output_tokens = 10

[sim.solving]
latency_ms = 200
output_tokens = 5

[models.small]
provider = "sim"
model = "planning"
prices = { input = 0, output = 1 }

[models.large]
provider = "sim"
model = "solving"
prices = { input = 0, output = 10 }

[[target]]
name = "pipeline"
[[target.chain]]
role = "planner"
prompt = "Plan: {{ question }}"
[[target.chain]]
role = "solver"
system = "You were told to {{ planner }}."
prompt = "{{ planner }}, then {{ question }}"

[cases]
inline = [{ id = "one", question = "2+2" }]

[[check]]
kind = "contains"
value = "{{ question }}"
required = false
"#;

#[tokio::test(start_paused = true)]
async fn later_steps_see_earlier_answers_and_costs_add_up() {
    let test = TestSuite::new(SUITE);
    let run = test.run(RUN).await;
    let attempt = run.only();
    let requests = run.lines("one/trial-1/trace.jsonl");
    let exchanges: Vec<(&str, bool)> = requests
        .iter()
        .map(|line| (line["step"].as_str().unwrap(), line.get("request").is_some()))
        .collect();
    assert_eq!(
        exchanges,
        [("planner", true), ("planner", false), ("solver", true), ("solver", false)]
    );
    let messages = requests[2]["request"]["messages"].to_string();
    assert!(messages.contains("You were told to divide."), "{messages}");
    assert!(messages.contains("divide, then 2+2"), "{messages}");
    let answers: Vec<String> =
        [1, 3].map(|line| requests[line]["response"]["content"].to_string()).into();
    assert!(answers[0].contains("divide"), "{answers:?}");
    // The answer of the last step is the chain's.
    assert!(answers[1].contains(&attempt.output) && !attempt.output.is_empty(), "{answers:?}");
    let usage = attempt.usage.unwrap();
    assert_eq!(usage.output, 15);
    assert_eq!(attempt.cost, Some(NanoDollars(10 * 1_000 + 5 * 10_000)));
    assert_eq!((attempt.timing.latency_ms, attempt.cached), (230, false));
    assert_eq!(attempt.saved, NanoDollars(0));
}

#[tokio::test(start_paused = true)]
async fn failed_step_is_named_and_earlier_steps_are_paid_for() {
    let suite = SUITE
        .replace("model = \"solving\"\n", "model = \"fault-503\"\nlimits = { max_retries = 1 }\n");
    let test = TestSuite::new(&suite);
    let run = test.run(RUN).await;
    let attempt = run.only();
    let error = attempt.error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.message.starts_with("step `solver`: 503"), "{}", error.message);
    assert_eq!((attempt.output.as_str(), run.results[0].status), ("", Status::Error));
    assert_eq!(attempt.cost, Some(NanoDollars(10_000)));
    assert_eq!((attempt.timing.latency_ms, attempt.timing.retries), (30, 1));
    // The trace has the failed request.
    assert_eq!(run.lines("one/trial-1/trace.jsonl").len(), 4);

    let broken = SUITE.replace("{{ planner }}, then", "{{ planner.nothing.more }}, then");
    test.rewrite(&broken);
    let run = test.run(RUN).await;
    let error = run.only().error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Template);
    assert!(error.message.starts_with("step `solver`: prompt: "), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn identical_steps_are_separate_samples() {
    let suite = SUITE
        .replace("role = \"solver\"\nsystem = \"You were told to {{ planner }}.\"\nprompt = \"{{ planner }}, then {{ question }}\"",
            "role = \"planner\"\nname = \"again\"\nprompt = \"Plan: {{ question }}\"");
    let test = TestSuite::new(&suite);
    let run = test.run(RUN).await;
    assert_eq!((run.only().cached, run.lines("http.jsonl").len()), (false, 2));
}

/// The suite with candidates for both roles.
fn search_suite() -> String {
    format!(
        "{SUITE}{}",
        r#"
[select.roles]
planner = ["small", "large"]
solver = ["small", "large", "sim/third"]
"#
    )
    .replace(
        "inline = [{ id = \"one\", question = \"2+2\" }]",
        "inline = [{ question = \"2+2\" }, { question = \"3+3\" }, { question = \"4+4\" }]",
    )
}

fn attempts_of<'a>(run: &'a TestRun, target: &str) -> Vec<&'a bakeoff_core::Attempt> {
    let named = run.results.iter().filter(|result| result.key.target == *target);
    named.map(|result| &result.attempt).collect()
}

#[tokio::test(start_paused = true)]
async fn combinations_share_answers_of_identical_steps() {
    let test = TestSuite::new(&search_suite());
    let run = test.run(COMBINATIONS).await;
    assert_eq!(run.results.len(), 6 * 3);
    assert!(run.results.iter().all(|result| result.attempt.error.is_none()));
    // Two planners are called once for each case, and a solver for each combination.
    let requests = run.lines("http.jsonl").len();
    assert_eq!(requests, (2 + 6) * 3);
    for target in ["pipeline[planner=small,solver=small]", "pipeline[planner=small,solver=large]"] {
        for attempt in attempts_of(&run, target) {
            let plan = 30;
            let solving = if target.contains("solver=small") { 30 } else { 200 };
            // A shared answer counts with its original latency.
            assert_eq!(attempt.timing.latency_ms, plan + solving, "{target}");
            assert!(!attempt.cached);
        }
    }
    // Each plan is paid for once; its other uses are saved.
    let saved = |planner: &str| -> i64 {
        let all = run.results.iter().filter(|result| {
            result.key.target.as_str().starts_with(&format!("pipeline[planner={planner},"))
        });
        all.map(|result| result.attempt.saved.0).sum()
    };
    assert_eq!(saved("small"), 3 * 2 * 10_000);
    assert_eq!(saved("large"), 3 * 2 * 50_000);
}

#[test]
fn estimate_includes_all_steps() {
    let suite = TestSuite::new(SUITE).load(RUN).unwrap();
    let plan = estimate(&suite);
    let target = &plan.targets[0];
    assert_eq!(target.what, "sim/planning, then sim/solving");
    // 9 characters; "You were told to {200 tokens}." and "{200 tokens}, then 2+2".
    let expected = Usage { input: 3 + 205 + 203, output: 400, ..Usage::default() };
    assert_eq!(target.usage, Some(expected));
    assert_eq!(target.cost, Some(NanoDollars(200 * 1_000 + 200 * 10_000)));
}

#[tokio::test]
async fn budgets_need_prices_of_all_steps_and_limits_apply_to_all_steps() {
    let local =
        "provider = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"unheard-of\"";
    let test = TestSuite::new(&SUITE.replace(
        "provider = \"sim\"\nmodel = \"solving\"\nprices = { input = 0, output = 10 }",
        local,
    ));
    let budget = Budget { cost: Some(NanoDollars(1)), ..Budget::default() };
    let mut config = test.config();
    config.budget = budget;
    let error = test.try_run(RUN, config).await.err().unwrap().to_string();
    assert!(error.starts_with("no price known for `openai/unheard-of`"), "{error}");

    // `proactive` needs a rate, and one of the two steps has none.
    let test = TestSuite::new(&SUITE.replace(
        "[models.small]\n",
        "[models.small]\nlimits = { strategy = \"proactive\", rpm = 10 }\n",
    ));
    let mut config = test.config();
    config.limits.strategy = Some(Strategy::Proactive);
    let error = test.try_run(RUN, config).await.err().unwrap().to_string();
    assert!(error.starts_with("limits of the target `pipeline`: "), "{error}");
}

#[tokio::test]
async fn models_with_tools_share_answers_to_identical_conversations() {
    let model = "provider = \"sim\"\nmodel = \"working\"\nprices = { input = 0, output = 1 }";
    let test = TestSuite::new(&format!(
        r#"
[models.one]
{model}
[models.other]
{model}
[sim.working]
default = "done"
output_tokens = 10
calls = [{{ tool = "list_files" }}]
[[target]]
name = "agent"
model = "role/worker"
tools = ["list_files"]
prompt = "{{{{ task }}}}"
[select.roles]
worker = ["one", "other"]
[cases]
inline = [{{ task = "look around" }}]
[[check]]
kind = "equals"
value = "done"
"#
    ));
    let run = test.run(COMBINATIONS).await;
    let attempts: Vec<_> = run.results.iter().map(|result| &result.attempt).collect();
    assert!(run.results.iter().all(|result| result.status == Status::Passed), "{attempts:?}");
    // Two turns of ten tokens each, for the first and the second combination.
    let cost = NanoDollars(2 * 10_000);
    assert!(attempts.iter().all(|attempt| attempt.cost == Some(cost)), "{attempts:?}");
    assert_eq!(attempts.iter().map(|attempt| attempt.saved.0).sum::<i64>(), cost.0);
    assert_eq!(run.lines("http.jsonl").len(), 2);
}
