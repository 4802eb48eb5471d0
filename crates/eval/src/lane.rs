//! The order of trials.
//!
//! Every target has a lane of its own, so that a slow target does not hold up a fast one. A lane goes
//! through all cases before it comes to their second trials: a verdict forms early. Only where a
//! share of the cases may be enough, it goes case by case.

use crate::stopping::{CaseRule, Judge, Mark, Progress, TargetRule};
use bakeoff_core::Status;
use bakeoff_stats::Decision;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// So few errors are no pattern.
const FEW_ERRORS: u64 = 5;

/// So many trials that all errored are one.
const ALL_ERRORS: u64 = 20;

/// What the lanes of a run have in common.
#[derive(Debug, Clone)]
pub(crate) struct LaneRules {
    pub(crate) case: Arc<CaseRule>,
    pub(crate) target: Arc<TargetRule>,
    /// Trials of a case that may be under way although an earlier one may make them needless.
    pub(crate) lookahead: u32,
    /// A target is given up when a larger share of its trials errors.
    pub(crate) max_error_rate: f64,
}

/// A trial of a lane: number of its case among those that were chosen, and its own, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) case: usize,
    pub(crate) trial: u32,
}

/// A place in the order of all trials.
pub(crate) type Position = (u32, u32);

/// Why a lane starts nothing more although trials are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its verdict is as good as certain.
    Certain,
    /// Too many of its trials errored.
    GivenUp,
}

/// The trials of one target.
#[derive(Debug)]
pub(crate) struct Lane {
    rules: LaneRules,
    /// All trials, case by case.
    marks: Vec<Mark>,
    cases: Vec<CaseTurn>,
    /// Positions of the cases that may start a trial, the next one on top.
    ready: BinaryHeap<Reverse<Position>>,
    judge: Judge,
    made: u64,
    errors: u64,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CaseTurn {
    progress: Progress,
    /// When its turn comes among the cases.
    place: u32,
    /// The next trial that was not started.
    next: u32,
    is_ready: bool,
}

impl Lane {
    pub(crate) fn new(rules: LaneRules, cases: usize) -> Lane {
        let trials = rules.case.trials() as usize;
        let mut lane = Lane {
            marks: vec![Mark::Missing; cases * trials],
            cases: vec![CaseTurn::default(); cases],
            ready: BinaryHeap::with_capacity(cases),
            judge: Judge::default(),
            made: 0,
            errors: 0,
            ended: None,
            rules,
        };
        for place in 0..cases {
            let case = lane.case_at(place);
            lane.cases[case].place = place as u32;
            lane.make_ready(case);
        }
        lane
    }

    /// Takes a trial as made: it is not made again, and says nothing about how well the target works.
    pub(crate) fn recall(&mut self, turn: Turn, status: Status) {
        self.mark(turn, status);
    }

    /// The place of the next trial in the order of all trials; `None` when none may start now.
    pub(crate) fn position(&mut self) -> Option<Position> {
        if self.ended.is_some() {
            return None;
        }
        loop {
            let Reverse(position) = *self.ready.peek()?;
            let turn = self.turn_of(position);
            // What was made or decided meanwhile is passed over.
            if self.is_missing(turn) && self.may_start(turn) {
                return Some(position);
            }
            self.ready.pop();
            self.cases[turn.case].is_ready = false;
            self.make_ready(turn.case);
        }
    }

    /// Takes the next trial.
    pub(crate) fn take(&mut self) -> Option<Turn> {
        let position = self.position()?;
        self.ready.pop();
        let turn = self.turn_of(position);
        let case = &mut self.cases[turn.case];
        case.is_ready = false;
        case.next = turn.trial + 1;
        self.make_ready(turn.case);
        Some(turn)
    }

    /// A trial has ended.
    pub(crate) fn ended(&mut self, turn: Turn, status: Status) {
        self.mark(turn, status);
        self.made += 1;
        self.errors += u64::from(status == Status::Error);
        self.make_ready(turn.case);
        let planned = self.marks.len() as f64;
        let too_many = self.errors as f64 > self.rules.max_error_rate * planned;
        let hopeless = self.made == self.errors && self.made >= ALL_ERRORS;
        if self.rules.max_error_rate < 1.0 && (hopeless || (too_many && self.errors > FEW_ERRORS)) {
            self.ended.get_or_insert(Ended::GivenUp);
        }
    }

    /// Why nothing more is started although trials are left.
    pub(crate) fn why_ended(&self) -> Option<Ended> {
        self.ended
    }

    fn mark(&mut self, turn: Turn, status: Status) {
        let trials = self.rules.case.trials() as usize;
        let start = turn.case * trials;
        let Some(marks) = self.marks.get_mut(start..start + trials) else { return };
        let Some(mark) = marks.get_mut(turn.trial as usize) else { return };
        *mark = match status {
            Status::Passed => Mark::Passed,
            Status::Failed => Mark::Failed,
            Status::Error => Mark::Error,
            Status::Skipped => Mark::Missing,
        };
        let case = &mut self.cases[turn.case];
        case.progress.advance(&self.rules.case, marks);
        if case.progress.is_over && self.ended.is_none() {
            let over = |case: usize| {
                let progress = self.cases.get(case)?.progress;
                progress.is_over.then_some(progress.decision)
            };
            if self.judge.advance(&self.rules.target, over) != Decision::Open {
                self.ended = Some(Ended::Certain);
            }
        }
    }

