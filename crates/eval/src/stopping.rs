//! When a case has had enough trials, and a target enough cases.
//!
//! Trials enter in the order of their numbers, whenever they end: what is said of a case depends
//! neither on how many run at once nor on a run having been interrupted.

use bakeoff_stats::{Boundaries, Decision, Risk, Threshold};
use bakeoff_suite::EarlyStop;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// What is known of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing yet.
    #[default]
    Missing,
    Passed,
    Failed,
    Error,
}

/// How so many trials ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) errors: u32,
}

impl Counts {
    pub(crate) fn add(&mut self, mark: Mark) {
        match mark {
            Mark::Missing => {}
            Mark::Passed => self.passed += 1,
            Mark::Failed => self.failed += 1,
            Mark::Error => self.errors += 1,
        }
    }

    pub(crate) fn total(self) -> u32 {
        self.passed + self.failed + self.errors
    }
}

/// What decides about a case.
#[derive(Debug, Clone)]
pub(crate) struct CaseRule {
    trials: u32,
    threshold: Threshold,
    early: Early,
}

#[derive(Debug, Clone)]
enum Early {
    Off,
    Decided,
    Confident(Boundaries),
}

/// What is said of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CaseState {
    pub(crate) decision: Decision,
    /// The trials that the decision rests on, from the first; those after them do not count. Absent
    /// as long as more trials are wanted, and then all of them count.
    pub(crate) over: Option<Counts>,
}

impl CaseRule {
    /// `alpha` is the risk of one case.
    pub(crate) fn new(trials: u32, threshold: Threshold, early: EarlyStop, alpha: f64) -> CaseRule {
        let early = match early {
            EarlyStop::Off => Early::Off,
            EarlyStop::Decided => Early::Decided,
            EarlyStop::Confident => {
                Early::Confident(Boundaries::new(threshold, trials.into(), alpha))
            }
        };
        CaseRule { trials, threshold, early }
    }

    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// What the first trials decide, and whether they are enough.
    fn after(&self, first: Counts) -> (Decision, bool) {
        let Counts { passed, failed, errors } = first;
        let (passed, failed, errors) = (passed.into(), failed.into(), errors.into());
        let decided = self.threshold.decide(passed, failed, self.trials.into());
        let (decision, may_stop) = match &self.early {
            Early::Off => (decided, false),
            Early::Decided => (decided, true),
            Early::Confident(boundaries) => match boundaries.decide(passed, failed, errors) {
                Decision::Open => (decided, true),
                claim => (claim, true),
            },
        };
        let is_over = first.total() >= self.trials || (may_stop && decision != Decision::Open);
        (decision, is_over)
    }

    /// How many more trials, one after the other, will be wanted whatever their outcomes.
    fn surely_wanted(&self, first: Counts) -> u32 {
        let Counts { passed, failed, errors } = first;
        let left = self.trials - first.total();
        let fewest = match &self.early {
            Early::Off => return left,
            Early::Decided => {
                let needed = self.threshold.needed(self.trials.into()) as u32;
                let to_pass = needed.saturating_sub(passed);
                let to_fail = (self.trials - needed + 1).saturating_sub(failed);
                to_pass.min(to_fail)
            }
            Early::Confident(boundaries) => {
                let missing = |staircase: &[u64], others: u32, so_far: u32| {
                    let enough = staircase.get(others as usize).copied();
                    enough.map_or(left, |enough| (enough as u32).saturating_sub(so_far))
                };
                let to_pass = missing(boundaries.passes(), failed + errors, passed);
                let to_fail = missing(boundaries.failures(), passed + errors, failed);
                to_pass.min(to_fail)
            }
        };
        // Whatever is decided, one trial must have been judged.
        fewest.max(1).min(left)
    }

    /// What is said of a case with these trials.
    pub(crate) fn read(&self, trials: &[Mark]) -> CaseState {
        let mut progress = Progress::default();
        progress.advance(self, trials);
        if progress.is_over {
            return CaseState { decision: progress.decision, over: Some(progress.first) };
        }
        let mut all = Counts::default();
        trials.iter().for_each(|mark| all.add(*mark));
        let Counts { passed, failed, .. } = all;
        let decision = self.threshold.decide(passed.into(), failed.into(), self.trials.into());
        CaseState { decision, over: None }
    }
}

/// How far a case has come: its trials from the first to the last before a missing one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    first: Counts,
    pub(crate) decision: Decision,
    pub(crate) is_over: bool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { first: Counts::default(), decision: Decision::Open, is_over: false }
    }
}

impl Progress {
    /// Takes in the trials that are no longer missing.
    pub(crate) fn advance(&mut self, rule: &CaseRule, trials: &[Mark]) {
        while !self.is_over
            && let Some(mark) = trials.get(self.first.total() as usize)
            && *mark != Mark::Missing
        {
            self.first.add(*mark);
            (self.decision, self.is_over) = rule.after(self.first);
        }
    }

