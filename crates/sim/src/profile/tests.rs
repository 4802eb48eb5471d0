//! Tests of profile files.

use super::*;
use std::time::Duration;

const ALL_KEYS: &str = r#"
[[profile]]
name = "rpm-300-burst-5"
items = 1500
latency = { kind = "lognormal", median_ms = 800, sigma = 0.4 }
input_tokens = 400
output_tokens = { median = 150, sigma = 0.5 }
headers = "none"
retry_after = "none"
requests = { rate_per_s = 5.0, burst = 5 }
tokens = { rate_per_s = 5000.0, burst = 20000 }
input_tokens_limit = { rate_per_s = 4000.0, burst = 8000 }
output_tokens_limit = { rate_per_s = 1000.0, burst = 2000 }
window = { requests = 100, seconds = 10, phase_s = 3 }
sliding_window = { requests = 10, seconds = 60 }
charged_output_tokens = 200
concurrency = 30
concurrency_steps = [{ at_s = 30, concurrency = 40 }, { at_s = 60, concurrency = 20 }]
knee = { k = 24, thrash_at = 200 }
steps = [{ at_s = 60, requests_per_s = 20.0 }, { at_s = 180, requests_per_s = 2.0 }]
outages = [{ from_s = 60, to_s = 90, status = 503 }]
faults = { reset = 0.01, stall = 0.02, truncated = 0.03, malformed = 0.04, empty = 0.05, status_500 = 0.06, status_201 = 0.07 }
connect_ms = 100
foreign = { requests_per_s = 2.0 }
daily_quota = 500
failures_charge = false
error_rate = 0.01
reject_ms = 40
reject_status = 503
reject_rate = 0.05

[[profile]]
"#;

#[test]
fn parses_every_key() {
    let profiles = Profile::parse_file_text(ALL_KEYS).unwrap();
    assert_eq!(
        profiles[0],
        Profile {
            name: "rpm-300-burst-5".into(),
            items: Some(1500),
            latency: Some(Latency::Lognormal { median_ms: 800.0, sigma: 0.4 }),
            input_tokens: Some(TokenCount::Fixed(400)),
            output_tokens: Some(TokenCount::Lognormal { median: 150.0, sigma: 0.5 }),
            headers: HeaderStyle::None,
            retry_after: RetryHint::None,
            requests: Some(Rate { rate_per_s: 5.0, burst: 5.0 }),
            tokens: Some(Rate { rate_per_s: 5000.0, burst: 20000.0 }),
            input_tokens_limit: Some(Rate { rate_per_s: 4000.0, burst: 8000.0 }),
            output_tokens_limit: Some(Rate { rate_per_s: 1000.0, burst: 2000.0 }),
            window: Some(FixedWindow { requests: 100, seconds: 10.0, phase_s: 3.0 }),
            sliding_window: Some(SlidingWindow { requests: 10, seconds: 60.0 }),
            charged_output_tokens: Some(200),
            concurrency: Some(30),
            concurrency_steps: vec![
                ConcurrencyStep { at_s: 30.0, concurrency: 40 },
                ConcurrencyStep { at_s: 60.0, concurrency: 20 },
            ],
            knee: Some(Knee { k: 24, thrash_at: Some(200) }),
            steps: vec![
                RateStep { at_s: 60.0, requests_per_s: 20.0 },
                RateStep { at_s: 180.0, requests_per_s: 2.0 },
            ],
            outages: vec![Outage { from_s: 60.0, to_s: 90.0, status: 503 }],
            faults: Faults {
                reset: 0.01,
                stall: 0.02,
                truncated: 0.03,
                malformed: 0.04,
                empty: 0.05,
                status_500: 0.06,
                status_201: 0.07,
            },
            connect_ms: 100.0,
            foreign: Some(ForeignTraffic { requests_per_s: 2.0 }),
            daily_quota: Some(500),
            failures_charge: false,
            error_rate: 0.01,
            reject_ms: 40.0,
            reject_status: Some(503),
            reject_rate: 0.05,
            batching: None,
        }
    );
    assert_eq!(profiles[1], Profile { name: "profile-2".into(), ..Profile::default() });
}

#[test]
fn parses_uniform_latency() {
    let text = "[[profile]]\nlatency = { kind = \"uniform\", min_ms = 1200, max_ms = 2800 }";
    let profile = Profile::parse_file_text(text).unwrap().remove(0);
    assert_eq!(profile.latency, Some(Latency::Uniform { min_ms: 1200.0, max_ms: 2800.0 }));
}

#[test]
fn parses_batching() {
    let text = "[[profile]]\nbatching = { base_ms = 1000, per_request_ms = 11.5 }";
    let profile = Profile::parse_file_text(text).unwrap().remove(0);
    assert_eq!(profile.batching, Some(Batching { base_ms: 1000.0, per_request_ms: 11.5 }));
}

