//! Selection of the cases of a run by id, tag and number.

use crate::Error;
use bakeoff_core::CaseIds;
use bakeoff_suite::{Case, Suite, suggest};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Ids checked for a similar one when a case does not exist.
const MAX_SUGGESTION_IDS: usize = 1000;

/// Longest hint shown; a list of a thousand ids is not helpful.
const MAX_HINT_BYTES: usize = 200;

/// Ids and tags that select cases; an empty set selects all. The numbers limit what they select.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaseFilter {
    pub(crate) ids: HashSet<String>,
    pub(crate) tags: HashSet<String>,
    /// Number of cases, the first ones.
    pub(crate) limit: Option<usize>,
    /// Number of random cases.
    pub(crate) sample: Option<usize>,
    /// Seed of the random cases.
    pub(crate) seed: u64,
}

impl CaseFilter {
    /// Returns the positions of the random cases among all, in file order. A larger number with the same
    /// seed adds cases and keeps the others.
    fn sample<'a>(&self, ids: impl Iterator<Item = &'a str>, number: usize) -> Vec<usize> {
        let rank = |id: &str| {
            *blake3::Hasher::new()
                .update(&self.seed.to_le_bytes())
                .update(id.as_bytes())
                .finalize()
                .as_bytes()
        };
        let mut ranked: Vec<([u8; 32], usize)> =
            ids.enumerate().map(|(position, id)| (rank(id), position)).collect();
        ranked.sort_unstable();
        let mut positions: Vec<usize> =
            ranked.into_iter().take(number).map(|(_, position)| position).collect();
        positions.sort_unstable();
        positions
    }

    fn matches(&self, case: &Case) -> bool {
        (self.ids.is_empty() || self.ids.contains(case.id.as_str()))
            && (self.tags.is_empty() || case.tags.iter().any(|tag| self.tags.contains(tag)))
    }
}

/// The cases of a run.
#[derive(Debug, Clone)]
pub(crate) struct CaseSelection {
    pub(crate) ids: Arc<CaseIds>,
    /// Their indices in the suite, ascending; absent when all cases are selected.
    indices: Option<Vec<u32>>,
}

impl CaseSelection {
    pub(crate) fn all(suite: &Suite) -> CaseSelection {
        CaseSelection { ids: Arc::clone(&suite.survey.ids), indices: None }
    }

    /// Returns the selected cases in order, without those that cannot be read.
    pub(crate) fn cases(&self, suite: &Suite) -> impl Iterator<Item = Case> {
        let is_selected = |case: &Case| {
            let index = u32::try_from(case.index).unwrap_or(u32::MAX);
            self.indices.as_ref().is_none_or(|indices| indices.binary_search(&index).is_ok())
        };
        suite.cases.iter().filter_map(Result::ok).filter(is_selected)
    }

    /// Retains the cases at these positions.
    fn retain(self, positions: &[usize]) -> CaseSelection {
        let index =
            |position: &usize| u32::try_from(self.suite_index(*position)).unwrap_or(u32::MAX);
        let ids = positions.iter().filter_map(|position| self.ids.get(*position)).collect();
        let indices = Some(positions.iter().map(index).collect());
        CaseSelection { ids: Arc::new(ids), indices }
    }

    /// Returns the position among the selected cases of a case of the suite.
    pub(crate) fn position(&self, suite_index: usize) -> Option<usize> {
        let Some(indices) = &self.indices else { return Some(suite_index) };
        indices.binary_search(&u32::try_from(suite_index).ok()?).ok()
    }

    /// Returns the index in the suite of a selected case.
    pub(crate) fn suite_index(&self, case: usize) -> usize {
        let index = self.indices.as_ref().and_then(|indices| indices.get(case));
        index.map_or(case, |index| *index as usize)
    }
}

/// Selects the cases of a run.
///
/// # Errors
///
/// When no case has one of the ids or tags, or no case has both an id and a tag of the filter.
pub(crate) fn select_cases(suite: &Suite, filter: &CaseFilter) -> Result<CaseSelection, Error> {
    let mut cases = match_cases(suite, filter)?;
    if let Some(number) = filter.sample {
        let positions = filter.sample(cases.ids.iter(), number);
        cases = cases.retain(&positions);
    }
    if let Some(number) = filter.limit {
        let positions: Vec<usize> = (0..cases.ids.len().min(number)).collect();
        cases = cases.retain(&positions);
    }
    Ok(cases)
}

/// Returns the cases with the ids and tags of a filter.
fn match_cases(suite: &Suite, filter: &CaseFilter) -> Result<CaseSelection, Error> {
    if filter.ids.is_empty() && filter.tags.is_empty() {
        return Ok(CaseSelection::all(suite));
    }
    let mut unmatched: BTreeSet<&str> =
        filter.ids.iter().chain(&filter.tags).map(String::as_str).collect();
    let mut known_tags: BTreeSet<String> = BTreeSet::new();
    let (mut selected, mut indices) = (Vec::new(), Vec::new());
    for case in suite.cases.iter() {
        let case = case.map_err(Error::Cases)?;
        if filter.ids.contains(case.id.as_str()) {
            unmatched.remove(case.id.as_str());
        }
        for tag in &case.tags {
            if filter.tags.contains(tag) {
                unmatched.remove(tag.as_str());
            }
        }
        if filter.matches(&case) {
            indices.push(u32::try_from(case.index).unwrap_or(u32::MAX));
            selected.push(case.id);
        }
        known_tags.extend(case.tags);
    }
    let missing = |names: &HashSet<String>| {
        let mut missing: Vec<String> =
            names.iter().filter(|name| unmatched.contains(name.as_str())).cloned().collect();
        missing.sort();
        missing
    };
    let (missing_ids, missing_tags) = (missing(&filter.ids), missing(&filter.tags));
    if let Some(first) = missing_ids.first() {
        let hint = suggest(first, suite.survey.ids.iter().take(MAX_SUGGESTION_IDS))
            .filter(|hint| hint.len() < MAX_HINT_BYTES);
        let message = format!("there is no case `{}`", missing_ids.join("`, no case `"));
        return Err(Error::usage(message, hint));
    }
    if let Some(first) = missing_tags.first() {
        let hint = suggest(first, known_tags.iter().map(String::as_str));
        let message = format!("no case has the tag `{}`", missing_tags.join("`, none the tag `"));
        return Err(Error::usage(message, hint));
    }
    if selected.is_empty() {
        return Err(Error::usage("no case has both the id and the tag", None));
    }
    let ids = Arc::new(selected.into_iter().collect());
    Ok(CaseSelection { ids, indices: Some(indices) })
}