    /// How many trials, counted from the first of the case, may be started by now.
    pub(crate) fn may_start(&self, rule: &CaseRule, lookahead: u32) -> u32 {
        if self.is_over {
            return 0;
        }
        let ahead = rule.surely_wanted(self.first).max(lookahead);
        self.first.total().saturating_add(ahead).min(rule.trials)
    }
}

/// What decides about a target.
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

    /// Stops when all cases would give the same verdict; cases then come in a random order.
    pub(crate) fn confident(self, cases: u32, alpha: f64, seed: u64) -> TargetRule {
        let boundaries = Boundaries::new(self.threshold, cases.into(), alpha);
        let mut order: Vec<u32> = (0..cases).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        TargetRule { confident: Some((boundaries, order)), ..self }
    }

    /// The order of the cases where it is not that of the suite.
    pub(crate) fn order(&self) -> Option<&[u32]> {
        self.confident.as_ref().map(|(_, order)| order.as_slice())
    }

    /// What the cases decide; those that are over and open are inconclusive.
    pub(crate) fn read(&self, cases: &[CaseState]) -> TargetState<'_> {
        let mut judge = Judge::default();
        let early = judge.advance(self, |case| {
            let state = cases.get(case)?;
            state.over.map(|_| state.decision)
        });
        let made = judge.total() as usize;
        if early != Decision::Open && made < cases.len() {
            let needless = self.order().and_then(|order| order.get(made..)).unwrap_or_default();
            return TargetState { decision: early, needless };
        }
        let with = |decision| cases.iter().filter(|case| case.decision == decision).count() as u64;
        let (passed, failed) = (with(Decision::Passed), with(Decision::Failed));
        let decision = self.threshold.decide(passed, failed, cases.len() as u64);
        TargetState { decision, needless: &[] }
    }
}

/// What is said of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetState<'a> {
    pub(crate) decision: Decision,
    /// Cases that the decision does not rest on, because it was certain before them.
    pub(crate) needless: &'a [u32],
}

/// How far a target has come: its cases in their random order, up to the first that is not over.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    passed: u64,
    failed: u64,
    open: u64,
}

impl Judge {
    fn total(&self) -> u64 {
        self.passed + self.failed + self.open
    }

    /// Takes in cases that are over. [`Decision::Open`] while more of them are wanted.
    pub(crate) fn advance(
        &mut self,
        rule: &TargetRule,
        over: impl Fn(usize) -> Option<Decision>,
    ) -> Decision {
        let Some((boundaries, order)) = &rule.confident else { return Decision::Open };
        loop {
            let claim = boundaries.decide(self.passed, self.failed, self.open);
            let next = order.get(self.total() as usize).and_then(|case| over(*case as usize));
            match (claim, next) {
                (Decision::Open, Some(Decision::Passed)) => self.passed += 1,
                (Decision::Open, Some(Decision::Failed)) => self.failed += 1,
                (Decision::Open, Some(Decision::Open)) => self.open += 1,
                (claim, _) => return claim,
            }
        }
    }
}

