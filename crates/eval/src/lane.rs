//! The order of trials.
//!
//! Every target has a lane with a cursor of its own through the cases, so that a slow target does
//! not hold up a fast one and no list of all trials is ever held. A lane goes through all cases
//! before it comes to their second trials: a verdict forms early.

use crate::case::{Case, CaseSource};
use crate::problem::Problem;
use bakeoff_core::CaseIds;
use std::collections::HashSet;
use std::sync::Arc;

/// Which cases are wanted; empty lists want all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) ids: HashSet<String>,
    pub(crate) tags: HashSet<String>,
}

impl Filter {
    pub(crate) fn wants(&self, case: &Case) -> bool {
        (self.ids.is_empty() || self.ids.contains(case.id.as_str()))
            && (self.tags.is_empty() || case.tags.iter().any(|tag| self.tags.contains(tag)))
    }
}

/// The trials of one target that have not started.
pub(crate) struct Lane {
    source: Arc<CaseSource>,
    ids: Arc<CaseIds>,
    filter: Arc<Filter>,
    trials: u32,
    trial: u32,
    cases: Cases,
    next: Option<(Case, u32)>,
}

type Cases = Box<dyn Iterator<Item = Result<Case, Problem>> + Send>;

impl Lane {
    /// `ids` are those of all cases in the source, as they were when the run began.
    pub(crate) fn new(
        source: Arc<CaseSource>,
        ids: Arc<CaseIds>,
        filter: Arc<Filter>,
        trials: u32,
    ) -> Result<Lane, Problem> {
        let cases: Cases = Box::new(source.iter());
        let mut lane = Lane { source, ids, filter, trials, trial: 1, cases, next: None };
        lane.advance()?;
        Ok(lane)
    }

    /// The place of the next trial in the order of all trials; `None` at the end.
    pub(crate) fn position(&self) -> Option<(u32, usize)> {
        self.next.as_ref().map(|(case, trial)| (*trial, case.index))
    }

    /// Takes the next trial.
    pub(crate) fn take(&mut self) -> Result<Option<(Case, u32)>, Problem> {
        let taken = self.next.take();
        self.advance()?;
        Ok(taken)
    }

    fn changed(&self, case: &Case) -> Problem {
        Problem {
            code: None,
            message: format!("case number {} is no longer the one it was", case.index + 1),
            path: self.source.path().to_owned(),
            place: None,
            hint: None,
        }
    }

    fn advance(&mut self) -> Result<(), Problem> {
        while self.trial <= self.trials {
            for case in self.cases.by_ref() {
                let case = case?;
                if self.ids.get(case.index) != Some(case.id.as_str()) {
                    return Err(self.changed(&case));
                }
                if self.filter.wants(&case) {
                    self.next = Some((case, self.trial));
                    return Ok(());
                }
            }
            self.trial += 1;
            self.cases = Box::new(self.source.iter());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(filter: Filter, trials: u32) -> Vec<(String, u32)> {
        let row = |id: &str, tag: &str| crate::case::Row {
            start: 0,
            place: None,
            fields: [("id", id), ("tags", tag)]
                .map(|(key, value)| (key.to_owned(), value.into()))
                .into_iter()
                .collect(),
        };
        let rows = vec![row("a", "x"), row("b", "y"), row("c", "x")];
        let source = Arc::new(CaseSource::inline(std::path::Path::new("suite"), rows));
        let ids = Arc::new(["a", "b", "c"].into_iter().collect());
        let mut lane = Lane::new(source, ids, Arc::new(filter), trials).unwrap();
        let mut order = Vec::new();
        while let Some(position) = lane.position() {
            let (case, trial) = lane.take().unwrap().unwrap();
            assert_eq!(position, (trial, case.index));
            order.push((case.id.to_string(), trial));
        }
        order
    }

    #[test]
    fn every_case_is_tried_once_before_any_is_tried_again() {
        let order = order(Filter::default(), 2);
        let shown: Vec<String> = order.iter().map(|(id, trial)| format!("{id}{trial}")).collect();
        assert_eq!(shown, ["a1", "b1", "c1", "a2", "b2", "c2"]);
    }

    #[test]
    fn cases_that_change_under_the_run_are_noticed() {
        let rows = vec![crate::case::Row { start: 0, place: None, fields: serde_json::Map::new() }];
        let source = Arc::new(CaseSource::inline(std::path::Path::new("suite"), rows));
        let ids = Arc::new(["another"].into_iter().collect());
        let lane = Lane::new(source, ids, Arc::new(Filter::default()), 1);
        assert!(lane.err().unwrap().message.contains("no longer the one"));
    }

    #[test]
    fn filters_leave_out_the_others() {
        let tagged = Filter { tags: ["x".to_owned()].into(), ..Filter::default() };
        assert_eq!(order(tagged, 1), [("a".to_owned(), 1), ("c".to_owned(), 1)]);
        let none = Filter { ids: ["z".to_owned()].into(), ..Filter::default() };
        assert_eq!(order(none, 3), []);
    }
}
