//! Tests of the engine through its public API, in virtual time.

use super::*;
use crate::TokenCount;
use crate::{
    Batching, ConcurrencyStep, Fault, Faults, FixedWindow, ForeignTraffic, HeaderStyle, Knee,
    Outage, Rate, RateStep, RetryHint, SlidingWindow,
};
use bakeoff_core::{Message, Request};

const MS: Duration = Duration::from_millis(1);

fn request(model: &str) -> Request {
    Request { model: model.into(), messages: vec![Message::user("hi")], ..Request::default() }
}

fn with_profile(profile: Profile) -> Engine {
    Engine::new(Config { seed: 1, profile: Some(profile), ..Config::default() })
}

fn ask(engine: &Engine, model: &str, ordinal: u32, now: Duration) -> Reply {
    engine.respond(&SimRequest { request: &request(model), trial: 1, ordinal, now })
}

/// Returns the number of answers when a request arrives every `every` until `until`.
fn answered(profile: Profile, every: Duration, until: Duration) -> u64 {
    let engine = with_profile(profile);
    let mut now = Duration::ZERO;
    for ordinal in 0.. {
        if now >= until {
            break;
        }
        ask(&engine, "echo", ordinal, now);
        now += every;
    }
    engine.stats().answered
}

fn status(reply: &Reply) -> u16 {
    match &reply.outcome {
        Outcome::Answer(_) | Outcome::Broken(_) => 200,
        Outcome::Refused { status, .. } => *status,
    }
}

fn fixed(ms: f64) -> Option<Latency> {
    Some(Latency::Fixed { ms })
}

#[test]
fn answers_depend_only_on_seed_trial_and_ordinal() {
    let text = |seed, model: &str, trial, ordinal, now| {
        let engine = Engine::new(Config { seed, ..Config::default() });
        ask(&engine, "echo", 9, Duration::ZERO);
        let request = request(model);
        match engine.respond(&SimRequest { request: &request, trial, ordinal, now }).outcome {
            Outcome::Answer(response) => response.text(),
            other => panic!("{other:?}"),
        }
    };
    let base = text(1, "sim/prose", 1, 1, MS);
    assert_eq!(base, text(1, "prose", 1, 1, MS * 9));
    for other in
        [text(2, "prose", 1, 1, MS), text(1, "prose", 2, 1, MS), text(1, "prose", 1, 2, MS)]
    {
        assert_ne!(base, other);
    }
}

#[test]
fn bucket_admits_its_burst_then_its_rate() {
    let requests = Some(Rate { rate_per_s: 5.0, burst: 5.0 });
    let profile = Profile { requests, ..Profile::default() };
    assert_eq!(answered(profile.clone(), MS, MS * 10_000), 5 + 49);
    let steps = vec![RateStep { at_s: 5.0, requests_per_s: 50.0 }];
    assert_eq!(answered(Profile { steps, ..profile.clone() }, MS, MS * 10_000), 5 + 25 + 249);
    let foreign = Some(ForeignTraffic { requests_per_s: 4.0 });
    assert_eq!(answered(Profile { foreign, ..profile.clone() }, MS, MS * 10_000), 5 + 9);
    let outages = vec![Outage { from_s: 0.0, to_s: 9.0, status: 503 }];
    assert_eq!(answered(Profile { outages, ..profile.clone() }, MS, MS * 10_000), 5 + 4);
    // Where rejections are charged, constant retries keep the bucket empty.
    assert_eq!(answered(Profile { failures_charge: true, ..profile }, MS, MS * 10_000), 5);
}

#[test]
fn token_bucket_charges_prompt_and_answer_together() {
    let profile = Profile {
        tokens: Some(Rate { rate_per_s: 50.0, burst: 100.0 }),
        input_tokens: Some(TokenCount::Fixed(40)),
        output_tokens: Some(TokenCount::Fixed(60)),
        ..Profile::default()
    };
    // One at time zero and one every two seconds.
    assert_eq!(answered(profile, MS, MS * 9_999), 1 + 4);
}

#[test]
fn window_quota_and_concurrency_limits_reject_excess_requests() {
    let window = Some(FixedWindow { requests: 7, seconds: 4.0, phase_s: 1.0 });
    // Windows end at 3 s and 7 s.
    assert_eq!(answered(Profile { window, ..Profile::default() }, MS, MS * 10_000), 21);
    let concurrency = Some(3);
    let profile = Profile { concurrency, latency: fixed(1000.0), ..Profile::default() };
    assert_eq!(answered(profile, MS, MS * 10_000), 30);

    let engine = with_profile(Profile { daily_quota: Some(2), ..Profile::default() });
    let replies: Vec<Reply> = (0..3).map(|n| ask(&engine, "echo", n, MS)).collect();
    assert_eq!(replies.iter().map(status).collect::<Vec<_>>(), [200, 200, 429]);
    assert!(matches!(replies[2].outcome, Outcome::Refused { code: "insufficient_quota", .. }));
    assert_eq!(status(&ask(&engine, "echo", 4, Duration::from_secs(86_401))), 200);
}

