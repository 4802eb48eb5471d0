//! Tests of `auto` through the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::NanoDollars;
use bakeoff_select::{
    Auto, AutoOptions, Cell, Evidence, Objective, Observation, Role, Selector, SelectorChoice,
    SelectorStep, Space,
};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const DATAPOINTS: usize = 120;

fn space(roles: usize, candidates: usize) -> Space {
    let role = |role: usize| Role {
        name: format!("r{role}"),
        candidates: (0..candidates).map(|number| format!("m{number}")).collect(),
    };
    Space::full((0..roles).map(role).collect(), DATAPOINTS).unwrap()
}

/// Random pass/fail scores with a pass rate for each combination.
fn random_scores(qualities: &[f64], seed: u64) -> Vec<Vec<Option<f64>>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut score = |quality: f64| Some(f64::from(random.random::<f64>() < quality));
    qualities.iter().map(|&quality| (0..DATAPOINTS).map(|_| score(quality)).collect()).collect()
}

/// Runs a search in which the cells of each round are observed in a random order.
fn search(
    space: &Space,
    scores: &[Vec<Option<f64>>],
    costs: &[f64],
    shuffle: u64,
) -> (SelectorChoice, Evidence) {
    search_with(AutoOptions::default(), space, scores, costs, shuffle)
}

fn search_with(
    options: AutoOptions,
    space: &Space,
    scores: &[Vec<Option<f64>>],
    costs: &[f64],
    shuffle: u64,
) -> (SelectorChoice, Evidence) {
    let mut random = ChaCha8Rng::seed_from_u64(shuffle);
    let mut selector = Auto::new(space, options);
    let mut evidence = Evidence::new(space, Objective::default());
    loop {
        match selector.next(&evidence) {
            SelectorStep::Choose(choice) => return (choice, evidence),
            SelectorStep::NoWinner(reason) => panic!("{reason}"),
            SelectorStep::Evaluate(mut round) => {
                assert!(!round.cells.is_empty());
                assert!(round.cells.iter().all(|cell| !evidence.is_visited(*cell)));
                round.cells.shuffle(&mut random);
                for cell @ Cell { combo, datapoint } in round.cells {
                    let score = scores[combo][datapoint];
                    let cost = NanoDollars::from_dollars(costs[combo]).unwrap();
                    evidence.add(
                        cell,
                        Observation { score, cost: Some(cost), paid: cost, latency: 1.0 },
                    );
                }
            }
        }
    }
}

#[test]
fn outstanding_combination_is_found_with_few_cells() {
    let space = space(2, 4);
    let mut qualities = vec![0.3; 16];
    qualities[6] = 0.95;
    for seed in 0..10 {
        let (choice, evidence) = search(&space, &random_scores(&qualities, seed), &[1.0; 16], 0);
        assert_eq!(choice.combo, 6, "seed {seed}");
        assert!(choice.confidence.unwrap() >= 0.95);
        assert!(evidence.cells() < space.cells() / 3, "{} cells", evidence.cells());
    }
}

#[test]
fn order_of_observations_within_a_round_does_not_matter() {
    let space = space(2, 3);
    let qualities: Vec<f64> = (0..9).map(|arm| 0.5 + 0.05 * f64::from(arm)).collect();
    let scores = random_scores(&qualities, 3);
    let [one, other] = [1, 2].map(|shuffle| search(&space, &scores, &[1.0; 9], shuffle));
    assert_eq!(one.0, other.0);
    assert_eq!(one.1.cells(), other.1.cells());
}

#[test]
fn cheapest_of_equal_combinations_is_chosen() {
    let space = space(1, 3);
    let same = random_scores(&[0.6], 5).concat();
    let scores = vec![same; 3];
    // With ε = 0 all cells are evaluated. With a larger ε, the remaining error probability may not cover
    // the change to the cheaper combination.
    let mut options = AutoOptions::default();
    options.epsilon = 0.0;
    let (choice, _) = search_with(options, &space, &scores, &[3.0, 1.0, 2.0], 0);
    assert_eq!(choice.combo, 1);
}

#[test]
fn cheap_combination_does_not_win_by_cost() {
    let space = space(1, 3);
    let (choice, _) = search(&space, &random_scores(&[0.2, 0.9, 0.5], 4), &[0.001, 5.0, 0.1], 0);
    assert_eq!(choice.combo, 1);
}

