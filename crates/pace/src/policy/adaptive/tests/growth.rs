use super::*;

#[test]
fn starts_at_20_between_4_and_200() {
    let mut run = run(AdaptiveConfig::default());
    assert_eq!(run.limit(), 20);
    for _ in 0..10 {
        run.clean_round();
    }
    assert_eq!(run.limit(), 200);
    for _ in 0..50 {
        run.burst(1, &rejected());
        run.wait(15.0);
    }
    assert_eq!(run.limit(), 4);
}

#[test]
fn doubles_per_clean_round_until_the_first_rejection() {
    let mut run = bounded(4, 10, 200);
    run.clean_round();
    run.clean_round();
    assert_eq!(run.reasons(), [(10, 20, "slow_start"), (20, 40, "slow_start")]);
    run.burst(1, &rejected());
    run.wait(15.0);
    run.clean_round();
    run.clean_round();
    let expected =
        [(40, 32, "rate_limit"), (32, 34, "steady_state_up"), (34, 36, "steady_state_up")];
    assert_eq!(run.reasons(), expected);
}

#[test]
fn slow_start_ends_at_a_rejection_without_a_cut() {
    let mut run = bounded(10, 10, 200).steady();
    run.clean_round();
    assert_eq!(run.reasons(), [(10, 11, "steady_state_up")]);
}

#[test]
fn steady_growth_is_a_share_of_the_limit_and_at_least_one() {
    // Limit after the cut, and after one clean round.
    for (start, cut, grown) in [(10, 8, 9), (35, 28, 29), (50, 40, 42), (190, 152, 160)] {
        let mut run = bounded(1, start, 500).steady();
        assert_eq!(run.limit(), cut);
        run.clean_round();
        assert_eq!(run.limit(), grown, "from {cut}");
    }
}

#[test]
fn never_grows_beyond_max() {
    let mut slow = bounded(4, 20, 30);
    slow.clean_round();
    slow.clean_round();
    assert_eq!(slow.reasons(), [(20, 30, "slow_start")]);
    let mut steady = bounded(19, 20, 20).steady();
    steady.clean_round();
    steady.clean_round();
    assert_eq!(steady.reasons(), [(19, 20, "steady_state_up")]);
}

#[test]
fn round_has_as_many_clean_successes_as_the_limit() {
    let mut run = bounded(4, 10, 200);
    run.burst(10, &after_retry());
    run.burst(9, &clean());
    assert_eq!(run.limit(), 10);
    run.burst(1, &clean());
    assert_eq!(run.limit(), 20);
}

#[test]
fn round_has_at_least_four_successes() {
    let mut run = bounded(1, 1, 200);
    run.series(3, &clean());
    assert_eq!(run.limit(), 1);
    run.series(1, &clean());
    assert_eq!(run.limit(), 2);
}

#[test]
fn round_below_80_percent_use_does_not_grow() {
    for (in_flight, grown) in [(1, 20), (15, 20), (16, 40), (20, 40)] {
        let mut run = bounded(4, 20, 200);
        run.send(in_flight - 1);
        run.series(20, &clean());
        assert_eq!(run.limit(), grown, "{in_flight} of 20 in flight");
    }
}

#[test]
fn peak_is_measured_per_round() {
    let mut run = bounded(4, 20, 200).steady();
    run.clean_round();
    run.series(17, &clean());
    assert_eq!(run.reasons(), [(16, 17, "steady_state_up")]);
}

#[test]
fn requests_in_flight_before_the_round_count_for_its_peak() {
    let mut run = bounded(4, 20, 200);
    run.burst(1, &rejected());
    run.send(16);
    run.wait(15.0);
    run.end(16, &clean());
    assert_eq!(run.limit(), 17);
}

#[test]
fn answer_after_a_retry_is_neutral() {
    let mut run = bounded(4, 20, 200);
    run.burst(20, &after_retry());
    run.burst(20, &after_retry());
    assert_eq!(run.reasons(), []);
    // It does not end the round either.
    run.burst(19, &clean());
    run.burst(20, &after_retry());
    assert_eq!(run.reasons(), []);
    run.burst(1, &clean());
    assert_eq!(run.limit(), 40);
}

#[test]
fn transient_failure_pauses_growth_and_never_shrinks() {
    let mut run = bounded(4, 20, 200);
    for _ in 0..20 {
        // The failure, and the answer to its retry, which is not clean.
        run.burst(20, &SendOutcome::Failed { retry_after: None });
        run.burst(20, &after_retry());
    }
    assert_eq!(run.reasons(), []);
    run.clean_round();
    assert_eq!(run.reasons(), [(20, 40, "slow_start")]);
}

#[test]
fn refused_and_dropped_requests_are_neutral() {
    let mut run = bounded(4, 20, 200);
    run.burst(100, &SendOutcome::Refused);
    run.burst(100, &SendOutcome::Dropped);
    assert_eq!(run.reasons(), []);
}
