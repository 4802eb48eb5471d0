//! What `strict` promises: the best is dropped in at most α of all searches, whatever is missing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_select::{
    Cell, Evidence, Objective, Observation, Role, Selector, Space, Step, Strict, StrictOptions,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const ARMS: usize = 5;
const DATAPOINTS: usize = 40;

fn space() -> Space {
    let candidates = (0..ARMS).map(|arm| format!("m{arm}")).collect();
    Space::full(vec![Role { name: "solver".to_owned(), candidates }], DATAPOINTS).unwrap()
}

/// Scores, and what of them can be seen.
struct World {
    scores: Vec<Vec<f64>>,
    seen: Vec<Vec<Option<f64>>>,
}

/// A world with close qualities, which is where errors are made. The best's right answers go missing
/// more often than others', which is as unfair as it can be.
fn world(random: &mut ChaCha8Rng, missing: f64, graded: bool) -> World {
    let difficulty: Vec<f64> = (0..DATAPOINTS).map(|_| random.random()).collect();
    let scores: Vec<Vec<f64>> = (0..ARMS)
        .map(|arm| {
            let skill = 0.5 + 0.02 * arm as f64;
            let score = |difficulty: &f64| {
                let latent = 0.5 * difficulty + 0.5 * random.random::<f64>();
                if graded {
                    (latent + skill - 0.5).clamp(0.0, 1.0)
                } else {
                    f64::from(latent < skill)
                }
            };
            difficulty.iter().map(score).collect()
        })
        .collect();
    let best = best(&scores);
    let seen = scores.iter().enumerate().map(|(arm, row)| {
        let unfair = |score: f64| if (score > 0.5) == (arm == best) { 2.0 } else { 0.0 };
        let row = row.iter();
        row.map(|&score| (random.random::<f64>() >= missing * unfair(score)).then_some(score))
            .collect()
    });
    let seen = seen.collect();
    World { scores, seen }
}

fn best(scores: &[Vec<f64>]) -> usize {
    let sums: Vec<f64> = scores.iter().map(|row| row.iter().sum()).collect();
    (0..ARMS).fold(0, |best, arm| if sums[arm] > sums[best] { arm } else { best })
}

/// Searches, and says whether the best was dropped and how many were.
fn search(world: &World, confidence: f64, seed: u64) -> (bool, usize) {
    let space = space();
    let options = StrictOptions { confidence, seed, ..StrictOptions::default() };
    let mut selector = Strict::new(&space, options);
    let mut evidence = Evidence::new(&space, Objective::default());
    while let Step::Evaluate(round) = selector.next(&evidence) {
        for cell @ Cell { combo, datapoint } in round.cells {
            let score = world.seen[combo][datapoint];
            evidence.add(cell, Observation { score, cost: 1.0, paid: 1.0, latency: 1.0 });
        }
    }
    let dropped = selector.eliminations();
    let best = best(&world.scores);
    (dropped.iter().any(|out| out.combo == best), dropped.len())
}

#[test]
fn the_best_is_dropped_no_more_often_than_allowed() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let runs = 2000;
    // A low confidence, so that errors are there to be counted.
    for (confidence, missing, graded) in [
        (0.95, 0.0, false),
        (0.7, 0.0, false),
        (0.95, 0.1, false),
        (0.7, 0.1, false),
        (0.7, 0.05, true),
    ] {
        let (mut wrong, mut dropped) = (0, 0);
        for seed in 0..runs {
            let world = world(&mut random, missing, graded);
            let (is_wrong, count) = search(&world, confidence, seed);
            wrong += usize::from(is_wrong);
            dropped += count;
        }
        let allowed = (1.0 - confidence) * runs as f64;
        println!("{confidence} {missing} {graded}: {wrong} wrong of {runs}, {dropped} dropped");
        assert!(wrong as f64 <= allowed, "{confidence} {missing}: {wrong} > {allowed}");
        assert!(dropped > 0, "{confidence} {missing}: nothing is ever dropped");
    }
}

#[test]
fn what_errs_always_does_not_win() {
    let scores = vec![vec![1.0; DATAPOINTS]; ARMS];
    let mut seen: Vec<Vec<Option<f64>>> = vec![vec![Some(0.9); DATAPOINTS]; ARMS];
    seen[0] = vec![None; DATAPOINTS];
    seen[0][3] = Some(1.0);
    let space = space();
    let mut selector = Strict::new(&space, StrictOptions::default());
    let mut evidence = Evidence::new(&space, Objective::default());
    let world = World { scores, seen };
    let choice = loop {
        match selector.next(&evidence) {
            Step::Choose(choice) => break choice,
            Step::GiveUp(reason) => panic!("{reason}"),
            Step::Evaluate(round) => {
                for cell @ Cell { combo, datapoint } in round.cells {
                    let score = world.seen[combo][datapoint];
                    evidence.add(cell, Observation { score, cost: 1.0, paid: 1.0, latency: 1.0 });
                }
            }
        }
    };
    assert_ne!(choice.combo, 0);
    assert_eq!(evidence.cells(), ARMS * DATAPOINTS);
}

#[test]
fn who_has_no_rival_is_looked_at_all_the_same() {
    let roles = vec![Role { name: "solver".to_owned(), candidates: vec!["m".to_owned()] }];
    let space = Space::full(roles, DATAPOINTS).unwrap();
    let mut selector = Strict::new(&space, StrictOptions::default());
    let mut evidence = Evidence::new(&space, Objective::default());
    let Step::Evaluate(round) = selector.next(&evidence) else { panic!("nothing is asked for") };
    for cell in round.cells {
        let score = Some(0.5);
        evidence.add(cell, Observation { score, cost: 1.0, paid: 1.0, latency: 1.0 });
    }
    let Step::Choose(choice) = selector.next(&evidence) else { panic!("nobody is chosen") };
    assert_eq!((choice.combo, choice.reason.as_str()), (0, "there is no other"));
}
