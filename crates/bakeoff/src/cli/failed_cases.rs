//! Cases that did not pass in an earlier run, for `bakeoff run --failed-of`.

use crate::error::{CliError, UsageError};
use bakeoff_core::{Status, TargetSummary};
use bakeoff_history::PastRun;
use bakeoff_suite::Suite;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns the ids of the suite's cases that did not pass in a run, for at least one of the suite's targets.
/// Cases that have been removed from the suite are left out.
pub(crate) fn failed_cases(run: &Path, suite: &Suite) -> Result<Vec<String>, CliError> {
    let past = PastRun::open(run)?;
    let (summary, id) = (past.summary()?, &past.file.run_id);
    let is_selected =
        |summary: &&TargetSummary| suite.targets.iter().any(|one| one.name == summary.target);
    let targets: Vec<&TargetSummary> = summary.targets.iter().filter(is_selected).collect();
    if targets.is_empty() {
        return Err(UsageError::new(format!("{id} has none of the targets of this run"))
            .hint("name a run of these targets; `bakeoff list` lists all runs")
            .into());
    }
    let cases = targets.iter().flat_map(|target| target.cases.iter());
    let failed: BTreeSet<String> = cases
        .filter(|case| case.status != Status::Passed)
        .map(|case| case.id.to_string())
        .collect();
    if failed.is_empty() {
        return Err(UsageError::new(format!("no case left: all cases passed in {id}"))
            .hint("leave out `--failed-of` to run all cases")
            .into());
    }
    let known = failed.into_iter().filter(|id| suite.survey.ids.position(id).is_some());
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        return Err(UsageError::new(format!(
            "no case left: the suite no longer has the cases that did not pass in {id}"
        ))
        .into());
    }
    Ok(known)
}
