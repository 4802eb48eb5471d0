//! One trial: ask the target, judge what it produced.

use crate::Error;
use crate::attempt::Question;
use crate::code::Python;
use crate::folder::RunFolder;
use bakeoff_agent::{Workers, Workspace, is_exhaustion};
use bakeoff_core::{
    Attempt, ErrorKind, Event, Redactor, Status, TargetName, TrialError, TrialKey, TrialResult,
};
use bakeoff_llm::{Client, Ordinals, Transport};
use bakeoff_pace::RunTag;
use bakeoff_suite::Case;
use bakeoff_suite::{Artifacts, Suite, Target, TargetKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Everything that trials of a run share.
#[derive(Debug)]
pub(crate) struct Trials {
    pub(crate) suite: Arc<Suite>,
    /// The run, among others that share its pools.
    pub(crate) run: RunTag,
    pub(crate) client: Arc<Client>,
    /// How tools of models fetch pages.
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) redactor: Redactor,
    pub(crate) folder: RunFolder,
    /// Ends what a trial is waiting for.
    pub(crate) stop: CancellationToken,
    /// Ends the trials that are under way.
    pub(crate) abort: CancellationToken,
    /// Whether workspaces of trials that did not pass are kept.
    pub(crate) keep: bool,
    /// Programs that stay, by target.
    pub(crate) workers: BTreeMap<TargetName, Workers>,
    /// Workers for `python` checks.
    pub(crate) python: Python,
    /// What happens within trials. Bounded: when it is full, nobody needs one more retry, and a
    /// program that was started is worth waiting for.
    pub(crate) events: mpsc::Sender<Event>,
}

/// A trial that was made. Its result stands even when its files could not be written.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) result: TrialResult,
    pub(crate) written: Result<(), Error>,
}

impl Made {
    /// A result whose files were written, or were not. That the machine was at its limit for a moment
    /// is the trial's own error, and no reason to give up the others.
    fn of(mut result: TrialResult, written: Result<(), Error>) -> Made {
        let source = match &written {
            Err(Error::Write { source, .. } | Error::Create { source, .. })
            | Err(Error::Journal(bakeoff_journal::Error::Io { source, .. })) => source,
            _ => return Made { result, written },
        };
        if !is_exhaustion(source) {
            return Made { result, written };
        }
        // What went wrong before is the better reason.
        if result.attempt.error.is_none() {
            let message =
                format!("cannot write the trial's files: {source} [EVAL_PARALLEL_EXHAUSTION]");
            result.attempt.error = Some(TrialError { kind: ErrorKind::Process, message });
            result.status = Status::Error;
            result.score = None;
            result.checks.clear();
        }
        Made { result, written: Ok(()) }
    }
}

impl Trials {
    /// Makes one trial and writes its files.
    pub(crate) async fn make(self: Arc<Self>, target: usize, case: Case, trial: u32) -> Made {
        let target = &self.suite.targets[target];
        let key = TrialKey { target: target.name.clone(), case: case.id.clone(), trial };
        let started = Instant::now();
        let started_ms = milliseconds_since_epoch();
        let Attempted { mut attempt, trace, workspace } = self.attempt(target, &case, &key).await;
        attempt.timing.started_ms = started_ms;
        attempt.timing.elapsed_ms = milliseconds(started.elapsed());
        let result = self.judge(target, &case, key, attempt).await;
        let wanted = self.suite.settings.artifacts;
        if wanted == Artifacts::None && workspace.is_none() {
            return Made { result, written: Ok(()) };
        }
        let trace = trace.to_lines(&result);
        let trials = Arc::clone(&self);
        let write = move || {
            let mut result = result;
            let settled = trials.settle(workspace, &mut result);
            let written = trials.folder.write_trial(wanted, &result, &trace);
            Made::of(result, settled.and(written))
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(made) => made,
            Err(broken) => std::panic::resume_unwind(broken.into_panic()),
        }
    }

