//! One trial: ask the target, judge what it produced.

use crate::Error;
use crate::case::Case;
use crate::folder::RunFolder;
use crate::suite::{Artifacts, ModelTarget, ProgramTarget, Suite, Target, TargetKind};
use bakeoff_agent::{Ended, Program};
use bakeoff_check::judge;
use bakeoff_core::{
    Attempt, CheckResult, ErrorKind, Event, Message, Redactor, Request, Response, Status, Timing,
    TrialError, TrialKey, TrialResult,
};
use bakeoff_llm::{CallContext, Client, Ordinals, Retry};
use bakeoff_pace::RunTag;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Most bytes kept of each of a program's outputs.
const MOST_OUTPUT: usize = 1024 * 1024;

/// Everything that trials of a run share.
#[derive(Debug)]
pub(crate) struct Trials {
    pub(crate) suite: Arc<Suite>,
    /// The run, among others that share its pools.
    pub(crate) run: RunTag,
    pub(crate) client: Client,
    pub(crate) redactor: Redactor,
    pub(crate) folder: RunFolder,
    /// Ends what a trial is waiting for.
    pub(crate) stop: CancellationToken,
    /// Ends the trials that are under way.
    pub(crate) abort: CancellationToken,
    /// Retries, for whoever watches. Bounded: when it is full, nobody needs one more line.
    pub(crate) retries: mpsc::Sender<Event>,
}

/// A trial that was made. Its result stands even when its files could not be written.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) result: TrialResult,
    pub(crate) written: Result<(), Error>,
}

impl Trials {
    /// Makes one trial and writes its files.
    pub(crate) async fn make(self: Arc<Self>, target: usize, case: Case, trial: u32) -> Made {
        let target = &self.suite.targets[target];
        let key = TrialKey { target: target.name.clone(), case: case.id.clone(), trial };
        let started = Instant::now();
        let started_ms = milliseconds_since_epoch();
        let (mut attempt, trace) = self.attempt(target, &case, &key).await;
        attempt.timing.started_ms = started_ms;
        attempt.timing.elapsed_ms = milliseconds(started.elapsed());
        let result = self.judge(target, &case, key, attempt);
        let wanted = self.suite.settings.artifacts;
        if wanted == Artifacts::None {
            return Made { result, written: Ok(()) };
        }
        let trace = trace.to_lines(&result);
        let trials = Arc::clone(&self);
        let write = move || {
            let written = trials.folder.write_trial(wanted, &result, &trace);
            Made { result, written }
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(made) => made,
            Err(broken) => std::panic::resume_unwind(broken.into_panic()),
        }
    }

    async fn attempt(&self, target: &Target, case: &Case, key: &TrialKey) -> (Attempt, Trace) {
        let prompt = match target.prompt.render(&case.fields) {
            Ok(prompt) => prompt,
            Err(reason) => {
                return (
                    failed(ErrorKind::Template, format!("prompt: {reason}")),
                    Trace::default(),
                );
            }
        };
        match &target.kind {
            TargetKind::Model(model) => self.ask_model(model, prompt, case, key).await,
            TargetKind::Program(program) => {
                (self.run_program(program, prompt, key).await, Trace::default())
            }
        }
    }

    async fn ask_model(
        &self,
        target: &ModelTarget,
        prompt: String,
        case: &Case,
        key: &TrialKey,
    ) -> (Attempt, Trace) {
        let mut messages = Vec::with_capacity(2);
        if let Some(system) = &target.system {
            match system.render(&case.fields) {
                Ok(text) => messages.push(Message::system(text)),
                Err(reason) => {
                    return (
                        failed(ErrorKind::Template, format!("system: {reason}")),
                        Trace::default(),
                    );
                }
            }
        }
        messages.push(Message::user(prompt));
        let request = Request { messages, ..target.request.clone() };
        let wants_trace = self.suite.settings.artifacts != Artifacts::None;
        let mut trace = Trace { request: wants_trace.then(|| request.clone()), response: None };
        let on_retry = |retry: &Retry<'_>| self.tell_retry(key, retry);
        let sample = format!("{}\0{}", key.target, key.case);
        let context = CallContext {
            run: self.run,
            sample: &sample,
            trial: key.trial,
            ordinals: Ordinals::default(),
            cancel: self.abort.clone(),
            stop: self.stop.clone(),
            on_retry: Some(&on_retry),
            on_delta: None,
        };
        let attempt = match self.client.call(&target.model, request, &context).await {
            Ok(call) => {
                let timing = Timing {
                    latency_ms: milliseconds(call.latency),
                    retries: call.retries,
                    ..Timing::default()
                };
                let attempt = Attempt {
                    output: call.response.text(),
                    finish: Some(call.response.finish.clone()),
                    usage: Some(call.response.usage),
                    cost: call.cost,
                    cached: call.cached,
                    timing,
                    ..Attempt::default()
                };
                trace.response = wants_trace.then_some(call.response);
                attempt
            }
            Err(error) => {
                let mut attempt = failed(error.failure.kind, describe(&error.failure));
                attempt.timing.retries = error.retries;
                attempt
            }
        };
        (attempt, trace)
    }

