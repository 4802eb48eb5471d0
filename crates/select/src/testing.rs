//! Small worlds for tests.

use crate::{Cell, Evaluate, Evidence, Objective, Observation, Role, Round, Selector, Space, Step};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One role with so many candidates.
pub(crate) fn space(combos: usize, datapoints: usize) -> Space {
    grid(&[combos], datapoints)
}

/// Roles with so many candidates each.
pub(crate) fn grid(sizes: &[usize], datapoints: usize) -> Space {
    let roles = sizes.iter().enumerate().map(|(number, size)| Role {
        name: format!("r{number}"),
        candidates: (0..*size).map(|candidate| format!("m{candidate}")).collect(),
    });
    Space::full(roles.collect(), datapoints).unwrap()
}

pub(crate) fn seen(score: Option<f64>) -> Observation {
    Observation { score, cost: 1.0, paid: 1.0, latency: 1.0 }
}

/// What is known when the first datapoints of each combination gave these scores.
pub(crate) fn filled(space: &Space, scores: &[Vec<Option<f64>>]) -> Evidence {
    let mut evidence = Evidence::new(space, Objective::default());
    for (combo, row) in scores.iter().enumerate() {
        for (datapoint, score) in row.iter().enumerate() {
            evidence.add(Cell { combo, datapoint }, seen(*score));
        }
    }
    evidence
}

/// Runs a selector, one round after the other, on `score`; gives the rounds and how it ended.
pub(crate) fn run(
    space: &Space,
    selector: &mut dyn Selector,
    score: impl Fn(Cell) -> Option<f64>,
) -> (Vec<Round>, Step, Evidence) {
    let mut evidence = Evidence::new(space, Objective::default());
    let mut rounds = Vec::new();
    loop {
        match selector.next(&evidence) {
            Step::Evaluate(round) => {
                assert!(!round.cells.is_empty(), "{} asked for nothing", selector.name());
                for cell in &round.cells {
                    assert!(!evidence.is_visited(*cell), "{} asked twice", selector.name());
                    evidence.add(*cell, seen(score(*cell)));
                }
                rounds.push(round);
            }
            end => return (rounds, end, evidence),
        }
    }
}

/// The combination that was chosen.
pub(crate) fn chosen(step: &Step) -> usize {
    match step {
        Step::Choose(choice) => choice.combo,
        other => panic!("not a choice: {other:?}"),
    }
}

/// Cells that end in another order than they were begun in.
pub(crate) struct Scrambled<F> {
    score: F,
    pub(crate) cost: fn(Cell) -> f64,
    running: AtomicUsize,
    pub(crate) most: AtomicUsize,
    seen: Mutex<Vec<(Cell, Observation)>>,
}

impl<F> Scrambled<F> {
    pub(crate) fn new(score: F) -> Scrambled<F> {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Scrambled { score, cost: |_| 1.0, running, most, seen: Mutex::new(Vec::new()) }
    }

    /// What was evaluated, in the order that it ended.
    pub(crate) fn seen(&self) -> Vec<(Cell, Observation)> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl<F: Fn(Cell) -> Option<f64> + Send + Sync> Evaluate for Scrambled<F> {
    async fn evaluate(&self, cell: Cell) -> Option<Observation> {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(running, Ordering::Relaxed);
        for _ in 0..=(cell.combo * 7 + cell.datapoint * 5) % 11 {
            tokio::task::yield_now().await;
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        let observation = {
            let cost = (self.cost)(cell);
            Observation { cost, paid: cost, ..seen((self.score)(cell)) }
        };
        self.seen.lock().unwrap().push((cell, observation.clone()));
        Some(observation)
    }
}