    /// Keeps a workspace that is of interest, and removes it otherwise. Blocks.
    fn settle(&self, workspace: Option<Workspace>, result: &mut TrialResult) -> Result<(), Error> {
        let Some(workspace) = workspace else { return Ok(()) };
        let place = self.folder.workspace(&result.key);
        if self.keep && result.status != Status::Passed {
            workspace
                .keep(&place)
                .map_err(|source| Error::Write { path: place.clone(), source })?;
            let within = place.strip_prefix(&self.folder.path).unwrap_or(&place);
            result.attempt.workspace = Some(within.display().to_string());
        } else {
            drop(workspace);
            // An earlier attempt at this trial may have left its own.
            bakeoff_agent::remove(&place).map_err(|source| Error::Write { path: place, source })?;
        }
        Ok(())
    }

    async fn attempt(&self, target: &Target, case: &Case, key: &TrialKey) -> Attempted {
        let prompt = match target.prompt.render(&case.fields) {
            Ok(prompt) => prompt,
            Err(reason) => {
                return failed(ErrorKind::Template, format!("prompt: {reason}")).into();
            }
        };
        let timeout = target.timeout.unwrap_or(self.suite.settings.timeout);
        let asked = Asked { prompt, case, key, timeout };
        match &target.kind {
            TargetKind::Model(model) if let Some(agent) = &model.agent => {
                self.run_agent(model, agent, target, asked).await
            }
            TargetKind::Model(model) => {
                let (fields, ordinals) = (&case.fields, Ordinals::default());
                let question = Question { target: model, prompt: asked.prompt, fields, ordinals };
                let (attempt, trace) = self.ask_model(question, target, key).await;
                Attempted { attempt, trace, workspace: None }
            }
            TargetKind::Chain(chain) => {
                let (attempt, trace) = self.ask_chain(chain, target, case, key).await;
                Attempted { attempt, trace, workspace: None }
            }
            TargetKind::Program(program) => {
                let words = program.command.iter().map(|word| word.to_string_lossy().into_owned());
                let request = serde_json::json!({
                    "prompt": self.redactor.scrub(asked.prompt.clone()),
                    "command": words.map(|word| self.redactor.scrub(word)).collect::<Vec<_>>(),
                });
                let mut attempted = match self.workers.get(&target.name) {
                    Some(workers) => self.ask_worker(workers, asked).await.into(),
                    None => self.run_program(program, asked).await,
                };
                attempted.trace = self.trace(request, &attempted.attempt);
                attempted
            }
            TargetKind::Service(service) => {
                let (attempt, trace) = self.ask_service(service, asked).await;
                Attempted { attempt, trace, workspace: None }
            }
        }
    }

    /// What was asked and, in short, what came back.
    pub(crate) fn trace(&self, request: Value, attempt: &Attempt) -> Trace {
        if self.suite.settings.artifacts == Artifacts::None {
            return Trace::default();
        }
        let is_answer = attempt.error.is_none() || !attempt.output.is_empty();
        let response = is_answer.then(|| in_short(attempt));
        Trace { request: Some(request), response, ..Trace::default() }
    }
}

/// What a target is asked.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) prompt: String,
    pub(crate) case: &'a Case,
    pub(crate) key: &'a TrialKey,
    pub(crate) timeout: Duration,
}

/// An attempt, and what there is beside it.
#[derive(Debug, Default)]
pub(crate) struct Attempted {
    pub(crate) attempt: Attempt,
    pub(crate) trace: Trace,
    /// Where a program or a model with tools worked.
    pub(crate) workspace: Option<Workspace>,
}

impl From<Attempt> for Attempted {
    fn from(attempt: Attempt) -> Attempted {
        Attempted { attempt, ..Attempted::default() }
    }
}

/// What was said, for `trace.jsonl`.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// What was said before, step by step.
    pub(crate) earlier: Vec<Value>,
    pub(crate) request: Option<Value>,
    pub(crate) response: Option<Value>,
}

