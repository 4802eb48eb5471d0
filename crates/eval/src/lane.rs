//! The order of trials.
//!
//! Every target has its own lane, so that a slow target does not delay a fast one. A lane starts the
//! first trial of all cases before the second of any, so that verdicts form early. Only where a share of
//! the cases may be enough, it completes case by case.

use crate::stopping::{CaseProgress, CaseRules, TargetProgress, TargetRule, TrialMark};
use bakeoff_core::Status;
use bakeoff_stats::Decision;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Number of errors that never stops a target.
const TOLERATED_ERRORS: u64 = 5;

/// Number of trials after which a target stops if all of them ended in errors.
const MIN_FAILED_TRIALS: u64 = 20;

/// Rules shared by all lanes of a run.
#[derive(Debug, Clone)]
pub(crate) struct LaneRules {
    pub(crate) cases: Arc<CaseRules>,
    pub(crate) target: Arc<TargetRule>,
    /// Trials of a case that may run although an earlier one may make them unnecessary.
    pub(crate) lookahead: u32,
    /// A target stops when a larger share of its trials ends in errors.
    pub(crate) max_error_rate: f64,
}

/// A trial of a lane: index of its case among the selected cases, and of the trial, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrialIndex {
    pub(crate) case: usize,
    pub(crate) trial: u32,
}

/// Position in the order of all trials; smaller positions start first.
pub(crate) type QueuePosition = (u32, u32);

/// Why a lane ended before all its trials were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneEnd {
    /// The verdict is certain enough.
    VerdictCertain,
    /// Too many trials ended in errors.
    TooManyErrors,
}

/// The trials of one target.
#[derive(Debug)]
pub(crate) struct Lane {
    rules: LaneRules,
    /// All trials, case by case.
    marks: Vec<TrialMark>,
    cases: Vec<CaseSchedule>,
    /// Positions of the cases that may start a trial, the smallest on top.
    ready: BinaryHeap<Reverse<QueuePosition>>,
    progress: TargetProgress,
    completed: u64,
    errors: u64,
    end: Option<LaneEnd>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CaseSchedule {
    progress: CaseProgress,
    /// Rank in the order of cases.
    rank: u32,
    /// The next trial to start.
    next: u32,
    is_ready: bool,
}

impl Lane {
    pub(crate) fn new(rules: LaneRules) -> Lane {
        let plan = rules.cases.plan();
        let cases = plan.cases();
        let mut lane = Lane {
            marks: vec![TrialMark::Missing; plan.total()],
            cases: vec![CaseSchedule::default(); cases],
            ready: BinaryHeap::with_capacity(cases),
            progress: TargetProgress::default(),
            completed: 0,
            errors: 0,
            end: None,
            rules,
        };
        for rank in 0..cases {
            let case = lane.case_at(rank);
            lane.cases[case].rank = rank as u32;
            lane.queue_case(case);
        }
        lane
    }

    /// Marks a trial as finished without counting it for the error rate: it is not started again.
    pub(crate) fn restore(&mut self, index: TrialIndex, status: Status) {
        self.mark(index, status);
    }

    /// Returns the position of the next trial; `None` when no trial may start now.
    pub(crate) fn position(&mut self) -> Option<QueuePosition> {
        if self.end.is_some() {
            return None;
        }
        loop {
            let Reverse(position) = *self.ready.peek()?;
            let index = self.index_at(position);
            // Trials that are finished or unnecessary by now are skipped.
            if self.is_missing(index) && self.can_start(index) {
                return Some(position);
            }
            self.ready.pop();
            self.cases[index.case].is_ready = false;
            self.queue_case(index.case);
        }
    }

    /// Removes and returns the next trial.
    pub(crate) fn take(&mut self) -> Option<TrialIndex> {
        let position = self.position()?;
        self.ready.pop();
        let index = self.index_at(position);
        let case = &mut self.cases[index.case];
        case.is_ready = false;
        case.next = index.trial + 1;
        self.queue_case(index.case);
        Some(index)
    }

    /// Records the status of a finished trial.
    pub(crate) fn complete(&mut self, index: TrialIndex, status: Status) {
        self.mark(index, status);
        self.completed += 1;
        self.errors += u64::from(status == Status::Error);
        self.queue_case(index.case);
        let planned = self.marks.len() as f64;
        let too_many = self.errors as f64 > self.rules.max_error_rate * planned;
        let only_errors = self.completed == self.errors && self.completed >= MIN_FAILED_TRIALS;
        let too_many = too_many && self.errors > TOLERATED_ERRORS;
        if self.rules.max_error_rate < 1.0 && (only_errors || too_many) {
            self.end.get_or_insert(LaneEnd::TooManyErrors);
        }
    }

