//! `bakeoff probe`: what it finds, what it asks, and that its advice holds.

use crate::support::{Provider, Workplace, profiled, stats, suite_of};
use serde_json::Value;

/// Probes a provider with this profile; then runs a suite with what was recommended, against a
/// provider that has seen nothing yet. Returns the report and what that provider has counted.
fn probed_and_run(profile: &str, cases: usize) -> (Value, Value) {
    let place = Workplace::new();
    let server = profiled(place.path(), profile);
    let ran = place.run(&["probe", "openai/sim/echo", "--base-url", &server.base_url, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let line = report["line"].as_str().unwrap();
    let limits = line.trim_start_matches("limits = {").trim_end_matches('}');
    let server = profiled(place.path(), profile);
    let place = suite_of(&server.base_url, limits, cases);
    let ran = place.run(&["run", "--no-memory"]);
    assert_eq!(ran.code, 0, "{line}\n{}", ran.shown());
    (report, stats(&server))
}

// How exact a probe is, is told in virtual time by the tests of `llm`. Here requests take as long as the
// machine lets them, so only what does not depend on that is looked at.

#[test]
fn a_cap_is_found_and_its_advice_works() {
    let profile = "latency = { kind = \"fixed\", ms = 60 }\nconcurrency = 12";
    let (report, _) = probed_and_run(profile, 100);
    assert_ne!(report["limit"]["kind"], "not_reached", "{report:#}");
    if report["limit"]["kind"] == "cap" {
        let found = report["limit"]["connections"].as_f64().unwrap();
        assert!((2.0..=13.0).contains(&found), "{report:#}");
        assert_eq!(report["recommended"]["strategy"], "fixed");
    }
    assert!(report["requests"].as_u64().unwrap() <= 1000);
}

#[test]
fn a_rate_is_found_and_its_advice_works() {
    let profile = "latency = { kind = \"fixed\", ms = 40 }\nrequests = { rate_per_s = 40, burst = 8 }\n\
                   headers = \"openai\"";
    let (report, counted) = probed_and_run(profile, 60);
    assert_eq!(report["headers"][0]["limit"], 8.0, "{report:#}");
    assert_ne!(report["limit"]["kind"], "not_reached", "{report:#}");
    assert!(counted["requests"].as_u64().unwrap() >= 60, "{counted}");
}

#[test]
fn nothing_is_spent_without_being_asked() {
    let server = Provider::start(&[]);
    let place = Workplace::new();
    let ran = place.run(&["probe", "openai/gpt-4o-mini", "--base-url", &server.base_url]);
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 2
    --- stdout
    --- stderr
    up to 1000 requests to gpt-4o-mini, each about 12 tokens in and at most 16 out: price unknown
    error: a probe spends money, and there is nobody to ask
      hint: `--yes` spends without asking
    "#);
    assert_eq!(stats(&server)["requests"], 0);
    let ran = place.run(&[
        "probe",
        "openai/gpt-4o-mini",
        "--base-url",
        &server.base_url,
        "--max-requests",
        "9",
        "--yes",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("ended early: no more requests are allowed"), "{}", ran.stdout);
    assert_eq!(stats(&server)["requests"], 9);
}

#[test]
fn a_model_that_cannot_be_called_is_explained() {
    let place = suite_of("http://127.0.0.1:1/v1", "", 1);
    let shown = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
        ran.stderr
    };
    insta::assert_snapshot!(shown(&["probe", "mini"]), @r#"
    error: there is no model `mini`
      hint: write provider/model such as `openai/gpt-4o-mini`, or `--suite FILE` for a table under its [models]
    "#);
    insta::assert_snapshot!(shown(&["probe", "openai/gpt-4o-mini"]), @r#"
    error: environment variable OPENAI_API_KEY is not set
      hint: `export OPENAI_API_KEY=…`
    "#);
    insta::assert_snapshot!(shown(&["probe", "openai/x", "--base-url", "http://localhost:1/v1", "--max-cost", "1"]), @r#"
    error: nobody knows the price of x, so --max-cost cannot be kept
      hint: give `prices` in a suite and use `--suite`, or bound it by `--max-requests`
    "#);
    // The model of the suite is a simulated one behind an address where nobody listens.
    let ran = place.run(&["probe", "m", "--suite", "."]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stdout.contains("most requests failed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nlast failure: cannot connect"), "{}", ran.stdout);
    insta::assert_snapshot!(shown(&["probe", "opnai/x"]), @r#"
    error: unknown provider `opnai`
      hint: known here: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim, together
    "#);
}
