//! Trials finish in any order; they count in the order of the plan.
//!
//! Failures tend to be slower than passes. If trials entered as they finish, the first ones would
//! be a biased sample, and the verdict would depend on how many run at once.

use crate::confident::Boundaries;
use crate::threshold::Decision;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// How one trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Judged, and passed.
    Passed,
    /// Judged, and failed.
    Failed,
    /// Not judged: something broke.
    Errored,
}

/// Trials counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Trials that passed.
    pub passed: u64,
    /// Trials that failed.
    pub failed: u64,
    /// Trials that were not judged.
    pub errored: u64,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Errored => self.errored += 1,
        }
    }

    fn total(self) -> u64 {
        self.passed + self.failed + self.errored
    }
}

/// Feeds trials to [`Boundaries`] in index order, however they finish.
///
/// Boundaries may be borrowed, owned or shared: all cases with the same plan use the same ones.
///
/// ```
/// use bakeoff_stats::{Boundaries, Decision, Outcome, Prefix};
///
/// let boundaries = Boundaries::new("0.9".parse()?, 10, 0.05);
/// let mut case = Prefix::new(&boundaries);
/// assert_eq!(case.finish(1, Outcome::Failed), Decision::Open); // waits for trial 0
/// assert_eq!(case.finish(0, Outcome::Failed), Decision::Failed);
/// # Ok::<(), bakeoff_stats::ThresholdError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Prefix<B> {
    boundaries: B,
    counts: Counts,
    decision: Decision,
    waiting: BTreeMap<u64, Outcome>,
}

impl<B: Borrow<Boundaries>> Prefix<B> {
    /// Nothing finished yet.
    pub fn new(boundaries: B) -> Prefix<B> {
        Prefix {
            boundaries,
            counts: Counts::default(),
            decision: Decision::Open,
            waiting: BTreeMap::new(),
        }
    }

    /// Takes the outcome of trial `index`, counted from 0, and says what can be said now.
    ///
    /// It waits until all before it have finished. Once decided, nothing more is counted. A second
    /// outcome for the same trial is ignored.
    pub fn finish(&mut self, index: u64, outcome: Outcome) -> Decision {
        if index >= self.counts.total() {
            self.waiting.entry(index).or_insert(outcome);
        }
        while self.decision == Decision::Open
            && let Some(next) = self.waiting.remove(&self.counts.total())
        {
            self.counts.add(next);
            let Counts { passed, failed, errored } = self.counts;
            self.decision = self.boundaries.borrow().decide(passed, failed, errored);
        }
        self.decision
    }

    /// What can be said now.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// What the decision rests on.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Finished trials that do not count: beyond a gap, or beyond the decision.
    pub fn surplus(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threshold;
    use proptest::prelude::*;

    fn boundaries(threshold: &str, planned: u64) -> Boundaries {
        Boundaries::new(threshold.parse::<Threshold>().unwrap(), planned, 0.05)
    }

    #[test]
    fn later_trials_wait_for_earlier_ones() {
        // 10 trials at 0.9: two failures in a row fail.
        let boundaries = boundaries("0.9", 10);
        let mut prefix = Prefix::new(&boundaries);
        assert_eq!(prefix.finish(1, Outcome::Failed), Decision::Open);
        assert_eq!(prefix.finish(2, Outcome::Failed), Decision::Open);
        assert_eq!(prefix.surplus(), 2);
        assert_eq!(prefix.finish(0, Outcome::Failed), Decision::Failed);
        assert_eq!(prefix.counts(), Counts { failed: 2, ..Counts::default() });
        assert_eq!(prefix.surplus(), 1);
        // What comes later changes nothing.
        assert_eq!(prefix.finish(3, Outcome::Passed), Decision::Failed);
        assert_eq!(prefix.finish(0, Outcome::Passed), Decision::Failed);
        assert_eq!(prefix.decision(), Decision::Failed);
        assert_eq!(prefix.counts().passed, 0);
    }

    proptest! {
        /// Parallelism does not matter: any order of finishing gives the same decision and counts.
        #[test]
        fn order_of_finishing_does_not_matter(
            (outcomes, order) in prop::collection::vec(0_u8..20, 20).prop_flat_map(|outcomes| {
                let order = Just((0..20_u64).collect::<Vec<_>>()).prop_shuffle();
                (Just(outcomes), order)
            })
        ) {
            let outcome = |index: u64| match outcomes[index as usize] {
                0 => Outcome::Errored,
                1..5 => Outcome::Failed,
                _ => Outcome::Passed,
            };
            let boundaries = boundaries("0.8", 20);
            let mut straight = Prefix::new(&boundaries);
            let mut shuffled = Prefix::new(&boundaries);
            for (index, other) in order.into_iter().enumerate() {
                straight.finish(index as u64, outcome(index as u64));
                shuffled.finish(other, outcome(other));
            }
            prop_assert_eq!(straight.decision(), shuffled.decision());
            prop_assert_eq!(straight.counts(), shuffled.counts());
            prop_assert_eq!(straight.surplus(), shuffled.surplus());
        }
    }
}