impl Trace {
    fn to_lines(&self, result: &TrialResult) -> Vec<u8> {
        let mut lines = Vec::new();
        let is_agent = result.attempt.transcript.is_some();
        let told = |part: &Option<Value>, name: &str| {
            part.as_ref().filter(|_| !is_agent).map(|part| serde_json::json!({ name: part }))
        };
        let last = [
            told(&self.request, "request"),
            told(&self.response, "response"),
            result.attempt.error.as_ref().map(|error| serde_json::json!({ "error": error })),
        ];
        for part in self.earlier.iter().cloned().chain(last.into_iter().flatten()) {
            lines.extend_from_slice(part.to_string().as_bytes());
            lines.push(b'\n');
        }
        if is_agent {
            let prompt = self.request.as_ref().map(|request| &request["prompt"]);
            for (seq, payload) in done(prompt, &result.attempt).iter().enumerate() {
                let line = serde_json::json!({ "seq": seq, "payload": payload });
                lines.extend_from_slice(line.to_string().as_bytes());
                lines.push(b'\n');
            }
        }
        lines
    }
}

/// What a target answered, as far as it is not too long.
fn in_short(attempt: &Attempt) -> Value {
    const MOST: usize = 10_000;
    let output: String = attempt.output.chars().take(MOST).collect();
    let mut answer = serde_json::json!({ "output": output });
    if output.len() < attempt.output.len() {
        answer["output_bytes"] = attempt.output.len().into();
    }
    if let Some(code) = attempt.exit_code {
        answer["exit_code"] = code.into();
    }
    if let Some(usage) = attempt.usage {
        answer["usage"] = serde_json::json!(usage);
    }
    answer
}

/// What an agent was asked and did, in the form that FastSkill gave it.
fn done(prompt: Option<&Value>, attempt: &Attempt) -> Vec<Value> {
    let prompt =
        prompt.map(|prompt| serde_json::json!({"type": "message", "role": "user", "text": prompt}));
    let tools = attempt.tool_uses.iter().map(|tool| {
        serde_json::json!({"type": "tool_use", "tool_name": tool.name, "input": tool.arguments})
    });
    let answer =
        serde_json::json!({"type": "message", "role": "assistant", "text": attempt.output});
    let usage =
        attempt.usage.map(|usage| serde_json::json!({"type": "token_usage_line", "usage": usage}));
    prompt.into_iter().chain(tools).chain([answer]).chain(usage).collect()
}

/// An attempt that produced nothing to judge.
pub(crate) fn failed(kind: ErrorKind, message: String) -> Attempt {
    Attempt { error: Some(TrialError { kind, message }), ..Attempt::default() }
}

pub(crate) fn milliseconds(duration: std::time::Duration) -> u64 {
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

    fn made(code: i32) -> Made {
        let result = TrialResult {
            key: TrialKey { target: "t".into(), case: "c".into(), trial: 1 },
            status: Status::Passed,
            score: Some(1.0),
            checks: vec![CheckResult {
                check: "c".to_owned(),
                passed: true,
                required: true,
                weight: 1.0,
                message: String::new(),
            }],
            attempt: Attempt::default(),
        };
        let source = io::Error::from_raw_os_error(code);
        Made::of(result, Err(Error::Write { path: "x".into(), source }))
    }

    #[test]
    fn a_machine_at_its_limit_is_the_trials_own_error_and_a_full_disk_is_not() {
        // EMFILE, ENFILE, EAGAIN, ENOMEM.
        for code in [24, 23, 11, 12] {
            let Made { result, written } = made(code);
            assert!(written.is_ok());
            assert_eq!((result.status, result.score), (Status::Error, None));
            assert!(result.checks.is_empty());
            let message = result.attempt.error.map(|error| error.message).unwrap_or_default();
            assert!(message.ends_with("[EVAL_PARALLEL_EXHAUSTION]"), "{message}");
        }
        // ENOSPC.
        let Made { result, written } = made(28);
        assert!(written.is_err());
        assert_eq!((result.status, result.attempt.error), (Status::Passed, None));
    }
}
