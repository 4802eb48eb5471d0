use super::*;

fn message(limits: Limits) -> String {
    limits.check().unwrap_err().to_string()
}

#[test]
fn each_strategy_has_its_own_default_limit() {
    let limit = |limits: Limits| limits.policy(None).unwrap().limit();
    assert_eq!(limit(Limits::new(Strategy::Fixed)), 10);
    assert_eq!(limit(Limits::new(Strategy::Adaptive)), 20);
    assert_eq!(limit(Limits::new(Strategy::Adaptive).connections(8)), 8);
    assert_eq!(limit(Limits::new(Strategy::Reactive)), u32::MAX);
    assert_eq!(limit(Limits::new(Strategy::Reactive).connections(7)), 7);
    assert_eq!(limit(Limits::new(Strategy::None)), u32::MAX);
    assert_eq!(limit(Limits::new(Strategy::None).connections(7)), 7);
    assert_eq!(limit(Limits::new(Strategy::Proactive).rpm(60).connections(7)), 7);
    assert_eq!(limit(Limits::fixed(3)), 3);
    let auto = |limits: Limits| limits.auto_config(None).connections;
    assert_eq!((auto(Limits::default()), auto(Limits::auto().connections(50))), (1000, 50));
}

#[test]
fn settings_reach_the_strategy_config() {
    let limits = Limits::auto().rpm(300).tpm(9).itpm(8).otpm(7).retry_after(RetryAfter::Test);
    let config = limits.auto_config(Some(LearnedLimit::Cap(12)));
    let rates = Rates { rpm: Some(300.0), tpm: Some(9.0), itpm: Some(8.0), otpm: Some(7.0) };
    assert_eq!((config.rates, config.retry_after), (rates, RetryAfter::Test));
    assert_eq!(config.learned, Some(LearnedLimit::Cap(12)));
    let limits = Limits::adaptive(AdaptiveBounds { min: 1, start: 2, max: 3 })
        .cooldown_seconds(3.0)
        .decrease_factor(0.5)
        .scale_up_percent(0.1);
    let config = limits.adaptive_config();
    assert_eq!(config.bounds, AdaptiveBounds { min: 1, start: 2, max: 3 });
    assert_eq!((config.cooldown_seconds, config.decrease_factor), (3.0, 0.5));
    assert_eq!(config.scale_up_percent, 0.1);
}

#[test]
fn each_invalid_combination_has_its_own_message_and_key() {
    let range = Connections::Range(AdaptiveBounds { min: 4, start: 20, max: 80 });
    let adaptive = Limits::new(Strategy::Adaptive);
    let seconds = Duration::from_secs;
    let table = [
        (Limits::auto().rpm(0), "rpm", "rpm must be at least 1"),
        (Limits::auto().tpm(0), "tpm", "tpm must be at least 1"),
        (Limits::auto().itpm(0), "itpm", "itpm must be at least 1"),
        (Limits::auto().otpm(0), "otpm", "otpm must be at least 1"),
        (Limits::auto().connections(0), "connections", "connections must be at least 1"),
        (
            Limits::fixed(4).rpm(1),
            "rpm",
            "rpm is for the strategies auto and proactive, not for fixed",
        ),
        (adaptive.tpm(1), "tpm", "tpm is for the strategies auto and proactive, not for adaptive"),
        (
            Limits::auto().connections(range),
            "connections",
            "a range of connections needs the strategy adaptive; auto takes one number",
        ),
        (
            Limits { cooldown_seconds: Some(1.0), ..Limits::auto() },
            "cooldown_seconds",
            "cooldown_seconds is for the strategy adaptive, not for auto",
        ),
        (
            Limits { decrease_factor: Some(0.5), ..Limits::fixed(1) },
            "decrease_factor",
            "decrease_factor is for the strategy adaptive, not for fixed",
        ),
        (
            Limits { scale_up_percent: Some(0.5), ..Limits::new(Strategy::None) },
            "scale_up_percent",
            "scale_up_percent is for the strategy adaptive, not for none",
        ),
        (
            Limits::fixed(1).retry_after(RetryAfter::Test),
            "retry_after",
            "retry_after is for the strategy auto, not for fixed",
        ),
        (Limits::auto().rpm(5).burst(1), "burst", "burst needs the strategy proactive with rpm"),
        (
            Limits::new(Strategy::Proactive).tpm(5).burst(1),
            "burst",
            "burst needs the strategy proactive with rpm",
        ),
        (
            Limits::new(Strategy::Proactive),
            "strategy",
            "the strategy proactive needs rpm or tpm (or itpm, otpm): \
             there is no built-in table of limits",
        ),
        (
            Limits { decrease_factor: Some(1.5), ..adaptive },
            "decrease_factor",
            "decrease_factor 1.5 is not between 0 and 1",
        ),
        (
            adaptive.connections(AdaptiveBounds { min: 9, start: 9, max: 5 }),
            "connections",
            "connections: max 5 is below min 9",
        ),
        (Limits::auto().timeout(seconds(0)), "timeout", "timeout must be more than 0 seconds"),
        (
            Limits::auto().attempt_timeout(seconds(0)),
            "attempt_timeout",
            "attempt_timeout must be more than 0 seconds",
        ),
    ];
    for (limits, key, expected) in table {
        assert_eq!(message(limits), expected);
        assert_eq!(limits.check().unwrap_err().key(), key, "{expected}");
        assert!(limits.policy(None).is_err());
    }
    assert!(Limits::new(Strategy::Proactive).otpm(5).check().is_ok());
}