/// The risk of each case and of each target's share, when all of them together have `alpha`.
pub(crate) fn risk(alpha: f64, cases: u64, targets: u64, has_share: bool) -> Risk {
    let all = cases.saturating_mul(targets);
    if has_share { Risk::share_of_cases(alpha, all, targets) } else { Risk::all_cases(alpha, all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(trials: u32, threshold: &str, early: EarlyStop) -> CaseRule {
        CaseRule::new(trials, threshold.parse().unwrap(), early, 0.05)
    }

    fn marks(text: &str) -> Vec<Mark> {
        let mark = |letter| match letter {
            'p' => Mark::Passed,
            'f' => Mark::Failed,
            'e' => Mark::Error,
            _ => Mark::Missing,
        };
        text.chars().map(mark).collect()
    }

    fn read(rule: &CaseRule, text: &str) -> (Decision, Option<u32>) {
        let state = rule.read(&marks(text));
        (state.decision, state.over.map(Counts::total))
    }

    #[test]
    fn without_early_stop_all_trials_count() {
        let rule = rule(5, "0.6", EarlyStop::Off);
        assert_eq!(read(&rule, "ppp.."), (Decision::Passed, None));
        assert_eq!(read(&rule, "ppfpf"), (Decision::Passed, Some(5)));
        assert_eq!(read(&rule, "ffe.f"), (Decision::Failed, None));
        assert_eq!(read(&rule, "ppeff"), (Decision::Open, Some(5)));
    }

    #[test]
    fn decided_stops_when_nothing_can_change_and_counts_no_later_trial() {
        let rule = rule(5, "0.6", EarlyStop::Decided);
        assert_eq!(read(&rule, "ppp.."), (Decision::Passed, Some(3)));
        assert_eq!(read(&rule, "pppff"), (Decision::Passed, Some(3)));
        assert_eq!(read(&rule, "fpfpf"), (Decision::Failed, Some(5)));
        // The second is missing: what came after it waits, and the case goes on.
        assert_eq!(read(&rule, "p.pp."), (Decision::Passed, None));
    }

    #[test]
    fn confident_stops_at_the_boundary_with_errors_against_it() {
        let rule = rule(10, "0.7", EarlyStop::Confident);
        assert_eq!(read(&rule, "pppppp...."), (Decision::Passed, Some(6)));
        assert_eq!(read(&rule, "ppppp....."), (Decision::Open, None));
        assert_eq!(read(&rule, "epppppp..."), (Decision::Open, None));
        assert_eq!(read(&rule, "eppppppp.."), (Decision::Passed, Some(8)));
        assert_eq!(read(&rule, "fff......."), (Decision::Failed, Some(3)));
    }

    #[test]
    fn as_many_trials_may_start_as_will_surely_count() {
        let may_start = |rule: &CaseRule, text: &str, lookahead| {
            let mut progress = Progress::default();
            progress.advance(rule, &marks(text));
            progress.may_start(rule, lookahead)
        };
        assert_eq!(may_start(&rule(9, "0.5", EarlyStop::Off), ".........", 1), 9);
        let decided = rule(5, "0.6", EarlyStop::Decided);
        assert_eq!(may_start(&decided, ".....", 1), 3, "three passes decide, and three failures");
        assert_eq!(may_start(&decided, "pp...", 1), 3);
        assert_eq!(may_start(&decided, "pf...", 1), 4);
        assert_eq!(may_start(&decided, "pp...", 2), 4, "more when asked for");
        assert_eq!(may_start(&decided, "ppp..", 1), 0);
        let confident = rule(50, "0.7", EarlyStop::Confident);
        assert_eq!(may_start(&confident, &".".repeat(50), 1), 4, "four failures suffice");
        assert_eq!(may_start(&rule(3, "0", EarlyStop::Decided), "...", 1), 1);
    }

    #[test]
    fn a_share_of_cases_is_decided_in_the_drawn_order() {
        let threshold: Threshold = "0.8".parse().unwrap();
        let rule = TargetRule::new(threshold).confident(50, 0.05, 7);
        let order = rule.order().unwrap().to_vec();
        let over = Some(Counts::default());
        let mut cases = vec![CaseState { decision: Decision::Open, over: None }; 50];
        for case in &order[..14] {
            cases[*case as usize] = CaseState { decision: Decision::Passed, over };
        }
        assert_eq!(rule.read(&cases).decision, Decision::Open);
        // Later in the order: it does not count before those in between.
        cases[order[40] as usize] = CaseState { decision: Decision::Passed, over };
        assert_eq!(rule.read(&cases).decision, Decision::Open);
        cases[order[14] as usize] = CaseState { decision: Decision::Passed, over };
        let state = rule.read(&cases);
        assert_eq!(state.decision, Decision::Passed, "15 of 15 suffice");
        assert_eq!(state.needless, &order[15..]);
        assert_ne!(TargetRule::new(threshold).confident(50, 0.05, 8).order().unwrap(), order);
    }

    proptest! {
        /// Trials that may start before the end of those under way are all counted at the end.
        #[test]
        fn no_started_trial_is_wasted(
            outcomes in proptest::collection::vec(0_u8..8, 1..40),
            tenths in 0_u64..=10,
            confident in any::<bool>(),
        ) {
            let early = if confident { EarlyStop::Confident } else { EarlyStop::Decided };
            let threshold = format!("{}.{}", tenths / 10, tenths % 10);
            let rule = rule(outcomes.len() as u32, &threshold, early);
            let outcome = |number: usize| match outcomes[number] {
                0 => Mark::Error,
                1..4 => Mark::Failed,
                _ => Mark::Passed,
            };
            let mut made = vec![Mark::Missing; outcomes.len()];
            let mut progress = Progress::default();
            loop {
                let until = progress.may_start(&rule, 1) as usize;
                if until == 0 {
                    break;
                }
                for (number, mark) in made.iter_mut().enumerate().take(until) {
                    *mark = outcome(number);
                }
                progress.advance(&rule, &made);
            }
            let started = made.iter().filter(|mark| **mark != Mark::Missing).count() as u32;
            prop_assert_eq!(rule.read(&made).over.map(Counts::total), Some(started));
        }

        /// `decided` gives the verdict of the full run, with and without errors.
        #[test]
        fn decided_never_changes_a_verdict(
            outcomes in proptest::collection::vec(0_u8..8, 1..60),
            hundredths in 0_u64..=100,
        ) {
            let all: Vec<Mark> = outcomes
                .iter()
                .map(|outcome| match outcome {
                    0 => Mark::Error,
                    1..4 => Mark::Failed,
                    _ => Mark::Passed,
                })
                .collect();
            let threshold = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            let decided = rule(outcomes.len() as u32, &threshold, EarlyStop::Decided);
            let full = rule(outcomes.len() as u32, &threshold, EarlyStop::Off);
            prop_assert_eq!(decided.read(&all).decision, full.read(&all).decision);
        }
    }
}
