//! Stopping rule of a target.

use super::CaseState;
use bakeoff_stats::{Boundaries, Decision, Threshold};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Decides about a target.
#[derive(Debug, Clone)]
pub(crate) struct TargetRule {
    /// Share of its cases that must pass.
    threshold: Threshold,
    confident: Option<(Boundaries, Vec<u32>)>,
}

impl TargetRule {
    pub(crate) fn new(threshold: Threshold) -> TargetRule {
        TargetRule { threshold, confident: None }
    }

    /// Stops when all cases would give the same verdict with a small risk; cases are then executed in
    /// random order.
    pub(crate) fn confident(self, cases: u32, alpha: f64, seed: u64) -> TargetRule {
        let boundaries = Boundaries::new(self.threshold, cases.into(), alpha);
        let mut order: Vec<u32> = (0..cases).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        TargetRule { confident: Some((boundaries, order)), ..self }
    }

    /// Returns the order of the cases, if it differs from that of the suite.
    pub(crate) fn order(&self) -> Option<&[u32]> {
        self.confident.as_ref().map(|(_, order)| order.as_slice())
    }

    /// Returns the decision about a target with these cases. Decided cases that are open are
    /// inconclusive.
    pub(crate) fn read(&self, cases: &[CaseState]) -> TargetState<'_> {
        let mut progress = TargetProgress::default();
        let early = progress.advance(self, |case| {
            let state = cases.get(case)?;
            state.decided_by.map(|_| state.decision)
        });
        let counted = progress.total() as usize;
        if early != Decision::Open && counted < cases.len() {
            let unneeded = self.order().and_then(|order| order.get(counted..)).unwrap_or_default();
            return TargetState { decision: early, unneeded };
        }
        let with = |decision| cases.iter().filter(|case| case.decision == decision).count() as u64;
        let (passed, failed) = (with(Decision::Passed), with(Decision::Failed));
        let decision = self.threshold.decide(passed, failed, cases.len() as u64);
        TargetState { decision, unneeded: &[] }
    }
}

/// Decision about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetState<'a> {
    pub(crate) decision: Decision,
    /// Cases on which the decision does not rest, because it was certain before them.
    pub(crate) unneeded: &'a [u32],
}

/// Progress of a target: its cases in random order, before the first undecided one.
#[derive(Debug, Default)]
pub(crate) struct TargetProgress {
    passed: u64,
    failed: u64,
    open: u64,
}

impl TargetProgress {
    fn total(&self) -> u64 {
        self.passed + self.failed + self.open
    }

    /// Adds decided cases. Returns [`Decision::Open`] while more cases are needed.
    pub(crate) fn advance(
        &mut self,
        rule: &TargetRule,
        decided: impl Fn(usize) -> Option<Decision>,
    ) -> Decision {
        let Some((boundaries, order)) = &rule.confident else { return Decision::Open };
        loop {
            let claim = boundaries.decide(self.passed, self.failed, self.open);
            let next = order.get(self.total() as usize).and_then(|case| decided(*case as usize));
            match (claim, next) {
                (Decision::Open, Some(Decision::Passed)) => self.passed += 1,
                (Decision::Open, Some(Decision::Failed)) => self.failed += 1,
                (Decision::Open, Some(Decision::Open)) => self.open += 1,
                (claim, _) => return claim,
            }
        }
    }
}