    /// Returns why the lane ended before all its trials were started.
    pub(crate) fn end(&self) -> Option<LaneEnd> {
        self.end
    }

    fn mark(&mut self, index: TrialIndex, status: Status) {
        let range = self.rules.cases.plan().range(index.case);
        let Some(marks) = self.marks.get_mut(range) else { return };
        let Some(mark) = marks.get_mut(index.trial as usize) else { return };
        *mark = match status {
            Status::Passed => TrialMark::Passed,
            Status::Failed => TrialMark::Failed,
            Status::Error => TrialMark::Error,
            Status::Skipped => TrialMark::Missing,
        };
        let case = &mut self.cases[index.case];
        case.progress.advance(self.rules.cases.of(index.case), marks);
        if case.progress.is_decided && self.end.is_none() {
            let decided = |case: usize| {
                let progress = self.cases.get(case)?.progress;
                progress.is_decided.then_some(progress.decision)
            };
            if self.progress.advance(&self.rules.target, decided) != Decision::Open {
                self.end = Some(LaneEnd::VerdictCertain);
            }
        }
    }

    /// Queues a case if one of its trials may start.
    fn queue_case(&mut self, case_index: usize) {
        let range = self.rules.cases.plan().range(case_index);
        let case = &mut self.cases[case_index];
        let missing = self.marks[range].iter().skip(case.next as usize);
        case.next += missing.take_while(|mark| **mark != TrialMark::Missing).count() as u32;
        let index = TrialIndex { case: case_index, trial: case.next };
        if !case.is_ready && self.can_start(index) {
            let case = &mut self.cases[case_index];
            case.is_ready = true;
            let rank = case.rank;
            let is_case_by_case = self.rules.target.order().is_some();
            self.ready.push(Reverse(if is_case_by_case {
                (rank, index.trial)
            } else {
                (index.trial, rank)
            }));
        }
    }

    fn is_missing(&self, index: TrialIndex) -> bool {
        let number = self.rules.cases.plan().range(index.case).nth(index.trial as usize);
        number.is_some_and(|number| self.marks[number] == TrialMark::Missing)
    }

    fn can_start(&self, index: TrialIndex) -> bool {
        let progress = self.cases[index.case].progress;
        index.trial < progress.startable(self.rules.cases.of(index.case), self.rules.lookahead)
    }

    fn index_at(&self, (first, second): QueuePosition) -> TrialIndex {
        match self.rules.target.order() {
            Some(_) => TrialIndex { case: self.case_at(first as usize), trial: second },
            None => TrialIndex { case: second as usize, trial: first },
        }
    }