    fn tell_retry(&self, key: &TrialKey, retry: &Retry<'_>) {
        let _ = self.retries.try_send(Event::Retry {
            key: key.clone(),
            delay_ms: milliseconds(retry.pause),
            reason: format!("{}: {}", retry.model, describe(retry.failure)),
        });
    }

    /// Runs the program in an empty folder of its own, which is gone afterwards.
    async fn run_program(&self, target: &ProgramTarget, prompt: String, key: &TrialKey) -> Attempt {
        let name = blake3::hash(format!("{}\0{}\0{}", key.target, key.case, key.trial).as_bytes());
        let folder = self.folder.work().join(&name.to_hex()[..16]);
        if let Err(error) = fs::create_dir_all(&folder) {
            return failed(
                ErrorKind::Process,
                format!("cannot make {}: {error}", folder.display()),
            );
        }
        let program = Program {
            command: target.command.clone(),
            input: prompt,
            folder: folder.clone(),
            environment: BTreeMap::from([
                ("BAKEOFF_RUN_ID".to_owned(), self.folder.id.as_str().into()),
                ("BAKEOFF_TRIAL_ID".to_owned(), trial_id(key).into()),
            ]),
            timeout: self.suite.settings.timeout,
            most_output: MOST_OUTPUT,
        };
        let started = Instant::now();
        let finished = bakeoff_agent::run(&program, &self.abort).await;
        let latency_ms = milliseconds(started.elapsed());
        // What cannot be removed now is removed with the folder of all of them.
        let _ = tokio::task::spawn_blocking(move || fs::remove_dir_all(folder)).await;
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) if error.is_exhaustion() => {
                return failed(ErrorKind::Process, format!("{error} [EVAL_PARALLEL_EXHAUSTION]"));
            }
            Err(error) => return failed(ErrorKind::Process, error.to_string()),
        };
        let (exit_code, error) = match finished.ended {
            Ended::Exited(code) => (Some(code), None),
            Ended::Signalled(signal) => {
                (None, Some((ErrorKind::Process, format!("ended by signal {signal}"))))
            }
            Ended::TimedOut => {
                let seconds = program.timeout.as_secs_f64();
                (None, Some((ErrorKind::Timeout, format!("still running after {seconds} s"))))
            }
            Ended::Cancelled => (None, Some((ErrorKind::Cancelled, "cancelled".to_owned()))),
        };
        Attempt {
            output: self.redactor.scrub(finished.stdout),
            stderr: self.redactor.scrub(finished.stderr),
            dropped_bytes: finished.dropped_bytes,
            exit_code,
            error: error.map(|(kind, message)| TrialError { kind, message }),
            timing: Timing { latency_ms, ..Timing::default() },
            ..Attempt::default()
        }
    }

    fn judge(
        &self,
        target: &Target,
        case: &Case,
        key: TrialKey,
        mut attempt: Attempt,
    ) -> TrialResult {
        let applicable = || self.suite.checks.iter().filter(|check| check.applies_to(&target.name));
        let checks: Result<Vec<CheckResult>, String> = applicable()
            .map(|spec| match spec.for_case(&case.fields) {
                Ok(check) => Ok(check.run(&attempt)),
                Err(reason) => Err(format!("check `{}`: {reason}", spec.id)),
            })
            .collect();
        if attempt.error.is_none()
            && let Err(message) = &checks
        {
            attempt.error =
                Some(TrialError { kind: ErrorKind::Template, message: message.clone() });
        }
        if attempt.error.is_some() {
            return TrialResult {
                key,
                status: Status::Error,
                score: None,
                checks: Vec::new(),
                attempt,
            };
        }
        let checks = checks.unwrap_or_default();
        let mut judgement = judge(&checks);
        // A program that nothing checks is judged by its exit code.
        if applicable().next().is_none() && attempt.exit_code != Some(0) {
            judgement.status = Status::Failed;
            judgement.score = 0.0;
        }
        TrialResult { key, status: judgement.status, score: Some(judgement.score), checks, attempt }
    }
}

/// What was said, for `trace.jsonl`.
#[derive(Debug, Default)]
struct Trace {
    request: Option<Request>,
    response: Option<Response>,
}

impl Trace {
    fn to_lines(&self, result: &TrialResult) -> Vec<u8> {
        let mut lines = Vec::new();
        let parts = [
            self.request.as_ref().map(|request| serde_json::json!({ "request": request })),
            self.response.as_ref().map(|response| serde_json::json!({ "response": response })),
            result.attempt.error.as_ref().map(|error| serde_json::json!({ "error": error })),
        ];
        for part in parts.into_iter().flatten() {
            lines.extend_from_slice(part.to_string().as_bytes());
            lines.push(b'\n');
        }
        lines
    }
}

/// Names the trial to a program and to the gateway.
fn trial_id(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.target, key.case, key.trial)
}

/// The provider's words, with the status where there is one.
fn describe(failure: &bakeoff_llm::Failure) -> String {
    match failure.status {
        Some(status) => format!("{status}: {}", failure.message),
        None => failure.message.clone(),
    }
}

/// An attempt that produced nothing to judge.
pub(crate) fn failed(kind: ErrorKind, message: String) -> Attempt {
    Attempt { error: Some(TrialError { kind, message }), ..Attempt::default() }
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds_since_epoch() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}
