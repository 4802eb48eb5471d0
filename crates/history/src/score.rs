//! Checking the stored outputs of a run again.

use crate::{Error, PastRun};
use bakeoff_core::{Event, TargetName};
use bakeoff_eval::{FinishedRun, RescoreInput, Run, Stopper, rescore};
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
        cases: Arc::clone(&suite.cases.chosen),
        plan,
        results: past.journaled_results()?,
    };
    Ok(rescore(run, input, stopper, listen).await?)
}
