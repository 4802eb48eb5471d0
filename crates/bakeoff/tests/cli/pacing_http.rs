//! Pacing over loopback HTTP: no trial is lost, few requests are rejected, announced blocks are respected.

use crate::support::{TestDir, profiled, stats, suite_of};
use serde_json::Value;
use std::time::Duration;

#[test]
fn http_runs_lose_no_trial_and_see_few_rejections() {
    let profiles = [
        "latency = { kind = \"fixed\", ms = 30 }\nconcurrency = 30",
        "latency = { kind = \"fixed\", ms = 20 }\nrequests = { rate_per_s = 50, burst = 5 }",
        "latency = { kind = \"fixed\", ms = 30 }\nconcurrency = 30\n\
         outages = [{ from_s = 0.2, to_s = 0.7 }]",
    ];
    for profile in profiles {
        let dir = TestDir::new();
        let server = profiled(dir.path(), profile);
        let dir = suite_of(&server.base_url, "strategy = \"auto\"", 100);
        let output = dir.run(&["run", "--no-memory"]);
        assert_eq!(output.code, 0, "{profile}\n{}", output.transcript());
        let counted = stats(&server);
        assert_eq!(counted["answered"], 100, "{profile}");
        let rejected = counted["refused"]["429"].as_u64().unwrap_or(0);
        assert!(rejected <= 50, "{profile}: {rejected} rejections");
    }
}

#[test]
fn strict_strategy_sends_nothing_during_an_announced_block() {
    const BLOCK: Duration = Duration::from_secs(1);
    /// A request may already be in flight when a rejection arrives.
    const ON_ITS_WAY: Duration = Duration::from_millis(100);
    let dir = TestDir::new();
    let profile = "latency = { kind = \"fixed\", ms = 10 }\nretry_after = \"1s\"\n\
                   requests = { rate_per_s = 20, burst = 5 }";
    let server = profiled(dir.path(), profile);
    // Slightly more than the burst: one block, after which all fit.
    let dir = suite_of(&server.base_url, "strategy = \"auto\"", 9);
    let output = dir.run(&["run", "--no-memory", "--retry-after", "strict"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let text = std::fs::read_to_string(dir.run_folder().join("http.jsonl")).unwrap();
    let entries: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sent = |entry: &Value| millis(entry["timestamp"].as_str().unwrap());
    let rejected: Vec<&Value> = entries.iter().filter(|entry| entry["status"] == 429).collect();
    assert!(!rejected.is_empty(), "nothing was rejected: {text}");
    for rejection in rejected {
        let back = sent(rejection) + rejection["latency_ms"].as_f64().unwrap();
        let start = back + ON_ITS_WAY.as_secs_f64() * 1e3;
        let end = back + BLOCK.as_secs_f64() * 1e3 - 1.0;
        let early: Vec<&Value> =
            entries.iter().filter(|entry| (start..end).contains(&sent(entry))).collect();
        assert!(early.is_empty(), "after {rejection}: {early:?}");
    }
}

/// Returns the milliseconds since the start of the month of a time like `2026-11-15T04:23:59.123Z`.
fn millis(time: &str) -> f64 {
    let (date, clock) = time.split_once('T').unwrap();
    let day: f64 = date.rsplit('-').next().unwrap().parse().unwrap();
    let clock = clock.trim_end_matches('Z');
    let parts: Vec<f64> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    (((day * 24.0 + parts[0]) * 60.0 + parts[1]) * 60.0 + parts[2]) * 1e3
}
