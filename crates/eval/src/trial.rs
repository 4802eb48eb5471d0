//! Execution of one trial: attempt, checks and artifacts.

use crate::Error;
use crate::attempt::{AttemptOutput, attempt};
use crate::check_runner::{CheckedTrial, judge_attempt};
use crate::context::TrialContext;
use bakeoff_agent::{Workspace, is_exhaustion};
use bakeoff_core::{Attempt, ErrorKind, Status, TrialError, TrialKey, TrialResult};
use bakeoff_suite::{Artifacts, Case};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The result of a trial. It counts even when its files could not be written.
#[derive(Debug)]
pub(crate) struct TrialOutcome {
    pub(crate) result: TrialResult,
    pub(crate) written: Result<(), Error>,
}

impl TrialOutcome {
    /// Combines a result with the outcome of writing its files. An exhausted machine (such as too many
    /// open files) is an error of this trial only and does not stop the run.
    fn new(mut result: TrialResult, written: Result<(), Error>) -> TrialOutcome {
        let source = match &written {
            Err(Error::Write { source, .. } | Error::Create { source, .. })
            | Err(Error::Journal(bakeoff_journal::Error::Io { source, .. })) => source,
            _ => return TrialOutcome { result, written },
        };
        if !is_exhaustion(source) {
            return TrialOutcome { result, written };
        }
        // An earlier error is the better explanation.
        if result.attempt.error.is_none() {
            let message =
                format!("cannot write the trial's files: {source} [EVAL_PARALLEL_EXHAUSTION]");
            result.attempt.error = Some(TrialError { kind: ErrorKind::Process, message });
            result.status = Status::Error;
            result.score = None;
            result.checks.clear();
        }
        TrialOutcome { result, written: Ok(()) }
    }
}

/// Executes one trial and writes its files. `target` is an index, `trial` counts from 1.
pub(crate) async fn execute_trial(
    context: Arc<TrialContext>,
    target: usize,
    case: Case,
    trial: u32,
) -> TrialOutcome {
    let target = &context.suite.targets[target];
    let key = TrialKey { target: target.name.clone(), case: case.id.clone(), trial };
    let started = Instant::now();
    let started_ms = milliseconds_since_epoch();
    let AttemptOutput { mut attempt, trace, workspace } =
        attempt(&context, target, &case, &key).await;
    attempt.timing.started_ms = started_ms;
    attempt.timing.elapsed_ms = milliseconds(started.elapsed());
    let CheckedTrial { result, judging } =
        judge_attempt(&context, target, &case, key, attempt).await;
    let artifacts = context.suite.settings.artifacts;
    if artifacts == Artifacts::None && workspace.is_none() {
        return TrialOutcome { result, written: Ok(()) };
    }
    let trace = trace.to_lines(&result, judging);
    let context = Arc::clone(&context);
    let write = move || {
        let mut result = result;
        let kept = keep_or_remove(&context, workspace, &mut result);
        let written = context.folder.write_trial(artifacts, &result, &trace);
        TrialOutcome::new(result, kept.and(written))
    };
    match tokio::task::spawn_blocking(write).await {
        Ok(outcome) => outcome,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Keeps the workspace of a trial that did not pass, if requested, and removes it otherwise. Blocks.
fn keep_or_remove(
    context: &TrialContext,
    workspace: Option<Workspace>,
    result: &mut TrialResult,
) -> Result<(), Error> {
    let Some(workspace) = workspace else { return Ok(()) };
    let path = context.folder.workspace(&result.key);
    if context.keep && result.status != Status::Passed {
        workspace.keep(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        let relative = path.strip_prefix(&context.folder.path).unwrap_or(&path);
        result.attempt.workspace = Some(relative.display().to_string());
    } else {
        drop(workspace);
        // An earlier execution of this trial may have left a workspace.
        bakeoff_agent::remove_folder(&path).map_err(|source| Error::Write { path, source })?;
    }
    Ok(())
}

/// Returns an attempt that ended with an error and has no output.
pub(crate) fn failed(kind: ErrorKind, message: String) -> Attempt {
    Attempt { error: Some(TrialError { kind, message }), ..Attempt::default() }
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds_since_epoch() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::CheckResult;
    use std::io;

    fn outcome(code: i32) -> TrialOutcome {
        let result = TrialResult {
            key: TrialKey { target: "t".into(), case: "c".into(), trial: 1 },
            tags: Vec::new(),
            status: Status::Passed,
            score: Some(1.0),
            checks: vec![CheckResult {
                check: "c".to_owned(),
                passed: true,
                score: 1.0,
                graded: false,
                required: true,
                weight: 1.0,
                message: String::new(),
            }],
            attempt: Attempt::default(),
        };
        let source = io::Error::from_raw_os_error(code);
        TrialOutcome::new(result, Err(Error::Write { path: "x".into(), source }))
    }

    #[test]
    fn exhaustion_fails_the_trial_and_a_full_disk_fails_the_run() {
        // EMFILE, ENFILE, EAGAIN, ENOMEM.
        for code in [24, 23, 11, 12] {
            let TrialOutcome { result, written } = outcome(code);
            assert!(written.is_ok());
            assert_eq!((result.status, result.score), (Status::Error, None));
            assert!(result.checks.is_empty());
            let message = result.attempt.error.map(|error| error.message).unwrap_or_default();
            assert!(message.ends_with("[EVAL_PARALLEL_EXHAUSTION]"), "{message}");
        }
        // ENOSPC.
        let TrialOutcome { result, written } = outcome(28);
        assert!(written.is_err());
        assert_eq!((result.status, result.attempt.error), (Status::Passed, None));
    }
}
