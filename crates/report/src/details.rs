//! Reasons of failed cases, for reports that list cases.

use crate::failures::reason;
use bakeoff_core::{CaseId, Status, TargetName, TrialResult};
use std::collections::BTreeMap;

/// Maximum number of failed trials kept per case; the run's folder has all of them.
const MAX_TRIALS: usize = 10;

/// Maximum length of a text, in characters.
const MAX_CHARS: usize = 2000;

/// Details of cases in addition to a summary.
#[derive(Debug, Default)]
pub struct Details {
    cases: BTreeMap<TargetName, BTreeMap<CaseId, CaseDetails>>,
}

/// Details of one case.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaseDetails {
    /// Trials that failed or errored, by trial number.
    pub(crate) failed_trials: BTreeMap<u32, FailedTrial>,
    /// Total latency of all trials.
    pub(crate) latency_ms: u64,
}

/// A trial that failed or errored.
#[derive(Debug, Clone)]
pub(crate) struct FailedTrial {
    pub(crate) is_error: bool,
    pub(crate) reason: String,
    /// Output of the target.
    pub(crate) output: String,
}

impl Details {
    /// Adds the result of a trial.
    pub fn add(&mut self, result: &TrialResult) {
        let cases = self.cases.entry(result.key.target.clone()).or_default();
        let case = cases.entry(result.key.case.clone()).or_default();
        case.latency_ms = case.latency_ms.saturating_add(result.attempt.timing.latency_ms);
        let reason = match (result.status, &result.attempt.error) {
            (Status::Failed, _) => reason(result),
            (Status::Error, Some(error)) => error.message.clone(),
            (Status::Error, None) => "errored".to_owned(),
            (Status::Passed | Status::Skipped, _) => return,
        };
        let trial = FailedTrial {
            is_error: result.status == Status::Error,
            reason: truncate(&reason),
            output: truncate(&result.attempt.output),
        };
        case.failed_trials.insert(result.key.trial, trial);
        if case.failed_trials.len() > MAX_TRIALS {
            case.failed_trials.pop_last();
        }
    }

    pub(crate) fn case(&self, target: &TargetName, case: &CaseId) -> CaseDetails {
        let found = self.cases.get(target).and_then(|cases| cases.get(case));
        found.cloned().unwrap_or_default()
    }
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
