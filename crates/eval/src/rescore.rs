//! Checking stored outputs again.

use crate::Error;
use crate::aggregate::{Aggregate, RunCriteria};
use crate::case_files::CaseFiles;
use crate::check_runner::{CheckedTrial, judge_attempt};
use crate::client::RunLimits;
use crate::context::TrialContext;
use crate::folder::RunFolder;
use crate::recorder::Recorder;
use crate::run::{FinishedRun, Run, exit_code};
use crate::run_file::{Layout, RunFile};
use crate::stopper::Stopper;
use crate::timestamp::rfc3339;
use crate::trace::Trace;
use crate::traffic_log::TrafficLog;
use crate::trial::TrialOutcome;
use crate::trial_plan::TrialPlan;
use crate::work_folder::WorkFolder;
use bakeoff_core::{
    CaseIds, ErrorKind, Event, RunId, RunPlan, RunStats, SCHEMA_VERSION, TargetName, TrialError,
    TrialResult,
};
use bakeoff_journal::Journal;
use bakeoff_suite::{Artifacts, CaseReader, Suite};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{JoinError, JoinSet};

/// Results that are checked concurrently: checks may call models or run programs.
const MAX_CONCURRENT: usize = 64;

/// Results that are recorded in one write.
const BATCH_SIZE: usize = 256;

/// Stored results of an earlier run.
#[derive(Debug)]
pub struct RescoreInput<I> {
    /// Id of the earlier run.
    pub run_id: RunId,
    /// Names of its targets.
    pub targets: Vec<TargetName>,
    /// Descriptions of its targets in `run.json`, with the prompts that its outputs answer.
    pub target_records: Vec<Value>,
    /// Ids of its cases.
    pub cases: Arc<CaseIds>,
    /// Trials of its cases, and the share of them that must pass.
    pub plan: TrialPlan,
    /// Its results.
    pub results: I,
}

/// Applies the checks of a suite to the outputs of an earlier run. Targets are not called; models are
/// called only by judged checks. The earlier run does not change: the results form a new run, which is removed
/// if an error prevents its completion.
///
/// # Errors
///
/// When a target or case of the earlier run is not in the suite any more, or results cannot be read or
/// written.
pub async fn rescore<I>(
    run: Run,
    input: RescoreInput<I>,
    stopper: &Stopper,
    listen: &mut (dyn FnMut(&Event) + Send),
) -> Result<FinishedRun, Error>
where
    I: Iterator<Item = Result<TrialResult, bakeoff_journal::Error>>,
{
    let now = Utc::now();
    let targets = target_indices(&run.suite, &input.targets)?;
    check_cases(&run.suite, &input.cases)?;
    let layout = Layout::of(run.criteria.targets.len());
    let folder = RunFolder::create(&run.config.out, &run.suite.name, now, layout)?;
    let path = folder.path.clone();
    let finished = rescore_into(folder, now, run, targets, input, stopper, listen).await;
    if finished.is_err() {
        // The error is more useful than one about the removal.
        let _ = std::fs::remove_dir_all(path);
    }
    finished
}

/// Writes the new run into a folder.
async fn rescore_into<I>(
    folder: RunFolder,
    now: DateTime<Utc>,
    run: Run,
    targets: HashMap<TargetName, usize>,
    input: RescoreInput<I>,
    stopper: &Stopper,
    listen: &mut (dyn FnMut(&Event) + Send),
) -> Result<FinishedRun, Error>
where
    I: Iterator<Item = Result<TrialResult, bakeoff_journal::Error>>,
{
    let started = Instant::now();
    let (cases, trials) = (input.cases.len() as u64, input.plan.clone());
    let total = trials.total() as u64 * run.criteria.targets.len() as u64;
    let criteria = RunCriteria { cases: input.cases, plan: input.plan, ..run.criteria.clone() };
    let id = folder.id.clone();
    let mut file = RunFile::new(&run.suite, &run.config, &criteria, id.clone(), rfc3339(now));
    keep_prompts(&mut file.suite.targets, &input.target_records);
    folder.write_run(&RunFile { scored_from: Some(input.run_id), ..file })?;
    let journal = Journal::create(&folder.journal())?;
    let case_files = CaseFiles::without_artifacts(&run.suite);
    let mut recorder = Recorder::new(journal, Aggregate::new(criteria), case_files, listen);
    let plan = RunPlan { cases, trials: trials.default().trials, total, ..run.plan() };
    recorder.record(&Event::RunStarted { schema_version: SCHEMA_VERSION, run_id: id, plan })?;
    let traffic = TrafficLog::open(&folder)?;
    // No program runs, so the folder is never created.
    let work = Arc::new(WorkFolder::new(None));
    let context = TrialContext::new(&run, &folder, work, &traffic, RunLimits::default(), stopper).0;
    let reader = run.suite.cases.reader(&run.suite.survey).map_err(Error::Cases)?;
    let mut checking: JoinSet<TrialOutcome> = JoinSet::new();
    let mut done = Vec::new();
    for result in input.results {
        if stopper.is_stopped() {
            break;
        }
        let result = result?;
        while checking.len() >= MAX_CONCURRENT {
            done.extend(checking.join_next().await.map(joined));
        }
        if let Some(target) = targets.get(&result.key.target).copied() {
            checking.spawn(check_again(&context, &reader, target, result)?);
        }
        if done.len() >= BATCH_SIZE {
            recorder.record_trials(std::mem::take(&mut done))?;
        }
    }
    while let Some(outcome) = checking.join_next().await {
        done.push(joined(outcome));
    }
    recorder.record_trials(done)?;
    drop(context);
    let (connection_limit_history, warnings) = traffic.finish();
    warnings.iter().for_each(|event| recorder.emit(event));
    let (aggregate, case_files) = recorder.finish()?;
    let stats = RunStats {
        started_at: rfc3339(now),
        elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        connection_limit_history,
        ..RunStats::default()
    };
    let summary = aggregate.summary(&folder.id, &run.suite.name, stats);
    folder.write_summary(&summary, &run.suite, &case_files)?;
    let exit_code = exit_code(&summary, stopper);
    Ok(FinishedRun { folder, summary, exit_code })
}

