use super::*;
use crate::AdaptiveBounds;

#[test]
fn cooldown_is_configurable() {
    let mut run = run(AdaptiveConfig { cooldown_seconds: 1.5, ..Default::default() });
    run.burst(1, &rejected());
    run.wait(1.4);
    run.burst(1, &rejected());
    assert_eq!(run.limit(), 16);
    run.wait(0.1);
    run.burst(1, &rejected());
    assert_eq!(run.limit(), 12);
}

#[test]
fn each_rejection_cuts_without_a_cooldown() {
    let mut run = run(AdaptiveConfig { cooldown_seconds: 0.0, ..Default::default() });
    run.burst(3, &rejected());
    assert_eq!(run.limit(), 9);
}

#[test]
fn decrease_factor_is_configurable_and_exact() {
    // 100 × 0.29 is 28.999… in binary.
    for (factor, cut) in [(0.5, 50), (0.29, 29), (0.999, 99)] {
        let bounds = AdaptiveBounds { min: 1, start: 100, max: 100 };
        let config = AdaptiveConfig { bounds, decrease_factor: factor, ..Default::default() };
        let mut run = run(config);
        run.burst(1, &rejected());
        assert_eq!(run.limit(), cut, "{factor}");
    }
}

#[test]
fn growth_is_configurable() {
    for (share, grown) in [(0.01, 17), (0.1, 18), (1.0, 32)] {
        let config = AdaptiveConfig { scale_up_percent: share, ..Default::default() };
        let mut run = run(config).steady();
        run.clean_round();
        assert_eq!(run.limit(), grown, "{share}");
    }
}

#[test]
fn check_names_the_value_out_of_range() {
    let bounds = |min, start, max| AdaptiveConfig {
        bounds: AdaptiveBounds { min, start, max },
        ..Default::default()
    };
    let cooldown = |cooldown_seconds| AdaptiveConfig { cooldown_seconds, ..Default::default() };
    let factor = |decrease_factor| AdaptiveConfig { decrease_factor, ..Default::default() };
    let share = |scale_up_percent| AdaptiveConfig { scale_up_percent, ..Default::default() };
    let table = [
        (AdaptiveConfig::default(), Ok(())),
        (bounds(0, 20, 200), Err("min must be at least 1")),
        (bounds(30, 20, 200), Err("start 20 is below min 30")),
        (bounds(4, 20, 10), Err("start 20 is above max 10")),
        (bounds(100, 20, 50), Err("max 50 is below min 100")),
        (cooldown(0.0), Ok(())),
        (cooldown(-1.0), Err("cooldown_seconds -1 must be a finite number, at least 0")),
        (cooldown(f64::NAN), Err("cooldown_seconds NaN must be a finite number, at least 0")),
        (cooldown(f64::INFINITY), Err("cooldown_seconds inf must be a finite number, at least 0")),
        (factor(0.0), Err("decrease_factor 0 is not between 0 and 1")),
        (factor(1.0), Err("decrease_factor 1 is not between 0 and 1")),
        (factor(f64::NAN), Err("decrease_factor NaN is not between 0 and 1")),
        (share(0.0), Err("scale_up_percent 0 must be above 0 and at most 1 (100 %)")),
        (share(1.0), Ok(())),
        (share(1.5), Err("scale_up_percent 1.5 must be above 0 and at most 1 (100 %)")),
        (share(f64::NAN), Err("scale_up_percent NaN must be above 0 and at most 1 (100 %)")),
    ];
    for (config, expected) in table {
        let found = config.check().map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{config:?}");
    }
}

#[test]
fn values_out_of_range_are_repaired() {
    let bounds = AdaptiveBounds { min: 0, start: 20, max: 0 };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let broken = AdaptiveConfig {
        bounds,
        cooldown_seconds: inf,
        decrease_factor: nan,
        scale_up_percent: nan,
    };
    let (config, cooldown) = broken.repaired();
    assert_eq!(config.check(), Ok(()));
    assert_eq!(config.bounds, AdaptiveBounds { min: 1, start: 1, max: 1 });
    assert_eq!(cooldown, Duration::from_secs(15));
    assert_eq!(AdaptiveConfig::default().repaired().0, AdaptiveConfig::default());
}

#[test]
fn max_can_change_during_use() {
    let mut run = bounded(4, 20, 200);
    run.adaptive.set_max_connections(50);
    assert_eq!(run.limit(), 20);
    run.adaptive.set_max_connections(10);
    assert_eq!(run.limit(), 10);
    run.clean_round();
    assert_eq!(run.reasons(), []);
    run.adaptive.set_max_connections(300);
    run.clean_round();
    assert_eq!(run.reasons(), [(10, 20, "slow_start")]);
}

#[test]
fn max_below_min_lowers_min_temporarily() {
    let mut run = bounded(10, 20, 200);
    run.adaptive.set_max_connections(0);
    assert_eq!(run.limit(), 1);
    run.adaptive.set_max_connections(200);
    assert_eq!(run.limit(), 10);
    run.burst(1, &rejected());
    assert_eq!(run.limit(), 10);
}

#[test]
fn manual_change_starts_a_round() {
    let mut run = bounded(4, 20, 200);
    run.burst(19, &clean());
    run.adaptive.set_max_connections(10);
    run.adaptive.set_max_connections(200);
    run.burst(9, &clean());
    assert_eq!(run.limit(), 10);
}

#[test]
fn only_rejections_shrink_the_limit() {
    for outcome in [
        clean(),
        after_retry(),
        SendOutcome::Failed { retry_after: None },
        SendOutcome::Refused,
        SendOutcome::Dropped,
    ] {
        let mut run = bounded(1, 20, 200).steady();
        for _ in 0..200 {
            run.burst(run.limit(), &outcome);
            run.wait(1.0);
        }
        let changes = run.reasons();
        assert!(changes.iter().all(|(old, new, _)| new > old), "{outcome:?}: {changes:?}");
    }
}

#[test]
fn changes_carry_their_time_and_are_returned_once() {
    let mut run = bounded(4, 20, 200);
    run.wait(7.0);
    run.clean_round();
    let change = LimitChange {
        at: Duration::from_secs(7),
        old_limit: 20,
        new_limit: 40,
        reason: ChangeReason::SlowStart,
        rpm: None,
        binding: None,
    };
    assert_eq!(run.adaptive.take_changes(), [change]);
    assert_eq!(run.adaptive.take_changes(), []);
}
