//! `aggregated.json`: all trials of one case, in FastSkill's format with additional fields.

use crate::Error;
use crate::folder::RunFolder;
use bakeoff_core::{
    CaseSummary, CheckResult, NanoDollars, Status, Summary, TargetName, Timing, TrialKey,
    TrialResult,
};
use bakeoff_suite::Artifacts;
use serde::Serialize;
use std::collections::HashMap;

/// Collects trials until the end of the run.
#[derive(Debug)]
pub(crate) struct CaseFiles {
    artifacts: Artifacts,
    trials: HashMap<TargetName, HashMap<String, Vec<TrialRecord>>>,
}

/// One trial.
#[derive(Debug, Clone, Serialize)]
struct TrialRecord {
    trial_id: u32,
    status: Status,
    command_count: Option<usize>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    check_results: Vec<CheckRecord>,
    error_message: Option<String>,
    score: Option<f64>,
    cost_nanodollars: Option<NanoDollars>,
    /// Values that depend on the clock.
    stats: Timing,
}

#[derive(Debug, Clone, Serialize)]
struct CheckRecord {
    check_name: String,
    passed: bool,
    score: f64,
    message: Option<String>,
    required: bool,
    weight: f64,
}

/// Contents of the file.
#[derive(Debug, Serialize)]
struct CaseFile<'a> {
    id: &'a str,
    trials: &'a [TrialRecord],
    aggregated_status: Status,
    pass_count: u32,
    total_trials: u32,
    pass_rate: Option<f64>,
    case: &'a CaseSummary,
}

impl CaseFiles {
    pub(crate) fn new(artifacts: Artifacts) -> CaseFiles {
        CaseFiles { artifacts, trials: HashMap::new() }
    }

    pub(crate) fn add(&mut self, result: &TrialResult) {
        if self.artifacts == Artifacts::None {
            return;
        }
        let cases = self.trials.entry(result.key.target.clone()).or_default();
        let trials = cases.entry(result.key.case.to_string()).or_default();
        // The last result of a trial counts.
        trials.retain(|trial| trial.trial_id != result.key.trial);
        trials.push(record(result));
    }

    /// Writes a file for each case with artifacts.
    pub(crate) fn write(mut self, folder: &RunFolder, summary: &Summary) -> Result<(), Error> {
        for target in &summary.targets {
            let Some(mut cases) = self.trials.remove(&target.target) else { continue };
            for case in target.cases.iter() {
                let Some(mut trials) = cases.remove(case.id.as_str()) else { continue };
                let all_passed = trials.iter().all(|trial| trial.status == Status::Passed);
                if self.artifacts == Artifacts::Failures && all_passed {
                    continue;
                }
                trials.sort_unstable_by_key(|trial| trial.trial_id);
                let file = CaseFile {
                    id: case.id.as_str(),
                    trials: &trials,
                    aggregated_status: case.status,
                    pass_count: case.pass_count,
                    total_trials: case.total_trials,
                    pass_rate: case.pass_rate,
                    case: &case,
                };
                let key =
                    TrialKey { target: target.target.clone(), case: case.id.clone(), trial: 1 };
                folder.write_case(&key, &file)?;
            }
        }
        Ok(())
    }
}

fn record(result: &TrialResult) -> TrialRecord {
    let attempt = &result.attempt;
    let is_agent = attempt.transcript.is_some() || !attempt.tool_uses.is_empty();
    let check = |check: &CheckResult| CheckRecord {
        check_name: check.check.clone(),
        passed: check.passed,
        score: check.score,
        message: (!check.message.is_empty()).then(|| check.message.clone()),
        required: check.required,
        weight: check.weight,
    };
    TrialRecord {
        trial_id: result.key.trial,
        status: result.status,
        command_count: is_agent.then(|| bakeoff_check::command_count(attempt)),
        input_tokens: attempt.usage.map(|usage| usage.prompt()),
        output_tokens: attempt.usage.map(|usage| usage.output),
        check_results: result.checks.iter().map(check).collect(),
        error_message: attempt.error.as_ref().map(|error| error.message.clone()),
        score: result.score,
        cost_nanodollars: attempt.cost,
        stats: attempt.timing,
    }
}
