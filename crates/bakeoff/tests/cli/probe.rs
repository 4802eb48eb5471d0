//! `bakeoff probe`: findings, confirmation, and runs with the recommended limits.

use crate::support::{Provider, TestDir, profiled, stats, suite_of};
use serde_json::Value;

/// Probes a provider with this profile, then runs a suite with the recommended limits against a fresh
/// provider. Returns the report and the counters of the second provider.
fn probe_then_run(profile: &str, cases: usize) -> (Value, Value) {
    let dir = TestDir::new();
    let server = profiled(dir.path(), profile);
    let output = dir.run(&["probe", "openai/sim/echo", "--base-url", &server.base_url, "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let report = output.done();
    let line = report["line"].as_str().unwrap();
    let limits = line.trim_start_matches("limits = {").trim_end_matches('}');
    let server = profiled(dir.path(), profile);
    let dir = suite_of(&server.base_url, limits, cases);
    let output = dir.run(&["run", "--no-memory"]);
    assert_eq!(output.code, 0, "{line}\n{}", output.transcript());
    (report, stats(&server))
}

// Tests of `llm` check the accuracy in virtual time. Here latency depends on the machine, so only properties
// that do not depend on it are checked.

#[test]
fn concurrency_cap_is_found_and_its_recommendation_works() {
    let profile = "latency = { kind = \"fixed\", ms = 60 }\nconcurrency = 12";
    let (report, _) = probe_then_run(profile, 100);
    assert_ne!(report["limit"]["kind"], "not_reached", "{report:#}");
    if report["limit"]["kind"] == "cap" {
        let found = report["limit"]["connections"].as_f64().unwrap();
        assert!((2.0..=13.0).contains(&found), "{report:#}");
        assert_eq!(report["recommended"]["strategy"], "fixed");
    }
    assert!(report["requests"].as_u64().unwrap() <= 1000);
}

#[test]
fn rate_limit_is_found_and_its_recommendation_works() {
    let profile = "latency = { kind = \"fixed\", ms = 40 }\nrequests = { rate_per_s = 40, burst = 8 }\n\
                   headers = \"openai\"";
    let (report, counted) = probe_then_run(profile, 60);
    assert_eq!(report["headers"][0]["limit"], 8.0, "{report:#}");
    assert_ne!(report["limit"]["kind"], "not_reached", "{report:#}");
    assert!(counted["requests"].as_u64().unwrap() >= 60, "{counted}");
}

#[test]
fn probe_without_confirmation_is_rejected() {
    let server = Provider::start(&[]);
    let dir = TestDir::new();
    let output = dir.run(&["probe", "openai/gpt-4o-mini", "--base-url", &server.base_url]);
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    up to 1000 requests to gpt-4o-mini, each with about 12 input and at most 16 output tokens: price unknown
    error: confirmation needed, but stdin is not a terminal
      hint: `--yes` skips the confirmation
    "#);
    assert_eq!(stats(&server)["requests"], 0);
    let output = dir.run(&[
        "probe",
        "openai/gpt-4o-mini",
        "--base-url",
        &server.base_url,
        "--max-requests",
        "9",
        "--yes",
    ]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(
        output.stdout.contains("stopped early: maximum number of requests reached"),
        "{}",
        output.stdout
    );
    assert_eq!(stats(&server)["requests"], 9);
}

#[test]
fn unusable_model_is_rejected_with_a_hint() {
    let dir = suite_of("http://127.0.0.1:1/v1", "", 1);
    let render = |arguments: &[&str]| {
        let output = dir.run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        output.stderr
    };
    insta::assert_snapshot!(render(&["probe", "mini"]), @r#"
    error: unknown model `mini`
      hint: write provider/model such as `openai/gpt-4o-mini`, or define it under [models] of a suite and pass `--suite FILE`
    "#);
    insta::assert_snapshot!(render(&["probe", "openai/gpt-4o-mini"]), @r#"
    error: environment variable OPENAI_API_KEY is not set
      hint: `export OPENAI_API_KEY=…`, or set it in the file `.env` of a suite and pass `--suite FILE`
    "#);
    insta::assert_snapshot!(render(&["probe", "openai/x", "--base-url", "http://localhost:1/v1", "--max-cost", "1"]), @r#"
    error: no price known for x; --max-cost needs one
      hint: set `prices` in a suite and pass `--suite`, or limit the probe with `--max-requests`
    "#);
    // The model of the suite has an address without a listener.
    let output = dir.run(&["probe", "m", "--suite", "."]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stdout.contains("most requests failed"), "{}", output.stdout);
    assert!(output.stdout.contains("\nlast failure: cannot connect"), "{}", output.stdout);
    insta::assert_snapshot!(render(&["probe", "opnai/x"]), @r#"
    error: unknown provider `opnai`
      hint: known providers: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim, together
    "#);
}
