use super::*;
use crate::AdaptiveBounds;

#[test]
fn the_cooldown_can_be_set() {
    let mut trial = trial(AdaptiveConfig { cooldown_seconds: 1.5, ..Default::default() });
    trial.burst(1, &rejected());
    trial.wait(1.4);
    trial.burst(1, &rejected());
    assert_eq!(trial.limit(), 16);
    trial.wait(0.1);
    trial.burst(1, &rejected());
    assert_eq!(trial.limit(), 12);
}

#[test]
fn without_a_cooldown_each_rejection_is_a_cut() {
    let mut trial = trial(AdaptiveConfig { cooldown_seconds: 0.0, ..Default::default() });
    trial.burst(3, &rejected());
    assert_eq!(trial.limit(), 9);
}

#[test]
fn the_factor_of_a_cut_can_be_set_and_loses_nothing_to_arithmetic() {
    // 100 × 0.29 is 28.999… in binary.
    for (factor, cut) in [(0.5, 50), (0.29, 29), (0.999, 99)] {
        let bounds = AdaptiveBounds { min: 1, start: 100, max: 100 };
        let config = AdaptiveConfig { bounds, decrease_factor: factor, ..Default::default() };
        let mut trial = trial(config);
        trial.burst(1, &rejected());
        assert_eq!(trial.limit(), cut, "{factor}");
    }
}

#[test]
fn the_growth_of_a_round_can_be_set() {
    for (share, grown) in [(0.01, 17), (0.1, 18), (1.0, 32)] {
        let config = AdaptiveConfig { scale_up_percent: share, ..Default::default() };
        let mut trial = trial(config).steady();
        trial.clean_round();
        assert_eq!(trial.limit(), grown, "{share}");
    }
}

#[test]
fn says_what_is_out_of_range() {
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
        (cooldown(-1.0), Err("cooldown_seconds -1 is not a number of seconds from 0 on")),
        (cooldown(f64::NAN), Err("cooldown_seconds NaN is not a number of seconds from 0 on")),
        (cooldown(f64::INFINITY), Err("cooldown_seconds inf is not a number of seconds from 0 on")),
        (factor(0.0), Err("decrease_factor 0 is not between 0 and 1")),
        (factor(1.0), Err("decrease_factor 1 is not between 0 and 1")),
        (factor(f64::NAN), Err("decrease_factor NaN is not between 0 and 1")),
        (share(0.0), Err("scale_up_percent 0 is not above 0 and at most 1, which is 100 %")),
        (share(1.0), Ok(())),
        (share(1.5), Err("scale_up_percent 1.5 is not above 0 and at most 1, which is 100 %")),
        (share(f64::NAN), Err("scale_up_percent NaN is not above 0 and at most 1, which is 100 %")),
    ];
    for (config, expected) in table {
        let found = config.check().map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{config:?}");
    }
}

#[test]
fn what_is_out_of_range_is_repaired() {
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
fn the_upper_bound_can_be_moved() {
    let mut trial = bounded(4, 20, 200);
    let now = trial.now;
    trial.adaptive.set_max(now, 50);
    assert_eq!(trial.reasons(), []);
    trial.adaptive.set_max(now, 10);
    assert_eq!(trial.reasons(), [(20, 10, "manual")]);
    trial.clean_round();
    assert_eq!(trial.reasons(), []);
    trial.adaptive.set_max(now, 300);
    trial.clean_round();
    assert_eq!(trial.reasons(), [(10, 20, "slow_start")]);
}

#[test]
fn an_upper_bound_below_the_lower_one_moves_both_for_the_time_being() {
    let mut trial = bounded(10, 20, 200);
    trial.adaptive.set_max(Duration::ZERO, 0);
    assert_eq!(trial.reasons(), [(20, 1, "manual")]);
    trial.adaptive.set_max(Duration::ZERO, 200);
    assert_eq!(trial.reasons(), [(1, 10, "manual")]);
    trial.burst(1, &rejected());
    assert_eq!(trial.limit(), 10);
}

#[test]
fn a_limit_that_was_set_by_hand_begins_a_round() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(19, &clean());
    trial.adaptive.set_max(Duration::ZERO, 10);
    trial.adaptive.set_max(Duration::ZERO, 200);
    trial.burst(9, &clean());
    assert_eq!(trial.limit(), 10);
}

#[test]
fn only_a_rejection_shrinks() {
    for ending in
        [clean(), after_retry(), SendOutcome::Failed, SendOutcome::Refused, SendOutcome::Dropped]
    {
        let mut trial = bounded(1, 20, 200).steady();
        for _ in 0..200 {
            trial.burst(trial.limit(), &ending);
            trial.wait(1.0);
        }
        let changes = trial.reasons();
        assert!(changes.iter().all(|(old, new, _)| new > old), "{ending:?}: {changes:?}");
    }
}

#[test]
fn changes_carry_their_time_and_are_told_once() {
    let mut trial = bounded(4, 20, 200);
    trial.wait(7.0);
    trial.clean_round();
    let change = LimitChange {
        at: Duration::from_secs(7),
        old_limit: 20,
        new_limit: 40,
        reason: ChangeReason::SlowStart,
    };
    assert_eq!(trial.adaptive.take_changes(), [change]);
    assert_eq!(trial.adaptive.take_changes(), []);
}
