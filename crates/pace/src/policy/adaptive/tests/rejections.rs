use super::*;

#[test]
fn rejection_cuts_to_80_percent_rounded_down() {
    for (start, cut) in [(20, 16), (21, 16), (24, 19), (5, 4), (4, 4)] {
        let mut run = bounded(4, start, 200);
        run.burst(1, &rejected());
        assert_eq!(run.limit(), cut, "from {start}");
    }
}

#[test]
fn never_shrinks_below_min_nor_below_one() {
    let mut run = bounded(1, 2, 200);
    for _ in 0..5 {
        run.burst(1, &rejected());
        run.wait(15.0);
    }
    assert_eq!(run.reasons(), [(2, 1, "rate_limit")]);
}

#[test]
fn one_burst_is_one_cut() {
    let mut run = bounded(4, 20, 200);
    run.burst(20, &rejected());
    assert_eq!(run.reasons(), [(20, 16, "rate_limit")]);
}

#[test]
fn next_cut_waits_for_the_cooldown() {
    let mut run = bounded(4, 20, 200);
    run.burst(1, &rejected());
    run.wait(14.9);
    run.burst(1, &rejected());
    assert_eq!(run.limit(), 16);
    run.wait(0.1);
    run.burst(1, &rejected());
    assert_eq!(run.limit(), 12);
}

#[test]
fn nothing_counts_during_the_cooldown() {
    let mut run = bounded(4, 20, 200);
    run.burst(1, &rejected());
    run.wait(14.9);
    run.burst(15, &clean());
    run.wait(0.1);
    // Neither the peak, …
    run.series(16, &clean());
    assert_eq!(run.limit(), 16);
    // … nor the successes.
    run.burst(15, &clean());
    assert_eq!(run.limit(), 16);
    run.burst(1, &clean());
    assert_eq!(run.limit(), 17);
}

#[test]
fn rejection_ends_the_round() {
    let mut run = bounded(4, 20, 200).steady();
    run.burst(15, &clean());
    run.burst(1, &rejected());
    run.wait(15.0);
    run.burst(11, &clean());
    assert_eq!(run.limit(), 12);
    run.burst(1, &clean());
    assert_eq!(run.limit(), 13);
}

/// Returns the earliest time of the next cut after a first one at 0, in seconds.
fn next_cut(first: &SendOutcome) -> f64 {
    let mut run = bounded(4, 100, 200);
    run.burst(1, first);
    run.episode_length()
}

impl AdaptiveRun {
    fn episode_length(&self) -> f64 {
        self.adaptive.episode.unwrap().until.as_secs_f64()
    }
}

#[test]
fn retry_after_extends_the_cooldown_and_never_shortens_it() {
    assert_eq!(next_cut(&rejected_for(40)), 40.0);
    assert_eq!(next_cut(&rejected_for(3)), 15.0);
    assert_eq!(next_cut(&rejected()), 15.0);
}

#[test]
fn each_reset_header_extends_the_cooldown() {
    let names = [
        [
            "x-ratelimit-limit-requests",
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
        ],
        ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
        [
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ],
        [
            "anthropic-ratelimit-tokens-limit",
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ],
        [
            "anthropic-ratelimit-input-tokens-limit",
            "anthropic-ratelimit-input-tokens-remaining",
            "anthropic-ratelimit-input-tokens-reset",
        ],
        [
            "anthropic-ratelimit-output-tokens-limit",
            "anthropic-ratelimit-output-tokens-remaining",
            "anthropic-ratelimit-output-tokens-reset",
        ],
    ];
    for names in names {
        let reset = if names[0].starts_with("anthropic") { "1970-01-01T00:00:40Z" } else { "40s" };
        let headers: HashMap<&str, &str> = names.into_iter().zip(["100", "0", reset]).collect();
        let quota = read_quota(|name| headers.get(name).copied(), SystemTime::UNIX_EPOCH);
        assert_eq!(next_cut(&SendOutcome::Rejected { quota }), 40.0, "{names:?}");
    }
}

#[test]
fn longest_reset_counts_only_without_retry_after() {
    let mut headers = HashMap::from([
        ("x-ratelimit-limit-requests", "100"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "20s"),
        ("x-ratelimit-limit-tokens", "1000"),
        ("x-ratelimit-remaining-tokens", "900"),
        ("x-ratelimit-reset-tokens", "1m0s"),
    ]);
    let quota = |headers: &HashMap<&str, &'static str>| {
        read_quota(|name| headers.get(name).copied(), SystemTime::UNIX_EPOCH)
    };
    assert_eq!(next_cut(&SendOutcome::Rejected { quota: quota(&headers) }), 60.0);
    headers.insert("retry-after", "30");
    assert_eq!(next_cut(&SendOutcome::Rejected { quota: quota(&headers) }), 30.0);
}

#[test]
fn only_longer_hints_extend_the_cooldown() {
    let mut run = bounded(4, 100, 200);
    run.burst(1, &rejected_for(20));
    run.wait(5.0);
    run.burst(1, &rejected_for(18));
    assert_eq!(run.episode_length(), 20.0);
    run.burst(1, &rejected_for(50));
    assert_eq!(run.episode_length(), 50.0);
}

#[test]
fn repeated_long_hints_do_not_prevent_cuts() {
    let mut run = bounded(4, 100, 200);
    for _ in 0..200 {
        run.burst(1, &rejected_for(89));
        run.wait(1.0);
    }
    let expected = [(100, 80, "rate_limit"), (80, 64, "rate_limit"), (64, 51, "rate_limit")];
    assert_eq!(run.reasons(), expected);
}

#[test]
fn daily_reset_does_not_freeze_the_limit() {
    assert_eq!(next_cut(&rejected_for(86_400)), 600.0);
}

#[test]
fn limit_below_in_flight_ends_and_admits_nothing() {
    let mut run = bounded(4, 20, 200);
    run.send(20);
    run.end(1, &rejected());
    assert_eq!((run.in_flight, run.limit()), (19, 16));
    run.end(3, &clean());
    assert!(!run.is_open());
    run.end(1, &clean());
    assert!(run.is_open());
}

#[test]
fn shrunk_pool_grants_after_enough_requests_ended() {
    let bounds = crate::AdaptiveBounds { min: 1, start: 10, max: 10 };
    let config = AdaptiveConfig { bounds, decrease_factor: 0.5, ..Default::default() };
    let mut pool = Scheduler::new(Box::new(AdaptivePolicy::new(config)));
    for run in 0..20 {
        pool.on_request(
            Duration::ZERO,
            PermitRequest { run: RunTag(run), ..PermitRequest::default() },
        );
    }
    let mut flights = Vec::new();
    pool.on_tick(Duration::ZERO, |_, flight| flights.push(flight));
    let now = Duration::from_secs(1);
    let mut in_flight = Vec::new();
    for (index, flight) in flights.drain(..).enumerate() {
        pool.on_end(now, flight, &if index == 0 { rejected() } else { clean() });
        pool.on_tick(now, |_, _| {});
        in_flight.push(pool.in_flight());
    }
    assert_eq!(in_flight, [9, 8, 7, 6, 5, 5, 5, 5, 5, 5]);
    assert_eq!(pool.retry_mode(now), crate::RetryMode::Backoff);
}