#[test]
fn sliding_window_counts_admitted_requests_only() {
    let sliding_window = Some(SlidingWindow { requests: 7, seconds: 4.0 });
    // Bursts at 0 s, 4 s and 8 s, although requests arrive all the time.
    let profile = Profile { sliding_window, ..Profile::default() };
    assert_eq!(answered(profile.clone(), MS, MS * 10_000), 21);
    let retry_after = RetryHint::Ceil;
    let engine = with_profile(Profile { retry_after, ..profile });
    (0..7).for_each(|n| drop(ask(&engine, "echo", n, MS * 500)));
    let rejected = ask(&engine, "echo", 7, MS * 1000);
    assert_eq!(rejected.headers, [("retry-after".to_owned(), "4".to_owned())]);
}

#[test]
fn concurrency_steps_change_the_limit() {
    let step = |at_s, concurrency| ConcurrencyStep { at_s, concurrency };
    let profile = Profile {
        concurrency: Some(3),
        concurrency_steps: vec![step(3.0, 10), step(6.0, 1)],
        latency: fixed(1000.0),
        ..Profile::default()
    };
    // 3 and 10 per second for three seconds each, then 1 per second.
    assert_eq!(answered(profile, MS, MS * 10_000), 9 + 30 + 4);
}

#[test]
fn fixed_retry_after_applies_to_concurrency_limits() {
    let profile = Profile {
        concurrency: Some(1),
        latency: fixed(1000.0),
        retry_after: RetryHint::Fixed(Duration::from_secs(20)),
        ..Profile::default()
    };
    let engine = with_profile(profile);
    ask(&engine, "echo", 0, MS);
    let rejected = ask(&engine, "echo", 1, MS);
    assert_eq!(status(&rejected), 429);
    assert_eq!(rejected.headers, [("retry-after".to_owned(), "20".to_owned())]);
}

#[test]
fn faults_occur_at_their_shares_and_retries_are_independent() {
    let faults = Faults {
        reset: 0.05,
        stall: 0.05,
        truncated: 0.05,
        malformed: 0.05,
        empty: 0.05,
        status_500: 0.05,
        status_201: 0.1,
    };
    let engine = with_profile(Profile { faults, latency: fixed(1.0), ..Profile::default() });
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for number in 0..4000 {
        // Always the same request.
        let reply = ask(&engine, "echo", 0, MS * number);
        let name = match (&reply.outcome, reply.answer_status) {
            (Outcome::Broken(fault), _) => {
                let is_endless = reply.delay > Duration::from_secs(1_000_000);
                assert_eq!(is_endless, *fault == Fault::Stall);
                format!("{fault:?}")
            }
            (Outcome::Refused { status, .. }, _) => status.to_string(),
            (Outcome::Answer(_), status) => status.to_string(),
        };
        *counts.entry(name).or_default() += 1;
    }
    for name in ["Reset", "Stall", "Truncated", "Malformed", "Empty", "500"] {
        assert!((160..240).contains(&counts[name]), "{counts:?}");
    }
    assert!((350..450).contains(&counts["201"]), "{counts:?}");
    assert_eq!(counts.len(), 8, "{counts:?}");
}

#[test]
fn stalled_requests_leave_their_slot_after_the_latency() {
    let faults = Faults { stall: 1.0, ..Faults::default() };
    let latency = fixed(1000.0);
    let engine =
        with_profile(Profile { faults, latency, concurrency: Some(1), ..Profile::default() });
    ask(&engine, "echo", 0, MS);
    assert_eq!(status(&ask(&engine, "echo", 1, MS * 1000)), 429);
    assert_eq!(status(&ask(&engine, "echo", 1, MS * 1001)), 200);
}

#[test]
fn knee_increases_latency_instead_of_rejecting() {
    let knee = Some(Knee { k: 2, thrash_at: Some(4) });
    let engine = with_profile(Profile { knee, latency: fixed(100.0), ..Profile::default() });
    let delays: Vec<u128> =
        (0..8).map(|n| ask(&engine, "echo", n, Duration::ZERO).delay.as_millis()).collect();
    assert_eq!(delays, [100, 100, 150, 200, 312, 450, 612, 800]);
}

