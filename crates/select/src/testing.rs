//! Spaces, observations and evaluators for tests.

use crate::budget::SearchLimit;
use crate::{
    Cell, Evaluate, EvaluationRound, Evidence, Objective, Observation, Role, Selector,
    SelectorStep, Space,
};
use bakeoff_core::NanoDollars;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn dollars(amount: f64) -> NanoDollars {
    NanoDollars::from_dollars(amount).unwrap()
}

/// A space with one role and this many candidates.
pub(crate) fn space(combos: usize, datapoints: usize) -> Space {
    grid(&[combos], datapoints)
}

/// A space with a role for each number of candidates.
pub(crate) fn grid(sizes: &[usize], datapoints: usize) -> Space {
    let roles = sizes.iter().enumerate().map(|(number, size)| Role {
        name: format!("r{number}"),
        candidates: (0..*size).map(|candidate| format!("m{candidate}")).collect(),
    });
    Space::full(roles.collect(), datapoints).unwrap()
}

/// An observation that costs a dollar and takes a second.
pub(crate) fn observed(score: Option<f64>) -> Observation {
    Observation { score, cost: Some(dollars(1.0)), paid: dollars(1.0), latency: 1.0 }
}

/// Evidence with these scores for the first datapoints of each combination.
pub(crate) fn filled(space: &Space, scores: &[Vec<Option<f64>>]) -> Evidence {
    let mut evidence = Evidence::new(space, Objective::default());
    for (combo, row) in scores.iter().enumerate() {
        for (datapoint, score) in row.iter().enumerate() {
            evidence.add(Cell { combo, datapoint }, observed(*score));
        }
    }
    evidence
}

/// Runs a selector on `score`; returns its rounds, its last step and the evidence.
pub(crate) fn run(
    space: &Space,
    selector: &mut dyn Selector,
    score: impl Fn(Cell) -> Option<f64>,
) -> (Vec<EvaluationRound>, SelectorStep, Evidence) {
    let mut evidence = Evidence::new(space, Objective::default());
    let mut rounds = Vec::new();
    loop {
        match selector.next(&evidence) {
            SelectorStep::Evaluate(round) => {
                assert!(!round.cells.is_empty(), "{} requested no cells", selector.name());
                for cell in &round.cells {
                    let is_new = !evidence.is_visited(*cell);
                    assert!(is_new, "{} requested a cell twice", selector.name());
                    evidence.add(*cell, observed(score(*cell)));
                }
                rounds.push(round);
            }
            end => return (rounds, end, evidence),
        }
    }
}

/// The chosen combination.
pub(crate) fn chosen(step: &SelectorStep) -> usize {
    match step {
        SelectorStep::Choose(choice) => choice.combo,
        other => panic!("not a choice: {other:?}"),
    }
}

/// Evaluator whose cells finish in a different order than they start.
pub(crate) struct OutOfOrder<F> {
    score: F,
    pub(crate) cost: fn(Cell) -> NanoDollars,
    running: AtomicUsize,
    pub(crate) max_running: AtomicUsize,
    observed: Mutex<Vec<(Cell, Observation)>>,
}

impl<F> OutOfOrder<F> {
    pub(crate) fn new(score: F) -> OutOfOrder<F> {
        OutOfOrder {
            score,
            cost: |_| dollars(1.0),
            running: AtomicUsize::new(0),
            max_running: AtomicUsize::new(0),
            observed: Mutex::new(Vec::new()),
        }
    }

    /// The evaluated cells, in the order in which they finished.
    pub(crate) fn observed(&self) -> Vec<(Cell, Observation)> {
        self.observed.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl<F: Fn(Cell) -> Option<f64> + Send + Sync> Evaluate for OutOfOrder<F> {
    async fn evaluate(&self, cell: Cell) -> Result<Observation, SearchLimit> {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.max_running.fetch_max(running, Ordering::Relaxed);
        for _ in 0..=(cell.combo * 7 + cell.datapoint * 5) % 11 {
            tokio::task::yield_now().await;
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        let cost = (self.cost)(cell);
        let mut observed_cells = self.observed.lock().unwrap();
        let observation = Observation {
            cost: Some(cost),
            paid: cost,
            // As measured latencies, it depends on the cells that ran before and at the same time.
            latency: (observed_cells.len() % 7) as f64,
            ..observed((self.score)(cell))
        };
        observed_cells.push((cell, observation.clone()));
        Ok(observation)
    }
}
