//! Which cases are wanted.

use crate::Error;
use bakeoff_core::CaseIds;
use bakeoff_suite::Case;
use bakeoff_suite::Suite;
use bakeoff_suite::suggest;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// What cases are chosen by; empty lists want all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) ids: HashSet<String>,
    pub(crate) tags: HashSet<String>,
}

impl Filter {
    fn wants(&self, case: &Case) -> bool {
        (self.ids.is_empty() || self.ids.contains(case.id.as_str()))
            && (self.tags.is_empty() || case.tags.iter().any(|tag| self.tags.contains(tag)))
    }
}

/// The cases of a run.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) ids: Arc<CaseIds>,
    /// Their numbers in the suite, from 0; absent when all are chosen.
    numbers: Option<Vec<u32>>,
}

impl Chosen {
    /// The number in the suite of the case with that number here.
    pub(crate) fn number(&self, case: usize) -> usize {
        let number = self.numbers.as_ref().and_then(|numbers| numbers.get(case));
        number.map_or(case, |number| *number as usize)
    }
}

/// Chooses cases; an id or a tag that none has is an error.
pub(crate) fn choose(suite: &Suite, filter: &Filter) -> Result<Chosen, Error> {
    if filter.ids.is_empty() && filter.tags.is_empty() {
        return Ok(Chosen { ids: Arc::clone(&suite.survey.ids), numbers: None });
    }
    let mut unseen: BTreeSet<&str> =
        filter.ids.iter().chain(&filter.tags).map(String::as_str).collect();
    let mut tags: BTreeSet<String> = BTreeSet::new();
    let (mut chosen, mut numbers) = (Vec::new(), Vec::new());
    for case in suite.cases.iter() {
        let case = case.map_err(Error::Cases)?;
        if filter.ids.contains(case.id.as_str()) {
            unseen.remove(case.id.as_str());
        }
        for tag in &case.tags {
            if filter.tags.contains(tag) {
                unseen.remove(tag.as_str());
            }
        }
        if filter.wants(&case) {
            numbers.push(u32::try_from(case.index).unwrap_or(u32::MAX));
            chosen.push(case.id);
        }
        tags.extend(case.tags);
    }
    let usage = |message, hint| Err(Error::Usage { code: None, message, hint });
    let missing = |wanted: &HashSet<String>| {
        let mut missing: Vec<String> =
            wanted.iter().filter(|word| unseen.contains(word.as_str())).cloned().collect();
        missing.sort();
        missing
    };
    let (ids, absent) = (missing(&filter.ids), missing(&filter.tags));
    if let Some(first) = ids.first() {
        // A list of a thousand ids is no hint.
        let hint =
            suggest(first, suite.survey.ids.iter().take(1000)).filter(|hint| hint.len() < 200);
        return usage(format!("there is no case `{}`", ids.join("`, no case `")), hint);
    }
    if let Some(first) = absent.first() {
        let hint = suggest(first, tags.iter().map(String::as_str));
        return usage(format!("no case has the tag `{}`", absent.join("`, none the tag `")), hint);
    }
    if chosen.is_empty() {
        return usage("no case has both the id and the tag".to_owned(), None);
    }
    Ok(Chosen { ids: Arc::new(chosen.into_iter().collect()), numbers: Some(numbers) })
}