#[test]
fn outages_return_their_status_and_errors_occur_at_their_rate() {
    let outages = vec![Outage { from_s: 1.0, to_s: 2.0, status: 529 }];
    let engine = with_profile(Profile { outages, ..Profile::default() });
    let statuses = [0, 1000, 1999, 2000].map(|ms| status(&ask(&engine, "echo", 0, MS * ms)));
    assert_eq!(statuses, [200, 529, 529, 200]);

    let engine = with_profile(Profile { error_rate: 0.1, ..Profile::default() });
    // Repeats of one request fail independently: the error rate belongs to the provider.
    (0..2000).for_each(|_| drop(ask(&engine, "echo", 0, MS)));
    let failed = engine.stats().refused[&500];
    assert!((160..=240).contains(&failed), "{failed}");
}

#[test]
fn rejections_have_the_status_of_the_profile() {
    let profile = Profile { concurrency: Some(1), reject_status: Some(503), ..Profile::default() };
    let engine = with_profile(Profile { latency: fixed(100.0), ..profile });
    let statuses = [0, 50, 100].map(|ms| status(&ask(&engine, "echo", 0, MS * ms)));
    assert_eq!(statuses, [200, 503, 200]);
}

#[test]
fn failed_requests_are_charged_when_the_profile_says_so() {
    let requests = Some(Rate { rate_per_s: 1e-9, burst: 1.0 });
    let status_after_failure = |failures_charge| {
        let engine = with_profile(Profile { requests, failures_charge, ..Profile::default() });
        assert!(status(&ask(&engine, "flaky-1", 0, MS)) >= 500);
        status(&ask(&engine, "echo", 0, MS))
    };
    assert_eq!((status_after_failure(false), status_after_failure(true)), (200, 429));
}

#[test]
fn earlier_times_count_as_the_latest_seen() {
    let profile = Profile { concurrency: Some(1), latency: fixed(100.0), ..Profile::default() };
    let engine = with_profile(profile);
    ask(&engine, "echo", 0, MS * 1000);
    // This request read its clock before the other one but arrives after it.
    assert_eq!(status(&ask(&engine, "echo", 1, MS * 10)), 429);
    assert_eq!(status(&ask(&engine, "echo", 1, MS * 1100)), 200);
    assert_eq!(status(&ask(&engine, "echo", 2, MS * 950)), 429);
    let outages = vec![Outage { from_s: 0.0, to_s: 1.0, status: 503 }];
    let engine = with_profile(Profile { outages, ..Profile::default() });
    let statuses = [999, 1000, 999].map(|ms| status(&ask(&engine, "echo", 0, MS * ms)));
    assert_eq!(statuses, [503, 200, 200]);
}

#[test]
fn flaky_requests_fail_at_their_rate_and_succeed_on_retry() {
    let engine = Engine::new(Config::default());
    let mut first_failures = 0;
    for ordinal in 0..1000 {
        let mut tries = 0;
        while status(&ask(&engine, "flaky-0.5", ordinal, MS)) != 200 {
            tries += 1;
            assert!(tries < 30);
        }
        first_failures += u32::from(tries > 0);
    }
    assert!((450..=550).contains(&first_failures), "{first_failures}");
    let refused = engine.stats().refused;
    assert_eq!(refused.keys().copied().collect::<Vec<_>>(), [500, 503]);
}

#[test]
fn retry_after_is_the_time_until_admission() {
    let profile = Profile {
        requests: Some(Rate { rate_per_s: 0.7, burst: 1.0 }),
        retry_after: RetryHint::Exact,
        headers: HeaderStyle::OpenAi,
        ..Profile::default()
    };
    let engine = with_profile(profile);
    let reply = ask(&engine, "echo", 0, Duration::ZERO);
    assert_eq!(reply.headers[1], ("x-ratelimit-remaining-requests".into(), "0".into()));
    let reply = ask(&engine, "echo", 1, MS);
    assert!(matches!(reply.outcome, Outcome::Refused { code: "rate_limit_exceeded", .. }));
    assert!(reply.headers.contains(&("retry-after".into(), "1.428".into())), "{reply:?}");
    assert_eq!(status(&ask(&engine, "echo", 1, MS * 1428)), 429);
    assert_eq!(status(&ask(&engine, "echo", 1, MS * 1429)), 200);
}

#[test]
fn dates_in_headers_count_from_the_epoch() {
    let profile = Profile {
        requests: Some(Rate { rate_per_s: 1.0, burst: 1.0 }),
        retry_after: RetryHint::HttpDate,
        ..Profile::default()
    };
    let engine = with_profile(profile);
    engine.set_epoch(Duration::from_secs(784_111_776));
    engine.set_epoch(Duration::from_secs(1));
    ask(&engine, "echo", 0, Duration::ZERO);
    let headers = ask(&engine, "echo", 1, Duration::ZERO).headers;
    assert_eq!(headers[0].1, "Sun, 06 Nov 1994 08:49:38 GMT");
}