#[test]
fn connections_are_a_number_or_a_range() {
    let between = |min, start, max| Connections::Range(AdaptiveBounds { min, start, max });
    assert_eq!("80".parse(), Ok(Connections::Max(80)));
    assert_eq!(" 3 ".parse(), Ok(Connections::Max(3)));
    assert_eq!("4-80".parse(), Ok(between(4, 20, 80)));
    assert_eq!("4-40-80".parse(), Ok(between(4, 40, 80)));
    for text in ["true", "false", "many", ""] {
        assert!(text.parse::<Connections>().is_err(), "{text:?}");
    }
}

#[test]
fn limits_override_the_retry_policy() {
    let base = RetryPolicy { max_retries: Some(9), ..RetryPolicy::default() };
    assert_eq!(Limits::auto().retry_policy(base), base);
    let seconds = Duration::from_secs;
    let own = Limits::auto().max_retries(2).timeout(seconds(5)).attempt_timeout(seconds(1));
    let policy = own.retry_policy(base);
    assert_eq!((policy.max_retries, policy.timeout), (Some(2), seconds(5)));
    assert_eq!((policy.attempt_timeout, policy.cap), (Some(seconds(1)), base.cap));
}

#[test]
fn strategy_override_keeps_only_usable_settings() {
    let fixed = LimitOverrides {
        strategy: Some(Strategy::Fixed),
        connections: Some(Connections::Max(7)),
        ..LimitOverrides::default()
    };
    let suites = [
        Limits::auto().rpm(10).retry_after(RetryAfter::Test).max_retries(3),
        Limits { cooldown_seconds: Some(1.0), ..Limits::new(Strategy::Adaptive).max_retries(3) },
        Limits::new(Strategy::Proactive).rpm(5).max_retries(3),
    ];
    for suite in suites {
        assert_eq!(fixed.apply(suite), Limits::fixed(7).max_retries(3));
    }
    let bare = LimitOverrides { strategy: Some(Strategy::Fixed), ..LimitOverrides::default() };
    assert_eq!(bare.apply(Limits::auto().connections(300)), Limits::new(Strategy::Fixed));
    let proactive =
        LimitOverrides { strategy: Some(Strategy::Proactive), ..LimitOverrides::default() };
    let rates = proactive.apply(Limits::auto().rpm(5).connections(9));
    assert_eq!(rates, Limits::new(Strategy::Proactive).rpm(5).connections(9));
    let unchanged = Limits::auto().rpm(10).tpm(11).retry_after(RetryAfter::Test);
    assert_eq!(LimitOverrides::default().apply(unchanged), unchanged);
    let faster = LimitOverrides { rpm: Some(20), ..LimitOverrides::default() };
    assert_eq!(faster.apply(unchanged), unchanged.rpm(20));
}
