//! Stored trials of a case: results of the journal, with the exchanges that are stored next to them.

use crate::trial_exchange::TrialExchange;
use crate::trial_traces::read_entries;
use crate::{Error, PastRun};
use bakeoff_core::{TargetName, TrialResult};
use bakeoff_eval::RunFolder;
use bakeoff_suite::suggest;
use std::collections::BTreeSet;

/// Targets that an error about a missing `--target` names.
const MAX_TARGETS: usize = 10;

/// Cases compared with an unknown id, for a suggestion.
const MAX_SUGGESTIONS: usize = 20;

/// A stored trial.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredTrial {
    /// Its result.
    pub result: TrialResult,
    /// Its exchange; `None` if no files of the trial are stored, an error if they cannot be read.
    pub exchange: Result<Option<TrialExchange>, Error>,
}

/// Selection of stored trials.
#[derive(Debug, Clone, Copy)]
pub struct TrialSelection<'a> {
    /// Id of the case.
    pub case: &'a str,
    /// Name of the target; necessary if several targets have trials of the case.
    pub target: Option<&'a str>,
    /// Number of the trial; all if absent.
    pub trial: Option<u32>,
}

impl PastRun {
    /// Returns the selected trials, ordered by number.
    ///
    /// # Errors
    ///
    /// When no trial is selected, or trials of several targets, or the journal cannot be read.
    pub fn trials(&self, selection: TrialSelection<'_>) -> Result<Vec<StoredTrial>, Error> {
        let TrialSelection { case, target, trial } = selection;
        self.check_names(case, target)?;
        let mut found = Vec::new();
        for result in self.results()? {
            let result = result?;
            let key = &result.key;
            let is_selected = key.case.as_str() == case
                && target.is_none_or(|target| key.target.as_str() == target)
                && trial.is_none_or(|trial| key.trial == trial);
            if is_selected {
                found.push(result);
            }
        }
        found.sort_by_key(|result| result.key.trial);
        let targets: BTreeSet<&TargetName> =
            found.iter().map(|result| &result.key.target).collect();
        if targets.len() > 1 {
            let names: Vec<&str> =
                targets.iter().take(MAX_TARGETS).map(|name| name.as_str()).collect();
            return Err(Error::usage(
                format!("{} targets have trials of case `{case}`", targets.len()),
                Some(format!("choose one with `--target`: {}", names.join(", "))),
            ));
        }
        if found.is_empty() {
            let what = trial.map_or_else(String::new, |trial| format!(" with number {trial}"));
            return Err(Error::usage(
                format!("no finished trial{what} of case `{case}`"),
                Some(
                    "the run may not have reached it; `bakeoff report` shows its state".to_owned(),
                ),
            ));
        }
        Ok(found.into_iter().map(|result| self.stored_trial(result)).collect())
    }

    fn stored_trial(&self, result: TrialResult) -> StoredTrial {
        let folder = RunFolder::open(&self.path, &self.file).trial(&result.key);
        let exchange = match folder.join("trace.jsonl").is_file() {
            true => read_entries(&folder).map(|entries| Some(TrialExchange::new(&entries))),
            false => Ok(None),
        };
        StoredTrial { result, exchange }
    }

    /// Fails if the run has no such case or target.
    fn check_names(&self, case: &str, target: Option<&str>) -> Result<(), Error> {
        let suite = &self.file.suite;
        if suite.cases.chosen.position(case).is_none() {
            let hint = suggest(case, suite.cases.chosen.iter().take(MAX_SUGGESTIONS));
            return Err(Error::usage(format!("the run has no case `{case}`"), hint));
        }
        let names: Vec<&str> =
            suite.targets.iter().filter_map(|target| target["name"].as_str()).collect();
        match target {
            Some(target) if !names.contains(&target) => {
                let hint = suggest(target, names.iter().copied());
                Err(Error::usage(format!("the run has no target `{target}`"), hint))
            }
            _ => Ok(()),
        }
    }
}
