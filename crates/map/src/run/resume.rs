//! What an earlier process has done already.

use super::ask::Spent;
use super::record::{AskedRecord, Counts, Line, PlanRecord};
use crate::error::Error;
use std::collections::HashMap;
use std::path::Path;

/// What the journal knows.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Requests about packs that are not in the output yet, by pack and by their names within it.
    pub(super) asked: HashMap<(u64, String), AskedRecord>,
    /// What all requests so far have used.
    pub(super) spent: Spent,
    /// Every row is in the output.
    pub(super) finished: Option<Counts>,
}

/// The plan that a journal begins with; `None` when there is no journal, or it was killed before
/// its first line was whole.
pub(super) fn plan(journal: &Path) -> Result<Option<PlanRecord>, Error> {
    if !journal.exists() {
        return Ok(None);
    }
    match bakeoff_journal::read::<Line>(journal)?.next().transpose()? {
        None => Ok(None),
        Some(Line::Plan(plan)) => Ok(Some(plan)),
        Some(_) => Err(Error::Journal(bakeoff_journal::Error::Damaged {
            path: journal.to_owned(),
            line: 1,
            reason: "it does not begin with a plan".to_owned(),
        })),
    }
}

/// Reads what was done; of packs before `first_open`, which are in the output, only what they cost.
pub(super) fn earlier(journal: &Path, first_open: u64) -> Result<Earlier, Error> {
    let mut earlier = Earlier::default();
    let mut total = Spent { cost: Some(Default::default()), ..Spent::default() };
    let mut add = |spent: Spent| {
        total.requests += spent.requests;
        total.cached += spent.cached;
        total.cost = total.cost.zip(spent.cost).map(|(sum, cost)| sum.saturating_add(cost));
        total.usage += spent.usage;
    };
    for line in bakeoff_journal::read::<Line>(journal)? {
        match line? {
            Line::Plan(_) => {}
            Line::Asked(asked) => {
                add(asked.spent.into());
                if asked.pack >= first_open {
                    earlier.asked.insert((asked.pack, asked.path.clone()), asked);
                }
            }
            Line::Finished(counts) => earlier.finished = Some(counts),
        }
    }
    earlier.spent = total;
    Ok(earlier)
}
