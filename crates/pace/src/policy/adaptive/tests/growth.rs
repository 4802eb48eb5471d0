use super::*;

#[test]
fn starts_at_20_between_4_and_200() {
    let mut trial = trial(AdaptiveConfig::default());
    assert_eq!(trial.limit(), 20);
    for _ in 0..10 {
        trial.clean_round();
    }
    assert_eq!(trial.limit(), 200);
    for _ in 0..50 {
        trial.burst(1, &rejected());
        trial.wait(15.0);
    }
    assert_eq!(trial.limit(), 4);
}

#[test]
fn doubles_per_clean_round_until_the_first_rejection() {
    let mut trial = bounded(4, 10, 200);
    trial.clean_round();
    trial.clean_round();
    assert_eq!(trial.reasons(), [(10, 20, "slow_start"), (20, 40, "slow_start")]);
    trial.burst(1, &rejected());
    trial.wait(15.0);
    trial.clean_round();
    trial.clean_round();
    let expected =
        [(40, 32, "rate_limit"), (32, 34, "steady_state_up"), (34, 36, "steady_state_up")];
    assert_eq!(trial.reasons(), expected);
}

#[test]
fn slow_start_ends_even_where_there_is_nothing_to_cut() {
    let mut trial = bounded(10, 10, 200).steady();
    trial.clean_round();
    assert_eq!(trial.reasons(), [(10, 11, "steady_state_up")]);
}

#[test]
fn steady_growth_is_a_share_of_the_limit_and_at_least_one() {
    // Limit after the cut, and after one clean round.
    for (start, cut, grown) in [(10, 8, 9), (35, 28, 29), (50, 40, 42), (190, 152, 160)] {
        let mut trial = bounded(1, start, 500).steady();
        assert_eq!(trial.limit(), cut);
        trial.clean_round();
        assert_eq!(trial.limit(), grown, "from {cut}");
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
fn a_round_is_as_many_clean_successes_as_the_limit() {
    let mut trial = bounded(4, 10, 200);
    trial.burst(10, &after_retry());
    trial.burst(9, &clean());
    assert_eq!(trial.limit(), 10);
    trial.burst(1, &clean());
    assert_eq!(trial.limit(), 20);
}

#[test]
fn a_round_is_at_least_four() {
    let mut trial = bounded(1, 1, 200);
    trial.series(3, &clean());
    assert_eq!(trial.limit(), 1);
    trial.series(1, &clean());
    assert_eq!(trial.limit(), 2);
}

#[test]
fn a_round_that_used_less_than_80_percent_does_not_grow() {
    for (in_flight, grown) in [(1, 20), (15, 20), (16, 40), (20, 40)] {
        let mut trial = bounded(4, 20, 200);
        trial.send(in_flight - 1);
        trial.series(20, &clean());
        assert_eq!(trial.limit(), grown, "{in_flight} of 20 in flight");
    }
}

#[test]
fn the_peak_is_that_of_this_round() {
    let mut trial = bounded(4, 20, 200).steady();
    trial.clean_round();
    trial.series(17, &clean());
    assert_eq!(trial.reasons(), [(16, 17, "steady_state_up")]);
}

#[test]
fn what_was_in_flight_before_the_round_counts_for_its_peak() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(1, &rejected());
    trial.send(16);
    trial.wait(15.0);
    trial.end(16, &clean());
    assert_eq!(trial.limit(), 17);
}

#[test]
fn an_answer_after_a_retry_is_neutral() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(20, &after_retry());
    trial.burst(20, &after_retry());
    assert_eq!(trial.reasons(), []);
    // Nor does it end the round.
    trial.burst(19, &clean());
    trial.burst(20, &after_retry());
    assert_eq!(trial.reasons(), []);
    trial.burst(1, &clean());
    assert_eq!(trial.limit(), 40);
}

#[test]
fn a_transient_failure_pauses_growth_and_never_shrinks() {
    let mut trial = bounded(4, 20, 200);
    for _ in 0..20 {
        // The failure, and the answer that is not a clean one therefore.
        trial.burst(20, &SendOutcome::Failed);
        trial.burst(20, &after_retry());
    }
    assert_eq!(trial.reasons(), []);
    trial.clean_round();
    assert_eq!(trial.reasons(), [(20, 40, "slow_start")]);
}

#[test]
fn what_is_refused_or_given_up_is_neutral() {
    let mut trial = bounded(4, 20, 200);
    trial.burst(100, &SendOutcome::Refused);
    trial.burst(100, &SendOutcome::Dropped);
    assert_eq!(trial.reasons(), []);
}