#[test]
fn search_with_nothing_but_errors_ends() {
    let space = space(2, 2);
    let mut selector = Auto::new(&space, AutoOptions::default());
    let mut evidence = Evidence::new(&space, Objective::default());
    let SelectorStep::Evaluate(round) = selector.next(&evidence) else {
        panic!("no cells requested")
    };
    for cell in round.cells {
        evidence.add(cell, Observation { latency: 1.0, ..Observation::default() });
    }
    let end = selector.next(&evidence);
    assert_eq!(end, SelectorStep::NoWinner("all cells of the first round errored".to_owned()));
}

#[test]
fn error_prone_combination_wins_only_with_errors_as_zeros() {
    let space = space(1, 3);
    let scores = |errors: usize| {
        let error_prone = (0..DATAPOINTS).map(|at| (at % errors > 0).then_some(1.0));
        let mut scores = random_scores(&[0.0, 0.8, 0.3], 7);
        scores[0] = error_prone.collect();
        scores
    };
    // It passes whenever it does not error; it errors on a third, or on a tenth.
    assert_eq!(search(&space, &scores(3), &[1.0; 3], 0).0.combo, 1);
    assert_eq!(search(&space, &scores(10), &[1.0; 3], 0).0.combo, 0);
}

#[test]
fn minimal_spaces_have_a_winner() {
    let grid = |sizes: &[usize], datapoints: usize| {
        let role = |(number, size): (usize, &usize)| Role {
            name: format!("r{number}"),
            candidates: (0..*size).map(|candidate| format!("m{candidate}")).collect(),
        };
        Space::full(sizes.iter().enumerate().map(role).collect(), datapoints).unwrap()
    };
    // One combination; one datapoint; both.
    for (space, best) in [(grid(&[1], 9), 0), (grid(&[1, 3], 1), 2), (grid(&[1], 1), 0)] {
        let score = |arm: usize| if arm == best { 0.9 } else { 0.1 };
        let scores: Vec<Vec<Option<f64>>> =
            (0..space.combos()).map(|arm| vec![Some(score(arm)); space.datapoints()]).collect();
        let (choice, _) = search(&space, &scores, &vec![0.0; space.combos()], 0);
        assert_eq!(choice.combo, best);
        assert!(choice.confidence.unwrap() >= 0.95);
    }
}

#[test]
fn identical_scores_end_with_the_cheapest() {
    let space = space(2, 2);
    for score in [0.0, 1.0, 70.0, -3.0] {
        let scores = vec![vec![Some(score); DATAPOINTS]; 4];
        let (choice, _) = search(&space, &scores, &[4.0, 3.0, 1.0, 2.0], 0);
        assert_eq!(choice.combo, 2, "{score}");
    }
}

#[test]
fn scores_of_any_range_are_supported() {
    let space = space(2, 3);
    let qualities: Vec<f64> = (0..9).map(|arm| if arm == 4 { 0.9 } else { 0.4 }).collect();
    let wide = |score: Option<f64>| score.map(|score| 1000.0 * score - 500.0);
    let scores: Vec<Vec<Option<f64>>> = random_scores(&qualities, 2)
        .into_iter()
        .map(|row| row.into_iter().map(wide).collect())
        .collect();
    let mut options = AutoOptions::default();
    options.epsilon = 10.0;
    let (choice, evidence) = search_with(options, &space, &scores, &[1.0; 9], 0);
    assert_eq!(choice.combo, 4);
    assert!(evidence.cells() < space.cells() / 2, "{}", evidence.cells());
}

#[test]
fn reason_states_the_stopping_rule() {
    let space = space(1, 3);
    let (choice, _) = search(&space, &random_scores(&[0.9, 0.2, 0.3], 1), &[1.0; 3], 0);
    let reason = "the probability that a rival is better by more than 0.01 is below 5 %";
    assert_eq!(choice.reason, reason);
}

#[test]
fn two_thousand_combinations_are_searched_quickly() {
    let role = |name: &str, count: usize| Role {
        name: name.to_owned(),
        candidates: (0..count).map(|candidate| format!("m{candidate}")).collect(),
    };
    let roles = vec![role("a", 10), role("b", 10), role("c", 20)];
    let space = Space::full(roles, 30).unwrap();
    let quality = |arm: usize| if arm == 1234 { 1.0 } else { 0.1 };
    let scores: Vec<Vec<Option<f64>>> = (0..2000).map(|arm| vec![Some(quality(arm)); 30]).collect();
    let (choice, evidence) = search(&space, &scores, &vec![1.0; 2000], 0);
    assert_eq!(choice.combo, 1234);
    assert!(evidence.cells() < 20_000, "{}", evidence.cells());
}
