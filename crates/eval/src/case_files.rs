//! `aggregated.json`: all trials of one case, in FastSkill's format with additional fields.

use crate::Error;
use crate::folder::RunFolder;
use crate::trial_record::TrialRecord;
use bakeoff_core::{CaseSummary, Status, Summary, TargetName, TrialKey, TrialResult};
use bakeoff_suite::{Artifacts, Suite};
use serde::Serialize;
use std::collections::HashMap;

/// Collects trials until the end of the run.
#[derive(Debug)]
pub(crate) struct CaseFiles {
    artifacts: Artifacts,
    /// Whether the suite is a FastSkill project.
    is_project: bool,
    trials: HashMap<TargetName, HashMap<String, Vec<TrialRecord>>>,
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
    /// Collects the trials of a run.
    pub(crate) fn new(suite: &Suite) -> CaseFiles {
        let (artifacts, is_project) = (suite.settings.artifacts, suite.project.is_some());
        CaseFiles { artifacts, is_project, trials: HashMap::new() }
    }

    /// Collects the trials of a run that writes no files of cases.
    pub(crate) fn without_artifacts(suite: &Suite) -> CaseFiles {
        CaseFiles { artifacts: Artifacts::None, ..CaseFiles::new(suite) }
    }

    pub(crate) fn add(&mut self, result: &TrialResult) {
        // The summary of a FastSkill project has all trials.
        if self.artifacts == Artifacts::None && !self.is_project {
            return;
        }
        let cases = self.trials.entry(result.key.target.clone()).or_default();
        let trials = cases.entry(result.key.case.to_string()).or_default();
        // The last result of a trial counts.
        trials.retain(|trial| trial.trial_id != result.key.trial);
        let next = trials.partition_point(|trial| trial.trial_id < result.key.trial);
        trials.insert(next, TrialRecord::new(result));
    }

    /// Returns the trials of a case, ordered by number.
    pub(crate) fn trials(&self, target: &TargetName, case: &str) -> &[TrialRecord] {
        self.trials.get(target).and_then(|cases| cases.get(case)).map_or(&[], Vec::as_slice)
    }

    /// Writes a file for each case with artifacts.
    pub(crate) fn write(&self, folder: &RunFolder, summary: &Summary) -> Result<(), Error> {
        if self.artifacts == Artifacts::None {
            return Ok(());
        }
        for target in &summary.targets {
            for case in target.cases.iter() {
                let trials = self.trials(&target.target, case.id.as_str());
                let all_passed = trials.iter().all(|trial| trial.status == Status::Passed);
                if trials.is_empty() || (self.artifacts == Artifacts::Failures && all_passed) {
                    continue;
                }
                let file = CaseFile {
                    id: case.id.as_str(),
                    trials,
                    aggregated_status: case.status,
                    pass_count: case.pass_count,
                    total_trials: case.total_trials,
                    pass_rate: match self.is_project {
                        true => Some(planned_pass_rate(&case)),
                        false => case.pass_rate,
                    },
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

/// Returns the pass rate as FastSkill defines it: errored trials count as not passed.
pub(crate) fn planned_pass_rate(case: &CaseSummary) -> f64 {
    f64::from(case.pass_count) / f64::from(case.total_trials.max(1))
}
