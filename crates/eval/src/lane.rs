//! The order of trials.
//!
//! Every target has a lane with a cursor of its own through the cases, so that a slow target does
//! not hold up a fast one and no list of all trials is ever held. A lane goes through all cases
//! before it comes to their second trials: a verdict forms early.

use crate::case::{Case, CaseSource};
use crate::problem::Problem;
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
        (self.ids.is_empty() || self.ids.contains(&case.id))
            && (self.tags.is_empty() || case.tags.iter().any(|tag| self.tags.contains(tag)))
    }
}

/// The trials of one target that have not started.
pub(crate) struct Lane {
    source: Arc<CaseSource>,
    filter: Arc<Filter>,
    trials: u32,
    trial: u32,
    cases: Cases,
    next: Option<(Case, u32)>,
}

type Cases = Box<dyn Iterator<Item = Result<Case, Problem>> + Send>;

impl Lane {
    pub(crate) fn new(
        source: Arc<CaseSource>,
        filter: Arc<Filter>,
        trials: u32,
    ) -> Result<Lane, Problem> {
        let cases: Cases = Box::new(source.iter());
        let mut lane = Lane { source, filter, trials, trial: 1, cases, next: None };
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

    fn advance(&mut self) -> Result<(), Problem> {
        while self.trial <= self.trials {
            for case in self.cases.by_ref() {
                let case = case?;
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