    /// Returns the case with that rank.
    fn case_at(&self, rank: usize) -> usize {
        self.rules.target.order().map_or(rank, |order| order[rank] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stopping::CaseRule;
    use crate::trial_plan::{TrialPlan, TrialRule};
    use Status::{Error, Failed, Passed};
    use bakeoff_suite::EarlyStop;

    fn rules(cases: usize, trials: u32, threshold: &str, early: EarlyStop) -> LaneRules {
        let threshold = threshold.parse().unwrap();
        let plan = TrialPlan::uniform(TrialRule { trials, threshold }, cases);
        rules_of(plan, early)
    }

    fn rules_of(plan: TrialPlan, early: EarlyStop) -> LaneRules {
        let threshold = plan.default().threshold;
        LaneRules {
            cases: Arc::new(CaseRules::new(plan, |rule| CaseRule::new(rule, early, 0.05))),
            target: Arc::new(TargetRule::new(threshold)),
            lookahead: 1,
            max_error_rate: 0.1,
        }
    }

    /// Takes all trials that may start now, as `case.trial` from 1.
    fn taken(lane: &mut Lane) -> Vec<String> {
        std::iter::from_fn(|| lane.take())
            .map(|index| format!("{}.{}", index.case + 1, index.trial + 1))
            .collect()
    }

    fn index(case: usize, trial: u32) -> TrialIndex {
        TrialIndex { case: case - 1, trial: trial - 1 }
    }

    #[test]
    fn first_trials_of_all_cases_precede_second_trials() {
        let mut lane = Lane::new(rules(3, 2, "1", EarlyStop::Off));
        assert_eq!(lane.position(), Some((0, 0)));
        assert_eq!(taken(&mut lane), ["1.1", "2.1", "3.1", "1.2", "2.2", "3.2"]);
        assert_eq!(lane.position(), None);
    }

    #[test]
    fn cases_have_their_own_numbers_of_trials() {
        let rule = |trials| TrialRule { trials, threshold: "1".parse().unwrap() };
        let plan = TrialPlan::uniform(rule(2), 4).with_own([(1, rule(1)), (2, rule(3))]);
        let mut lane = Lane::new(rules_of(plan, EarlyStop::Off));
        assert_eq!(taken(&mut lane), ["1.1", "2.1", "3.1", "4.1", "1.2", "3.2", "4.2", "3.3"]);
    }

    #[test]
    fn own_threshold_decides_a_case() {
        let rule = |threshold: &str| TrialRule { trials: 4, threshold: threshold.parse().unwrap() };
        let plan = TrialPlan::uniform(rule("1"), 2).with_own([(1, rule("0.25"))]);
        let mut lane = Lane::new(rules_of(plan, EarlyStop::Decided));
        assert_eq!(taken(&mut lane), ["1.1", "2.1"], "one failure or one pass may decide");
        lane.complete(index(1, 1), Passed);
        lane.complete(index(2, 1), Passed);
        assert_eq!(taken(&mut lane), ["1.2"], "the second case has passed");
    }

    #[test]
    fn restored_trials_are_not_started() {
        let mut lane = Lane::new(rules(3, 2, "1", EarlyStop::Off));
        lane.restore(index(1, 1), Passed);
        lane.restore(index(3, 1), Failed);
        lane.restore(index(3, 2), Passed);
        assert_eq!(taken(&mut lane), ["2.1", "1.2", "2.2"]);
    }

    #[test]
    fn decided_cases_start_no_more_trials() {
        let mut lane = Lane::new(rules(2, 5, "0.6", EarlyStop::Decided));
        assert_eq!(taken(&mut lane), ["1.1", "2.1", "1.2", "2.2", "1.3", "2.3"]);
        for trial in [3, 1, 2] {
            lane.complete(index(1, trial), Passed);
        }
        assert_eq!(taken(&mut lane), [""; 0], "the first case is decided, the second is running");
        lane.complete(index(2, 1), Passed);
        lane.complete(index(2, 2), Failed);
        assert_eq!(taken(&mut lane), ["2.4"]);
        lane.complete(index(2, 3), Passed);
        lane.complete(index(2, 4), Passed);
        assert_eq!((taken(&mut lane), lane.end()), (vec![], None));
    }

    #[test]
    fn certain_verdict_ends_the_lane() {
        let threshold = "0.8".parse().unwrap();
        let target = TargetRule::new(threshold).confident(50, 0.05, 3);
        let order = target.order().unwrap().to_vec();
        let rules =
            LaneRules { target: Arc::new(target), ..rules(50, 1, "1", EarlyStop::Confident) };
        let mut lane = Lane::new(rules);
        for case in order.iter().take(15) {
            assert_eq!(lane.end(), None);
            let index = lane.take().unwrap();
            assert_eq!(index.case, *case as usize);
            lane.complete(index, Passed);
        }
        assert_eq!((lane.take(), lane.end()), (None, Some(LaneEnd::VerdictCertain)));
    }

    #[test]
    fn too_many_errors_end_the_lane() {
        let errors = |cases: usize, errors: usize, rate: f64| {
            let rules = rules(cases, 1, "1", EarlyStop::Off);
            let mut lane = Lane::new(LaneRules { max_error_rate: rate, ..rules });
            for number in 0..errors + 1 {
                let index = lane.take()?;
                // One trial passes, so that not all trials end in errors.
                lane.complete(index, if number == 0 { Passed } else { Error });
            }
            lane.end()
        };
        assert_eq!(errors(100, 10, 0.1), None);
        assert_eq!(errors(100, 11, 0.1), Some(LaneEnd::TooManyErrors));
        assert_eq!(errors(100, 99, 1.0), None, "a rate of 1 never stops");
        assert_eq!(errors(10, 5, 0.1), None, "five errors are tolerated");
        assert_eq!(errors(10, 6, 0.1), Some(LaneEnd::TooManyErrors));
        let mut lane = Lane::new(rules(1000, 1, "1", EarlyStop::Off));
        for _ in 0..20 {
            let index = lane.take().unwrap();
            lane.complete(index, Error);
        }
        assert_eq!(lane.end(), Some(LaneEnd::TooManyErrors), "all trials ended in errors");
    }
}
