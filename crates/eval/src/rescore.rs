//! Judging stored outputs anew, by today's checks.

use crate::Error;
use crate::aggregate::{Aggregate, Measure};
use crate::case_files::CaseFiles;
use crate::folder::RunFolder;
use crate::record::Record;
use crate::run::{Finished, Run, Stopper, exit_code};
use crate::runfile::{Layout, RunFile};
use crate::traffic::Traffic;
use crate::trial::{Made, Trials};
use bakeoff_core::{
    CaseIds, ErrorKind, Event, RunId, RunPlan, RunStats, SCHEMA_VERSION, TargetName, TrialResult,
};
use bakeoff_journal::Journal;
use bakeoff_suite::CaseReader;
use bakeoff_suite::{Artifacts, Suite};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{JoinError, JoinSet};

/// Results that are judged at once: checks may ask models or run programs.
const AT_ONCE: usize = 64;

/// Results that are written together.
const BATCH: usize = 256;

/// Stored results of an earlier run, to be checked again.
pub struct RescoreInput<I> {
    /// Id of the earlier run.
    pub run_id: RunId,
    /// Names of its targets.
    pub targets: Vec<TargetName>,
    /// Ids of its cases.
    pub cases: Arc<CaseIds>,
    /// Trials of each case.
    pub trials: u32,
    /// Its results.
    pub results: I,
}

/// Checks the outputs of an earlier run by the checks of this suite. Targets are not called; models are
/// called only by judged checks. The earlier run is not changed: the results are a run of their own.
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
) -> Result<Finished, Error>
where
    I: Iterator<Item = Result<TrialResult, Error>>,
{
    let started = Instant::now();
    let now = Timestamp::now();
    let known = target_numbers(&run.suite, &input.targets)?;
    check_cases(&run.suite, &input.cases)?;
    let cases = input.cases.len() as u64;
    let measure = Measure { cases: input.cases, trials: input.trials, ..run.measure.clone() };
    let layout = Layout::of(measure.targets.len());
    let folder = RunFolder::create(&run.config.out, &run.suite.name, now, layout)?;
    let id = folder.id.clone();
    let file = RunFile::new(&run.suite, &run.config, &measure, id.clone(), now.to_string());
    folder.write_run(&RunFile { scored_from: Some(input.run_id), ..file })?;
    let journal = Journal::create(&folder.journal())?;
    let files = CaseFiles::new(Artifacts::None);
    let mut record = Record::new(journal, Aggregate::new(measure), files, listen);
    let plan = RunPlan { cases, ..run.plan() };
    record.event(&Event::RunStarted { schema_version: SCHEMA_VERSION, run_id: id, plan })?;
    let traffic = Traffic::open(&folder)?;
    let trials = run.trials(&folder, &traffic, stopper).0;
    let reader = run.suite.cases.reader(&run.suite.survey).map_err(Error::Cases)?;
    let mut judging: JoinSet<Made> = JoinSet::new();
    let mut done = Vec::new();
    for result in input.results {
        if stopper.is_stopped() {
            break;
        }
        let result = result?;
        while judging.len() >= AT_ONCE {
            done.extend(judging.join_next().await.map(judged));
        }
        if let Some(target) = known.get(&result.key.target).copied() {
            let made = judge_anew(&trials, &reader, &run.suite.survey.ids, target, result)?;
            judging.spawn(made);
        }
        if done.len() >= BATCH {
            record.trials(std::mem::take(&mut done))?;
        }
    }
    while let Some(made) = judging.join_next().await {
        done.push(judged(made));
    }
    record.trials(done)?;
    drop(trials);
    let (connection_limit_history, warnings) = traffic.finish();
    warnings.iter().for_each(|event| record.tell(event));
    let (aggregate, _) = record.finish()?;
    let stats = RunStats {
        started_at: now.to_string(),
        elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        connection_limit_history,
        ..RunStats::default()
    };
    let summary = aggregate.summary(&folder.id, &run.suite.name, stats);
    folder.write_summary(&summary, &run.suite)?;
    let exit_code = exit_code(&summary, stopper);
    Ok(Finished { folder, summary, exit_code })
}

/// Fails when a case is not in the suite any more: checks may depend on its fields.
fn check_cases(suite: &Suite, cases: &CaseIds) -> Result<(), Error> {
    let ids = &suite.survey.ids;
    cases.iter().find(|id| ids.position(id).is_none()).map_or(Ok(()), |id| Err(no_case(id)))
}

fn no_case(id: &str) -> Error {
    Error::Usage {
        code: None,
        message: format!("the suite has no case `{id}` any more"),
        hint: Some("checks may depend on a case's fields, so it must be there".to_owned()),
    }
}

/// Returns the number in the suite of each target.
fn target_numbers(
    suite: &Suite,
    names: &[TargetName],
) -> Result<HashMap<TargetName, usize>, Error> {
    let number = |name: &TargetName| {
        suite.targets.iter().position(|target| target.name == *name).ok_or_else(|| Error::Usage {
            code: None,
            message: format!("the suite has no target `{name}` any more"),
            hint: Some("checks may be limited to targets, so it must be there".to_owned()),
        })
    };
    names.iter().map(|name| Ok((name.clone(), number(name)?))).collect()
}

/// A result that was judged. A judge that breaks is a mistake of ours, and no result may be lost to it.
fn judged(made: Result<Made, JoinError>) -> Made {
    match made {
        Ok(made) => made,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

/// One result, judged by today's checks.
fn judge_anew(
    trials: &Arc<Trials>,
    reader: &CaseReader,
    ids: &CaseIds,
    target: usize,
    mut result: TrialResult,
) -> Result<impl Future<Output = Made> + Send + use<>, Error> {
    let id = result.key.case.as_str();
    let number = ids.position(id).ok_or_else(|| no_case(id))?;
    let case = reader.case(number).map_err(Error::Cases)?;
    // What a check could not say it may say now.
    let by_check = |error: &bakeoff_core::TrialError| error.kind == ErrorKind::Check;
    if result.attempt.error.as_ref().is_some_and(by_check) {
        result.attempt.error = None;
    }
    let trials = Arc::clone(trials);
    Ok(async move {
        let target = &trials.suite.targets[target];
        let result = trials.judge(target, &case, result.key, result.attempt).await;
        Made { result, written: Ok(()) }
    })
}
