use super::*;

#[test]
fn a_rejection_cuts_to_80_percent_rounded_down() {
    for (start, cut) in [(20, 16), (21, 16), (24, 19), (5, 4), (4, 4)] {
        let mut trial = bounded(4, start, 200);
        trial.burst(1, &rejected());
        assert_eq!(trial.limit(), cut, "from {start}");
    }
}

#[test]
fn never_shrinks_below_min_nor_below_one() {
    let mut trial = bounded(1, 2, 200);
    for _ in 0..5 {
        trial.burst(1, &rejected());
        trial.wait(15.0);
    }
    assert_eq!(trial.reasons(), [(2, 1, "rate_limit")]);
}

#[test]
fn one_burst_is_one_cut() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(20, &rejected());
    assert_eq!(trial.reasons(), [(20, 16, "rate_limit")]);
}

#[test]
fn the_next_cut_comes_after_the_cooldown_at_the_earliest() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(1, &rejected());
    trial.wait(14.9);
    trial.burst(1, &rejected());
    assert_eq!(trial.limit(), 16);
    trial.wait(0.1);
    trial.burst(1, &rejected());
    assert_eq!(trial.limit(), 12);
}

#[test]
fn nothing_counts_during_the_cooldown() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(1, &rejected());
    trial.wait(14.9);
    trial.burst(15, &clean());
    trial.wait(0.1);
    // Neither the peak, …
    trial.series(16, &clean());
    assert_eq!(trial.limit(), 16);
    // … nor the successes.
    trial.burst(15, &clean());
    assert_eq!(trial.limit(), 16);
    trial.burst(1, &clean());
    assert_eq!(trial.limit(), 17);
}

#[test]
fn a_rejection_ends_the_round() {
    let mut trial = bounded(4, 20, 200).steady();
    trial.burst(15, &clean());
    trial.burst(1, &rejected());
    trial.wait(15.0);
    trial.burst(11, &clean());
    assert_eq!(trial.limit(), 12);
    trial.burst(1, &clean());
    assert_eq!(trial.limit(), 13);
}

/// When the cut after a first one at zero is possible, in seconds.
fn next_cut(first: &SendOutcome) -> f64 {
    let mut trial = bounded(4, 100, 200);
    trial.burst(1, first);
    trial.episode_length()
}

impl Trial {
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
fn the_longest_reset_counts_and_only_without_retry_after() {
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
fn a_longer_hint_during_the_cooldown_prolongs_it_and_a_shorter_one_does_not() {
    let mut trial = bounded(4, 100, 200);
    trial.burst(1, &rejected_for(20));
    trial.wait(5.0);
    trial.burst(1, &rejected_for(18));
    assert_eq!(trial.episode_length(), 20.0);
    trial.burst(1, &rejected_for(50));
    assert_eq!(trial.episode_length(), 50.0);
}

#[test]
fn hints_that_are_always_longer_than_the_time_between_rejections_do_not_stop_the_cuts() {
    let mut trial = bounded(4, 100, 200);
    for _ in 0..200 {
        trial.burst(1, &rejected_for(89));
        trial.wait(1.0);
    }
    let expected = [(100, 80, "rate_limit"), (80, 64, "rate_limit"), (64, 51, "rate_limit")];
    assert_eq!(trial.reasons(), expected);
}

#[test]
fn a_daily_reset_does_not_freeze_the_window_for_the_day() {
    assert_eq!(next_cut(&rejected_for(86_400)), 600.0);
}

#[test]
fn shrinking_below_what_is_in_flight_ends_nothing_and_admits_nothing() {
    let mut trial = bounded(4, 20, 200);
    trial.send(20);
    trial.end(1, &rejected());
    assert_eq!((trial.in_flight, trial.limit()), (19, 16));
    trial.end(3, &clean());
    assert!(!trial.is_open());
    trial.end(1, &clean());
    assert!(trial.is_open());
}

#[test]
fn a_pool_that_shrinks_grants_again_when_enough_have_ended() {
    let bounds = crate::AdaptiveBounds { min: 1, start: 10, max: 10 };
    let config = AdaptiveConfig { bounds, decrease_factor: 0.5, ..Default::default() };
    let mut pool = Scheduler::new(Box::new(AdaptivePolicy::new(config)));
    for run in 0..20 {
        pool.on_request(PermitRequest { run: RunTag(run), ..PermitRequest::default() });
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
