//! Why cases did not pass, for the views that show each of them.

use crate::failures::reason;
use bakeoff_core::{CaseId, Status, TargetName, TrialResult};
use std::collections::BTreeMap;

/// Trials of one case whose reasons are kept; the others are in the run's folder.
const MOST: usize = 10;

/// Longest text of a reason, in characters.
const LONGEST: usize = 2000;

/// What views of single cases need beside a summary.
#[derive(Debug, Default)]
pub struct Details {
    cases: BTreeMap<TargetName, BTreeMap<CaseId, CaseDetails>>,
}

/// What happened in one case.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaseDetails {
    /// Trials that failed or errored, with the reason.
    pub(crate) troubles: BTreeMap<u32, Trouble>,
    /// The work of all its trials.
    pub(crate) latency_ms: u64,
}

/// Why one trial did not pass.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) is_error: bool,
    pub(crate) reason: String,
    /// What the target said.
    pub(crate) output: String,
}

impl Details {
    /// Looks at a trial.
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
        let trouble = Trouble {
            is_error: result.status == Status::Error,
            reason: cut(&reason),
            output: cut(&result.attempt.output),
        };
        case.troubles.insert(result.key.trial, trouble);
        if case.troubles.len() > MOST {
            case.troubles.pop_last();
        }
    }

    pub(crate) fn case(&self, target: &TargetName, case: &CaseId) -> CaseDetails {
        let found = self.cases.get(target).and_then(|cases| cases.get(case));
        found.cloned().unwrap_or_default()
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
