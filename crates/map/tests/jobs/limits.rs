//! Tests of duration and number of requests in virtual time, and of the automatic pack size.

use crate::support::{JobFixture, model};
use bakeoff_llm::probe::{ProbeConfig, probe};
use bakeoff_map::{BindingLimit, HeldRows, Job, PackSize};
use bakeoff_pace::{Limits, Strategy};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Provider profile with sixty requests per minute.
const SIXTY_RPM: &str = "latency = { kind = \"lognormal\", median_ms = 3000, sigma = 0.6 }\n\
                     requests = { rate_per_s = 1, burst = 1 }";

#[tokio::test(start_paused = true)]
async fn job_takes_little_longer_than_the_rate_limit_requires() {
    let strategies =
        [Limits::auto().rpm(60), Limits::auto(), Limits::new(Strategy::Proactive).rpm(60).burst(1)];
    for limits in strategies {
        let mut job = JobFixture::new(20_000, "map").profile(SIXTY_RPM).limits(limits);
        job.config.pack = Some(PackSize::Items(20));
        let start = Instant::now();
        let outcome = job.run().await;
        let (elapsed, ideal) = (start.elapsed(), Duration::from_secs(1000));
        assert_eq!(outcome.progress.requests, 1000, "{limits:?}");
        assert_eq!(job.check(20_000), 20_000);
        assert!(elapsed <= ideal.mul_f64(1.1), "{limits:?}: {elapsed:?}");
    }
}

/// Returns the maximum number of rows with answers that could not be written yet.
async fn max_waiting(held: HeldRows) -> usize {
    // Occasionally a response takes a hundred times as long as usual.
    let slow = "latency = { kind = \"lognormal\", median_ms = 100, sigma = 2.0 }";
    let mut job = JobFixture::new(2000, "map").profile(slow).limits(Limits::fixed(20));
    job.config.max_held = held;
    let journal = bakeoff_map::journal_path(&job.config.output);
    let max = std::sync::atomic::AtomicUsize::new(0);
    let written = std::sync::atomic::AtomicUsize::new(0);
    job.run_until(|progress| {
        // Rows that are journaled now and were not written before had to wait.
        let text = std::fs::read_to_string(&journal).unwrap();
        let journaled = 10 * text.matches("{\"asked\":").count();
        let before = written.swap(progress.done as usize, Ordering::Relaxed);
        max.fetch_max(journaled - before, Ordering::Relaxed);
        false
    })
    .await;
    assert_eq!(job.check(2000), 2000);
    max.into_inner()
}

#[tokio::test(start_paused = true)]
async fn rows_waiting_behind_a_slow_pack_are_bounded() {
    let max = max_waiting(HeldRows { rows: 100, ..HeldRows::default() }).await;
    assert!((50..=100).contains(&max), "{max}");
    // `text` and `"row-1234"` are 14 bytes.
    let max = max_waiting(HeldRows { bytes: 100 * 14, ..HeldRows::default() }).await;
    assert!((50..=120).contains(&max), "{max}");
    // One pack is always allowed.
    let max = max_waiting(HeldRows { rows: 0, bytes: 0 }).await;
    assert_eq!(max, 10, "one pack");
}

#[tokio::test(start_paused = true)]
async fn larger_packs_need_fewer_requests() {
    for (pack, requests) in [(1, 200), (7, 29), (20, 10), (200, 3)] {
        let mut job = JobFixture::new(200, "map");
        job.config.pack = Some(PackSize::Items(pack));
        // The token budget only limits the largest packs.
        job.config.task.max_tokens_per_request = 4500;
        assert_eq!(job.run().await.progress.requests, requests, "{pack}");
        assert_eq!(job.check(200), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_complete_with_every_simple_strategy() {
    for strategy in [Strategy::Reactive, Strategy::Proactive, Strategy::None] {
        let limits = Limits::new(strategy);
        let limits = if strategy == Strategy::Proactive { limits.rpm(60) } else { limits };
        let profile = "latency = { kind = \"fixed\", ms = 500 }\nrequests = { rate_per_s = 1, burst = 10 }\nretry_after = \"exact\"";
        let job = JobFixture::new(300, "map").profile(profile).limits(limits);
        let outcome = job.run().await;
        assert_eq!(job.check(300), 300, "{strategy}");
        assert_eq!(outcome.progress.requests, 30, "{strategy}");
    }
}

/// Returns the pack size and binding limit for the limits that a probe of the provider finds.
async fn pack_size_after_probe(profile: &str) -> (u32, BindingLimit) {
    let fixture = JobFixture::new(100, "map").profile(profile);
    let client = fixture.client();
    let config = ProbeConfig::default().max_time(Duration::from_secs(600));
    let report = probe(&client, &model("echo").1, &config, &mut |_| {}).await.unwrap();
    let limits = report.recommendation.unwrap().limits();
    let mut fixture = fixture.limits(limits);
    fixture.config.pack = Some(PackSize::Auto);
    let job: Job = fixture.plan_job().unwrap();
    let choice = job.plan().choice.unwrap();
    assert_eq!(job.plan().pack, choice.items);
    (choice.items, choice.binding)
}

#[tokio::test(start_paused = true)]
async fn probed_limits_determine_the_pack_size() {
    let latency = "latency = { kind = \"fixed\", ms = 300 }\nheaders = \"openai\"";
    // Requests bind.
    let requests = format!(
        "{latency}\nrequests = {{ rate_per_s = 1, burst = 60 }}\ntokens = {{ rate_per_s = 5000, burst = 300000 }}"
    );
    let (items, binding) = pack_size_after_probe(&requests).await;
    assert!(matches!(binding, BindingLimit::Requests { .. }), "{binding:?}");
    assert!(items >= 20, "{items}");
    // Tokens bind.
    let tokens = format!(
        "{latency}\nrequests = {{ rate_per_s = 50, burst = 3000 }}\ntokens = {{ rate_per_s = 200, burst = 12000 }}"
    );
    let (items, binding) = pack_size_after_probe(&tokens).await;
    assert!(matches!(binding, BindingLimit::Tokens { .. }), "{binding:?}");
    assert_eq!(items, 1);
}
