//! What `auto` does, through the public door.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_select::{
    Auto, AutoOptions, Cell, Choice, Evidence, Objective, Observation, Role, Selector, Space, Step,
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

/// Answers by chance, with a quality for each combination.
fn answers(qualities: &[f64], seed: u64) -> Vec<Vec<Option<f64>>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut answer = |quality: f64| Some(f64::from(random.random::<f64>() < quality));
    qualities.iter().map(|&quality| (0..DATAPOINTS).map(|_| answer(quality)).collect()).collect()
}

/// Searches, with each round's cells observed in an order of its own.
fn search(
    space: &Space,
    scores: &[Vec<Option<f64>>],
    prices: &[f64],
    shuffle: u64,
) -> (Choice, Evidence) {
    search_with(AutoOptions::default(), space, scores, prices, shuffle)
}

fn search_with(
    options: AutoOptions,
    space: &Space,
    scores: &[Vec<Option<f64>>],
    prices: &[f64],
    shuffle: u64,
) -> (Choice, Evidence) {
    let mut random = ChaCha8Rng::seed_from_u64(shuffle);
    let mut selector = Auto::new(space, options);
    let mut evidence = Evidence::new(space, Objective::default());
    loop {
        match selector.next(&evidence) {
            Step::Choose(choice) => return (choice, evidence),
            Step::GiveUp(reason) => panic!("{reason}"),
            Step::Evaluate(mut round) => {
                assert!(!round.cells.is_empty());
                assert!(round.cells.iter().all(|cell| !evidence.is_visited(*cell)));
                round.cells.shuffle(&mut random);
                for cell @ Cell { combo, datapoint } in round.cells {
                    let score = scores[combo][datapoint];
                    evidence.add(
                        cell,
                        Observation {
                            score,
                            cost: prices[combo],
                            paid: prices[combo],
                            latency: 1.0,
                        },
                    );
                }
            }
        }
    }
}

#[test]
fn one_that_is_far_better_is_found_for_little() {
    let space = space(2, 4);
    let mut qualities = vec![0.3; 16];
    qualities[6] = 0.95;
    for seed in 0..10 {
        let (choice, evidence) = search(&space, &answers(&qualities, seed), &[1.0; 16], 0);
        assert_eq!(choice.combo, 6, "seed {seed}");
        assert!(choice.confidence.unwrap() >= 0.95);
        assert!(evidence.cells() < space.cells() / 3, "{} cells", evidence.cells());
    }
}

#[test]
fn the_order_in_which_a_round_is_observed_does_not_matter() {
    let space = space(2, 3);
    let qualities: Vec<f64> = (0..9).map(|arm| 0.5 + 0.05 * f64::from(arm)).collect();
    let scores = answers(&qualities, 3);
    let [one, other] = [1, 2].map(|shuffle| search(&space, &scores, &[1.0; 9], shuffle));
    assert_eq!(one.0, other.0);
    assert_eq!(one.1.cells(), other.1.cells());
}

#[test]
fn of_those_that_are_seen_to_be_equal_the_cheapest_is_chosen() {
    let space = space(1, 3);
    let same = answers(&[0.6], 5).concat();
    let scores = vec![same; 3];
    // So sure that it sees it all; with less, what is left of the error may not cover the cheaper one.
    let options = AutoOptions { confidence: 1.0 - 1e-9, ..AutoOptions::default() };
    let (choice, _) = search_with(options, &space, &scores, &[3.0, 1.0, 2.0], 0);
    assert_eq!(choice.combo, 1);
}

#[test]
fn a_world_of_errors_ends() {
    let space = space(2, 2);
    let scores = vec![vec![None; DATAPOINTS]; 4];
    let (_, evidence) = search(&space, &scores, &[1.0; 4], 0);
    assert!(evidence.cells() <= space.cells());
    // One combination, and one datapoint.
    let lonely = Space::full(
        vec![Role { name: "r".to_owned(), candidates: vec!["m".to_owned()] }],
        DATAPOINTS,
    );
    let (choice, _) = search(&lonely.unwrap(), &answers(&[0.5], 1), &[1.0], 0);
    assert_eq!(choice.combo, 0);
}