#[test]
fn parses_every_header_style_and_retry_hint() {
    let parse = |key: &str, value: &str| {
        let text = format!("[[profile]]\n{key} = {value:?}");
        Profile::parse_file_text(&text).map(|mut profiles| profiles.remove(0))
    };
    let styles = ["none", "openai", "anthropic", "groq", "retry-after-only", "wrong"];
    let read: Vec<HeaderStyle> =
        styles.iter().map(|word| parse("headers", word).unwrap().headers).collect();
    use HeaderStyle as H;
    assert_eq!(read, [H::None, H::OpenAi, H::Anthropic, H::Groq, H::RetryAfterOnly, H::Wrong]);
    let hints = ["none", "exact", "ceil", "full", "60s", "http-date", "ms", "zero", "garbage"];
    let read: Vec<RetryHint> =
        hints.iter().map(|word| parse("retry_after", word).unwrap().retry_after).collect();
    use RetryHint as R;
    let minute = R::Fixed(Duration::from_secs(60));
    assert_eq!(
        read,
        [R::None, R::Exact, R::Ceil, R::Full, minute, R::HttpDate, R::Ms, R::Zero, R::Garbage]
    );
    assert!(parse("headers", "azure").is_err());
    assert!(parse("retry_after", "1.5s").is_err());
}

#[test]
fn invalid_values_are_reported_with_their_position() {
    let text = "# ä\n[[profile]]\nname = \"ä\"\nrequests = { rate_per_s = -5, burst = 5 }\n";
    let error = Profile::parse_file_text(text).unwrap_err();
    assert_eq!(error.to_string(), "line 4, column 27: -5 is not a positive number");

    let error = Profile::parse_file_text("[[profile]]\n  burst = 3\n").unwrap_err();
    let Error::File { line, column, message } = error else { panic!("{error}") };
    assert_eq!((line, column), (2, 3));
    assert!(message.starts_with("unknown field `burst`, expected one of"), "{message}");

    for bad in [
        "requests = { rate_per_s = nan, burst = 5 }",
        "requests = { rate_per_s = 1, burst = 0 }",
        "requests = { rate_per_s = 1 }",
        "window = { requests = 0, seconds = 1 }",
        "window = { requests = 1, seconds = 0 }",
        "concurrency = 0",
        "items = 0",
        "items = 10000001",
        "knee = { k = 0 }",
        "outages = [{ from_s = 1, to_s = 2, status = 200 }]",
        "error_rate = 1.5",
        "reject_rate = -0.1",
        "reject_status = 500",
        "batching = { base_ms = 0, per_request_ms = 1 }",
        "batching = { base_ms = 1000 }",
        "input_tokens = -1",
        "output_tokens = { median = 0, sigma = 1 }",
        "sliding_window = { requests = 0, seconds = 1 }",
        "sliding_window = { requests = 1 }",
        "concurrency_steps = [{ at_s = 1, concurrency = 0 }]",
        "faults = { reset = 1.5 }",
        "faults = { resets = 0.5 }",
        "connect_ms = -1",
        "latency = { kind = \"fixed\" }",
        "latency = { kind = \"uniform\", min_ms = 1 }",
        "latency = { kind = \"uniform\", min_ms = 2, max_ms = 1 }",
        "latency = { kind = \"uniform\", min_ms = 1, max_ms = inf }",
        "latency = { kind = \"fixed\", ms = 1, sigma = 1 }",
        "latency = { kind = \"lognormal\", median_ms = -1, sigma = 1 }",
    ] {
        let text = format!("[[profile]]\n{bad}\n");
        let error = Profile::parse_file_text(&text).unwrap_err();
        assert!(matches!(error, Error::File { line: 2, .. }), "{bad}: {error:?}");
    }
}

#[test]
fn inconsistent_keys_are_reported_with_the_profile_name() {
    for (bad, part) in [
        ("steps = [{ at_s = 1, requests_per_s = 1 }]", "`requests`, which is missing"),
        (
            "requests = { rate_per_s = 1, burst = 1 }\n\
             steps = [{ at_s = 2, requests_per_s = 1 }, { at_s = 1, requests_per_s = 1 }]",
            "in the order",
        ),
        ("concurrency_steps = [{ at_s = 1, concurrency = 1 }]", "`concurrency`, which is missing"),
        (
            "concurrency = 1\n\
             concurrency_steps = [{ at_s = 2, concurrency = 1 }, { at_s = 2, concurrency = 3 }]",
            "in the order",
        ),
        ("faults = { reset = 0.6, stall = 0.6 }", "more than 1"),
        ("outages = [{ from_s = 2, to_s = 1 }]", "before"),
        ("foreign = { requests_per_s = 1 }", "both are missing"),
        ("knee = { k = 5, thrash_at = 4 }", "below `k`"),
        (
            "knee = { k = 5 }\nbatching = { base_ms = 1000, per_request_ms = 10 }",
            "exclude each other",
        ),
        ("reject_rate = 1.0", "below 1"),
    ] {
        let text = format!("[[profile]]\nname = \"odd\"\n{bad}\n");
        let message = Profile::parse_file_text(&text).unwrap_err().to_string();
        assert!(message.starts_with("profile `odd`: ") && message.contains(part), "{message}");
    }
    assert_eq!(Profile::parse_file_text("").unwrap_err(), Error::NoProfile);
}

#[test]
fn docs_describe_every_key_and_their_example_is_valid() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sim.md");
    let page = std::fs::read_to_string(path).unwrap();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(Profile::parse_file_text(example).unwrap()[0].name, "example");
    // The parser lists its keys in the error about an unknown one.
    let error = Profile::parse_file_text("[[profile]]\nnone = 1").unwrap_err().to_string();
    let keys: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert!(keys.len() > 20, "{error}");
    for key in keys.into_iter().filter(|key| !["name", "items"].contains(key)) {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}
