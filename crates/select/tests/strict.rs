//! Guarantee of `strict`: the best is eliminated in at most α of all searches, with any missing cells.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::NanoDollars;
use bakeoff_select::{
    Cell, Evidence, Objective, Observation, Role, Selector, SelectorStep, Space, Strict,
    StrictOptions,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const ARMS: usize = 5;
const DATAPOINTS: usize = 40;

fn space() -> Space {
    let candidates = (0..ARMS).map(|arm| format!("m{arm}")).collect();
    Space::full(vec![Role { name: "solver".to_owned(), candidates }], DATAPOINTS).unwrap()
}

/// True scores, and the observed ones.
struct Matrix {
    scores: Vec<Vec<f64>>,
    observed: Vec<Vec<Option<f64>>>,
}

/// A matrix with close qualities, where errors are likely. Only passes of the best combination and failures
/// of the others go missing, which is the least favourable case for the best.
fn random_matrix(random: &mut ChaCha8Rng, missing: f64, graded: bool) -> Matrix {
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
    let observed = scores.iter().enumerate().map(|(arm, row)| {
        let unfair = |score: f64| if (score > 0.5) == (arm == best) { 2.0 } else { 0.0 };
        let row = row.iter();
        row.map(|&score| (random.random::<f64>() >= missing * unfair(score)).then_some(score))
            .collect()
    });
    let observed = observed.collect();
    Matrix { scores, observed }
}

/// An observation that costs a dollar and takes a second.
fn observation(score: Option<f64>) -> Observation {
    let cost = NanoDollars(1_000_000_000);
    Observation { score, cost: Some(cost), paid: cost, latency: 1.0 }
}

fn best(scores: &[Vec<f64>]) -> usize {
    let sums: Vec<f64> = scores.iter().map(|row| row.iter().sum()).collect();
    (0..ARMS).fold(0, |best, arm| if sums[arm] > sums[best] { arm } else { best })
}

/// Runs a search; returns whether the best was eliminated, and the number of eliminations.
fn search(matrix: &Matrix, confidence: f64, seed: u64) -> (bool, usize) {
    let space = space();
    let mut options = StrictOptions::default();
    options.confidence = confidence;
    options.seed = seed;
    let mut selector = Strict::new(&space, options);
    let mut evidence = Evidence::new(&space, Objective::default());
    while let SelectorStep::Evaluate(round) = selector.next(&evidence) {
        for cell @ Cell { combo, datapoint } in round.cells {
            let score = matrix.observed[combo][datapoint];
            evidence.add(cell, observation(score));
        }
    }
    let eliminations = selector.eliminations();
    let best = best(&matrix.scores);
    (eliminations.iter().any(|gone| gone.combo == best), eliminations.len())
}

#[test]
fn best_is_eliminated_no_more_often_than_alpha() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let runs = 2000;
    // A low confidence produces errors to count.
    for (confidence, missing, graded) in [
        (0.95, 0.0, false),
        (0.7, 0.0, false),
        (0.95, 0.1, false),
        (0.7, 0.1, false),
        (0.7, 0.05, true),
    ] {
        let (mut wrong, mut eliminated) = (0, 0);
        for seed in 0..runs {
            let matrix = random_matrix(&mut random, missing, graded);
            let (is_wrong, count) = search(&matrix, confidence, seed);
            wrong += usize::from(is_wrong);
            eliminated += count;
        }
        let allowed = (1.0 - confidence) * runs as f64;
        println!(
            "{confidence} {missing} {graded}: {wrong} wrong of {runs}, {eliminated} eliminated"
        );
        assert!(wrong as f64 <= allowed, "{confidence} {missing}: {wrong} > {allowed}");
        assert!(eliminated > 0, "{confidence} {missing}: no eliminations");
    }
}

#[test]
fn combination_that_almost_always_errors_does_not_win() {
    let scores = vec![vec![1.0; DATAPOINTS]; ARMS];
    let mut observed: Vec<Vec<Option<f64>>> = vec![vec![Some(0.9); DATAPOINTS]; ARMS];
    observed[0] = vec![None; DATAPOINTS];
    observed[0][3] = Some(1.0);
    let space = space();
    let mut selector = Strict::new(&space, StrictOptions::default());
    let mut evidence = Evidence::new(&space, Objective::default());
    let matrix = Matrix { scores, observed };
    let choice = loop {
        match selector.next(&evidence) {
            SelectorStep::Choose(choice) => break choice,
            SelectorStep::NoWinner(reason) => panic!("{reason}"),
            SelectorStep::Evaluate(round) => {
                for cell @ Cell { combo, datapoint } in round.cells {
                    let score = matrix.observed[combo][datapoint];
                    evidence.add(cell, observation(score));
                }
            }
        }
    };
    assert_ne!(choice.combo, 0);
    assert_eq!(evidence.cells(), ARMS * DATAPOINTS);
}

#[test]
fn single_combination_is_evaluated() {
    let roles = vec![Role { name: "solver".to_owned(), candidates: vec!["m".to_owned()] }];
    let space = Space::full(roles, DATAPOINTS).unwrap();
    let mut selector = Strict::new(&space, StrictOptions::default());
    let mut evidence = Evidence::new(&space, Objective::default());
    let SelectorStep::Evaluate(round) = selector.next(&evidence) else {
        panic!("no cells requested")
    };
    for cell in round.cells {
        let score = Some(0.5);
        evidence.add(cell, observation(score));
    }
    let SelectorStep::Choose(choice) = selector.next(&evidence) else { panic!("no choice") };
    assert_eq!((choice.combo, choice.reason.as_str()), (0, "there is no other combination"));
}