    /// Puts a case into the queue if one of its trials may start.
    fn make_ready(&mut self, number: usize) {
        let trials = self.rules.case.trials();
        let case = &mut self.cases[number];
        let start = number * trials as usize;
        while case.next < trials && self.marks[start + case.next as usize] != Mark::Missing {
            case.next += 1;
        }
        let turn = Turn { case: number, trial: case.next };
        if !case.is_ready && self.may_start(turn) {
            let case = &mut self.cases[number];
            case.is_ready = true;
            let place = case.place;
            let is_case_by_case = self.rules.target.order().is_some();
            self.ready.push(Reverse(if is_case_by_case {
                (place, turn.trial)
            } else {
                (turn.trial, place)
            }));
        }
    }

    fn is_missing(&self, turn: Turn) -> bool {
        let place = turn.case * self.rules.case.trials() as usize + turn.trial as usize;
        self.marks.get(place) == Some(&Mark::Missing)
    }

    fn may_start(&self, turn: Turn) -> bool {
        let progress = self.cases[turn.case].progress;
        turn.trial < progress.may_start(&self.rules.case, self.rules.lookahead)
    }

    fn turn_of(&self, (first, second): Position) -> Turn {
        match self.rules.target.order() {
            Some(_) => Turn { case: self.case_at(first as usize), trial: second },
            None => Turn { case: second as usize, trial: first },
        }
    }

    fn case_at(&self, place: usize) -> usize {
        self.rules.target.order().map_or(place, |order| order[place] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Error, Failed, Passed};
    use bakeoff_suite::EarlyStop;

    fn rules(trials: u32, threshold: &str, early: EarlyStop) -> LaneRules {
        let threshold = threshold.parse().unwrap();
        LaneRules {
            case: Arc::new(CaseRule::new(trials, threshold, early, 0.05)),
            target: Arc::new(TargetRule::new(threshold)),
            lookahead: 1,
            max_error_rate: 0.1,
        }
    }

    /// Takes all that may start now, as `case.trial` from 1.
    fn taken(lane: &mut Lane) -> Vec<String> {
        std::iter::from_fn(|| lane.take())
            .map(|turn| format!("{}.{}", turn.case + 1, turn.trial + 1))
            .collect()
    }

    fn turn(case: usize, trial: u32) -> Turn {
        Turn { case: case - 1, trial: trial - 1 }
    }

    #[test]
    fn every_case_is_tried_once_before_any_is_tried_again() {
        let mut lane = Lane::new(rules(2, "1", EarlyStop::Off), 3);
        assert_eq!(lane.position(), Some((0, 0)));
        assert_eq!(taken(&mut lane), ["1.1", "2.1", "3.1", "1.2", "2.2", "3.2"]);
        assert_eq!(lane.position(), None);
    }

    #[test]
    fn what_an_earlier_process_made_is_not_made_again() {
        let mut lane = Lane::new(rules(2, "1", EarlyStop::Off), 3);
        lane.recall(turn(1, 1), Passed);
        lane.recall(turn(3, 1), Failed);
        lane.recall(turn(3, 2), Passed);
        assert_eq!(taken(&mut lane), ["2.1", "1.2", "2.2"]);
    }

    #[test]
    fn a_case_that_is_decided_gets_no_more_trials() {
        let mut lane = Lane::new(rules(5, "0.6", EarlyStop::Decided), 2);
        assert_eq!(taken(&mut lane), ["1.1", "2.1", "1.2", "2.2", "1.3", "2.3"]);
        for trial in [3, 1, 2] {
            lane.ended(turn(1, trial), Passed);
        }
        assert_eq!(taken(&mut lane), [""; 0], "the first is decided, the other under way");
        lane.ended(turn(2, 1), Passed);
        lane.ended(turn(2, 2), Failed);
        assert_eq!(taken(&mut lane), ["2.4"]);
        lane.ended(turn(2, 3), Passed);
        lane.ended(turn(2, 4), Passed);
        assert_eq!((taken(&mut lane), lane.why_ended()), (vec![], None));
    }

    #[test]
    fn a_target_whose_verdict_is_as_good_as_certain_gets_no_more_trials() {
        let threshold = "0.8".parse().unwrap();
        let target = TargetRule::new(threshold).confident(50, 0.05, 3);
        let order = target.order().unwrap().to_vec();
        let rules = LaneRules { target: Arc::new(target), ..rules(1, "1", EarlyStop::Confident) };
        let mut lane = Lane::new(rules, 50);
        for place in order.iter().take(15) {
            assert_eq!(lane.why_ended(), None);
            let turn = lane.take().unwrap();
            assert_eq!(turn.case, *place as usize);
            lane.ended(turn, Passed);
        }
        assert_eq!((lane.take(), lane.why_ended()), (None, Some(Ended::Certain)));
    }

    #[test]
    fn a_target_with_too_many_errors_is_given_up() {
        let errors = |cases: usize, errors: usize, rate: f64| {
            let rules = LaneRules { max_error_rate: rate, ..rules(1, "1", EarlyStop::Off) };
            let mut lane = Lane::new(rules, cases);
            for number in 0..errors + 1 {
                let turn = lane.take()?;
                // One that passes: not everything is broken.
                lane.ended(turn, if number == 0 { Passed } else { Error });
            }
            lane.why_ended()
        };
        assert_eq!(errors(100, 10, 0.1), None);
        assert_eq!(errors(100, 11, 0.1), Some(Ended::GivenUp));
        assert_eq!(errors(100, 99, 1.0), None, "1 means never");
        assert_eq!(errors(10, 5, 0.1), None, "so few are no pattern");
        assert_eq!(errors(10, 6, 0.1), Some(Ended::GivenUp));
        let mut lane = Lane::new(rules(1, "1", EarlyStop::Off), 1000);
        for _ in 0..20 {
            let turn = lane.take().unwrap();
            lane.ended(turn, Error);
        }
        assert_eq!(lane.why_ended(), Some(Ended::GivenUp), "nothing works");
    }
}
