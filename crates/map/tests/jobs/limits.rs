//! How long jobs take and how many requests they make, in virtual time; and how packs are chosen.

use crate::support::{Place, model};
use bakeoff_llm::probe::{ProbeConfig, probe};
use bakeoff_map::{Binding, HeldRows, Job, PackSize};
use bakeoff_pace::{Limits, Strategy};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Sixty requests per minute, one after the other.
const SIXTY: &str = "latency = { kind = \"lognormal\", median_ms = 3000, sigma = 0.6 }\n\
                     requests = { rate_per_s = 1, burst = 1 }";

#[tokio::test(start_paused = true)]
async fn twenty_thousand_rows_take_little_more_than_the_requests_that_they_need() {
    let strategies =
        [Limits::auto().rpm(60), Limits::auto(), Limits::new(Strategy::Proactive).rpm(60).burst(1)];
    for limits in strategies {
        let mut job = Place::new(20_000, "map").profile(SIXTY).limits(limits);
        job.config.pack = Some(PackSize::Items(20));
        let start = Instant::now();
        let finished = job.run().await;
        let (took, ideal) = (start.elapsed(), Duration::from_secs(1000));
        assert_eq!(finished.progress.requests, 1000, "{limits:?}");
        assert_eq!(job.check(20_000), 20_000);
        assert!(took <= ideal.mul_f64(1.1), "{limits:?}: {took:?}");
    }
}

/// Most rows that had answers and could not be written yet.
async fn most_waiting(held: HeldRows) -> usize {
    // Now and then an answer takes a hundred times as long as most.
    let slow = "latency = { kind = \"lognormal\", median_ms = 100, sigma = 2.0 }";
    let mut job = Place::new(2000, "map").profile(slow).limits(Limits::fixed(20));
    job.config.held = held;
    let journal = bakeoff_map::journal_of(&job.config.output);
    let most = std::sync::atomic::AtomicUsize::new(0);
    let written = std::sync::atomic::AtomicUsize::new(0);
    job.run_until(|progress| {
        // What is journaled now and was not written before had to wait.
        let text = std::fs::read_to_string(&journal).unwrap();
        let journaled = 10 * text.matches("{\"asked\":").count();
        let before = written.swap(progress.done as usize, Ordering::Relaxed);
        most.fetch_max(journaled - before, Ordering::Relaxed);
        false
    })
    .await;
    assert_eq!(job.check(2000), 2000);
    most.into_inner()
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_behind_a_slow_one_are_bounded() {
    let most = most_waiting(HeldRows { rows: 100, ..HeldRows::default() }).await;
    assert!((50..=100).contains(&most), "{most}");
    // `text` and `"row-1234"` are 14 bytes.
    let most = most_waiting(HeldRows { bytes: 100 * 14, ..HeldRows::default() }).await;
    assert!((50..=120).contains(&most), "{most}");
    // However large a row is, it is asked about.
    let most = most_waiting(HeldRows { rows: 0, bytes: 0 }).await;
    assert_eq!(most, 10, "a pack");
}

#[tokio::test(start_paused = true)]
async fn packs_save_requests() {
    for (pack, requests) in [(1, 200), (7, 29), (20, 10), (200, 3)] {
        let mut job = Place::new(200, "map");
        job.config.pack = Some(PackSize::Items(pack));
        // A budget that is not the limit, but for the largest packs.
        job.config.task.max_tokens_per_request = 4500;
        assert_eq!(job.run().await.progress.requests, requests, "{pack}");
        assert_eq!(job.check(200), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn the_three_strategies_of_old_bring_all_rows_through() {
    for strategy in [Strategy::Reactive, Strategy::Proactive, Strategy::None] {
        let limits = Limits::new(strategy);
        let limits = if strategy == Strategy::Proactive { limits.rpm(60) } else { limits };
        let profile = "latency = { kind = \"fixed\", ms = 500 }\nrequests = { rate_per_s = 1, burst = 10 }\nretry_after = \"exact\"";
        let job = Place::new(300, "map").profile(profile).limits(limits);
        let finished = job.run().await;
        assert_eq!(job.check(300), 300, "{strategy}");
        assert_eq!(finished.progress.requests, 30, "{strategy}");
    }
}

/// What a probe of a provider advises, and how many items are packed with that.
async fn probed(profile: &str) -> (u32, Binding) {
    let place = Place::new(100, "map").profile(profile);
    let client = place.client();
    let config = ProbeConfig::default().max_time(Duration::from_secs(600));
    let report = probe(&client, &model("echo").1, &config, &mut |_| {}).await.unwrap();
    let limits = report.recommendation.unwrap().limits();
    let mut place = place.limits(limits);
    place.config.pack = Some(PackSize::Auto);
    let job: Job = place.job().unwrap();
    let choice = job.plan().choice.unwrap();
    assert_eq!(job.plan().pack, choice.items);
    (choice.items, choice.binding)
}

#[tokio::test(start_paused = true)]
async fn what_a_probe_finds_decides_how_many_items_are_packed() {
    let latency = "latency = { kind = \"fixed\", ms = 300 }\nheaders = \"openai\"";
    // Few requests, and many tokens for each of them.
    let requests = format!(
        "{latency}\nrequests = {{ rate_per_s = 1, burst = 60 }}\ntokens = {{ rate_per_s = 5000, burst = 300000 }}"
    );
    let (items, binding) = probed(&requests).await;
    assert!(matches!(binding, Binding::Requests { .. }), "{binding:?}");
    assert!(items >= 20, "{items}");
    // Many requests, and few tokens for each of them.
    let tokens = format!(
        "{latency}\nrequests = {{ rate_per_s = 50, burst = 3000 }}\ntokens = {{ rate_per_s = 200, burst = 12000 }}"
    );
    let (items, binding) = probed(&tokens).await;
    assert!(matches!(binding, Binding::Tokens { .. }), "{binding:?}");
    assert_eq!(items, 1);
}
