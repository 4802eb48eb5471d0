//! Checking the stored outputs of a run again.

use crate::{Error, PastRun};
use bakeoff_core::{Event, TargetName};
use bakeoff_eval::{CASES_FILE, FinishedRun, RescoreInput, Run, Stopper, rescore};
use std::sync::Arc;

/// Checks the outputs of an earlier run by the checks of another suite, as [`rescore`] does.
///
/// # Errors
///
/// As for [`rescore`].
pub async fn score(
    run: Run,
    past: &PastRun,
    stopper: &Stopper,
    listen: &mut (dyn FnMut(&Event) + Send),
) -> Result<FinishedRun, Error> {
    if past.journaled_results()?.next().is_none() {
        let message = format!("{} has no stored outputs to check", past.file.run_id);
        let hint = "its journal is empty, damaged or missing; start a new run";
        return Err(Error::usage(message, Some(hint.to_owned())));
    }
    let suite = &past.file.suite;
    let name = |target: &serde_json::Value| target["name"].as_str().unwrap_or_default().into();
    let plan = past.file.criteria().plan;
    let plan = match run.fixed_threshold() {
        Some(threshold) => plan.with_threshold(threshold),
        None => plan,
    };
    let input = RescoreInput {
        run_id: past.file.run_id.clone(),
        targets: suite.targets.iter().map(name).collect::<Vec<TargetName>>(),
        target_records: suite.targets.clone(),
        cases: Arc::clone(&suite.cases.chosen),
        plan,
        results: past.journaled_results()?,
    };
    let finished = rescore(run, input, stopper, listen).await?;
    // The outputs belong to the cases of the earlier run, which the suite may have changed since.
    let (stored, copy) = (past.path.join(CASES_FILE), finished.folder.path.join(CASES_FILE));
    match std::fs::copy(&stored, copy) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Read { path: stored, source })
        }
        _ => Ok(finished),
    }
}