#[test]
fn latency_precedence_is_model_config_name_profile() {
    let delay = |config: Config, model| {
        ask(&Engine::new(config), model, 0, Duration::ZERO).delay.as_millis()
    };
    let mut config = Config::default();
    assert_eq!(delay(config.clone(), "echo"), 0);
    assert_eq!(delay(config.clone(), "slow"), 10_000);
    config.profile = Some(Profile { latency: fixed(1.0), ..Profile::default() });
    assert_eq!(delay(config.clone(), "echo"), 1);
    assert_eq!(delay(config.clone(), "slow"), 10_000);
    config.latency = fixed(2.0);
    assert_eq!(delay(config.clone(), "echo"), 2);
    assert_eq!(delay(config.clone(), "slow"), 2);
    let model = SimModel { latency: fixed(3.0), ..SimModel::default() };
    config.models.insert("slow".into(), model);
    assert_eq!(delay(config, "sim/slow"), 3);
}

#[test]
fn stats_count_all_outcomes() {
    let engine = Engine::new(Config { latency: fixed(100.0), ..Config::default() });
    for (model, ms) in [("echo", 0), ("echo", 10), ("fault-401", 20), ("fault-empty", 150)] {
        ask(&engine, model, 0, MS * ms);
    }
    let stats = engine.stats();
    assert_eq!((stats.requests, stats.answered, stats.broken), (4, 2, 1));
    assert_eq!(stats.refused, BTreeMap::from([(401, 1)]));
    assert_eq!((stats.in_flight, stats.peak_in_flight), (1, 2));
    assert_eq!((stats.input_tokens, stats.output_tokens), (2, 2));
    assert_eq!(engine.stats_at(MS * 250).in_flight, 0);
    let json = serde_json::to_value(engine.stats()).unwrap();
    assert_eq!(json["refused"]["401"], 1);
}

#[test]
fn fault_models_return_the_fault_in_their_name() {
    let engine = Engine::new(Config::default());
    let outcome = |model| ask(&engine, model, 0, MS).outcome;
    assert_eq!(outcome("fault-malformed"), Outcome::Broken(Fault::Malformed));
    assert_eq!(outcome("fault-truncated"), Outcome::Broken(Fault::Truncated));
    assert_eq!(outcome("fault-nonutf8"), Outcome::Broken(Fault::NonUtf8));
    assert_eq!(outcome("fault-empty"), Outcome::Broken(Fault::Empty));
    let Outcome::Refused { status, code, .. } = outcome("sim/fault-401") else { panic!() };
    assert_eq!((status, code), (401, "invalid_api_key"));
}

#[test]
fn share_of_requests_is_rejected_irrespective_of_load() {
    let hint = RetryHint::Fixed(Duration::from_secs(2));
    let profile = Profile { reject_rate: 0.2, retry_after: hint, ..Profile::default() };
    let engine = with_profile(profile);
    let replies: Vec<Reply> =
        (0..2000).map(|ordinal| ask(&engine, "echo", ordinal, MS * 10 * ordinal)).collect();
    let rejected = replies.iter().filter(|reply| status(reply) == 429).count();
    assert!((350..=450).contains(&rejected), "{rejected}");
    for reply in replies.iter().filter(|reply| status(reply) == 429) {
        assert!(reply.headers.contains(&("retry-after".into(), "2".into())), "{reply:?}");
    }
}

#[test]
fn batching_slows_answers_down_with_load() {
    let batching = Some(Batching { base_ms: 1000.0, per_request_ms: 10.0 });
    let engine = with_profile(Profile { batching, ..Profile::default() });
    let delay = |ordinal| ask(&engine, "echo", ordinal, Duration::ZERO).delay.as_millis();
    assert_eq!(delay(0), 1010);
    (1..99).for_each(|ordinal| {
        delay(ordinal);
    });
    assert_eq!(delay(99), 2000);
}

#[test]
fn requests_that_join_a_batch_delay_those_in_flight() {
    let batching = Some(Batching { base_ms: 1000.0, per_request_ms: 10.0 });
    let engine = with_profile(Profile { batching, ..Profile::default() });
    let first = ask(&engine, "echo", 0, Duration::ZERO);
    let slot = first.slot.unwrap();
    let time_left = |now| engine.time_left(slot, now).map(|left| left.as_millis());
    assert_eq!(time_left(Duration::from_millis(505)), Some(505));
    (1..100).for_each(|ordinal| {
        ask(&engine, "echo", ordinal, Duration::from_millis(505));
    });
    assert_eq!(time_left(first.delay), Some(494), "half of the answer takes a second");
    assert_eq!(time_left(Duration::from_millis(1506)), None);
}