/// Replaces the prompts of targets by those of the earlier run.
fn keep_prompts(targets: &mut [Value], earlier: &[Value]) {
    for target in targets {
        let same = earlier.iter().find(|earlier| earlier["name"] == target["name"]);
        for key in ["prompt", "system", "chain"] {
            if let Some(value) = same.and_then(|earlier| earlier.get(key)) {
                target[key] = value.clone();
            }
        }
    }
}

/// Fails when a case is not in the suite any more.
fn check_cases(suite: &Suite, cases: &CaseIds) -> Result<(), Error> {
    let ids = &suite.survey.ids;
    cases.iter().find(|id| ids.position(id).is_none()).map_or(Ok(()), |id| Err(missing_case(id)))
}

fn missing_case(id: &str) -> Error {
    let hint = "checks may depend on the fields of a case, so it must be in the suite";
    Error::usage(format!("the suite has no case `{id}` any more"), Some(hint.to_owned()))
}

/// Returns the index in the suite of each target.
fn target_indices(
    suite: &Suite,
    names: &[TargetName],
) -> Result<HashMap<TargetName, usize>, Error> {
    let index = |name: &TargetName| {
        suite.targets.iter().position(|target| target.name == *name).ok_or_else(|| {
            let hint = "checks may be limited to targets, so it must be in the suite";
            let message = format!("the suite has no target `{name}` any more");
            Error::usage(message, Some(hint.to_owned()))
        })
    };
    names.iter().map(|name| Ok((name.clone(), index(name)?))).collect()
}

/// Returns the outcome of a task. A panic is a bug and must not lose a result silently.
fn joined(outcome: Result<TrialOutcome, JoinError>) -> TrialOutcome {
    match outcome {
        Ok(outcome) => outcome,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Checks a stored result again.
fn check_again(
    context: &Arc<TrialContext>,
    reader: &CaseReader,
    target: usize,
    mut result: TrialResult,
) -> Result<impl Future<Output = TrialOutcome> + Send + use<>, Error> {
    let id = result.key.case.as_str();
    let index = context.suite.survey.ids.position(id).ok_or_else(|| missing_case(id))?;
    let case = reader.case(index).map_err(Error::Cases)?;
    // A check that gave no result then may give one now.
    let is_check_error = |error: &TrialError| error.kind == ErrorKind::Check;
    if result.attempt.error.as_ref().is_some_and(is_check_error) {
        result.attempt.error = None;
    }
    let context = Arc::clone(context);
    Ok(async move {
        let target = &context.suite.targets[target];
        let checked = judge_attempt(&context, target, &case, result.key, result.attempt).await;
        write_judging(context, checked).await
    })
}

/// Writes the files of a trial that a model has judged again. Trials without new exchanges have no files:
/// the earlier run has them.
async fn write_judging(context: Arc<TrialContext>, checked: CheckedTrial) -> TrialOutcome {
    let CheckedTrial { result, judging } = checked;
    let artifacts = context.suite.settings.artifacts;
    if judging.is_empty() || artifacts == Artifacts::None {
        return TrialOutcome { result, written: Ok(()) };
    }
    let trace = Trace::default().to_lines(&result, judging);
    let write = move || {
        let written = context.folder.write_trial(artifacts, &result, &trace);
        TrialOutcome { result, written }
    };
    joined(tokio::task::spawn_blocking(write).await)
}
