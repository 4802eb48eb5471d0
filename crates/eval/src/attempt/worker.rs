//! Program targets with `protocol = "jsonl"`: persistent workers with one JSON line per trial.

use super::attachments::absolute_paths;
use super::program::role_variables;
use super::throttling::classify_throttling;
use super::{TrialInput, redact_tool_uses, trial_id};
use crate::context::TrialContext;
use crate::trial::{failed, milliseconds};
use crate::work_folder::WorkFolder;
use bakeoff_agent::{Identity, WorkerError, WorkerLimit, WorkerProgram, Workers};
use bakeoff_core::{
    Attempt, ErrorKind, NanoDollars, RunId, TargetName, Timing, ToolUse, TrialError, Usage,
};
use bakeoff_suite::{Protocol, Suite, TargetKind};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use tokio::time::Instant;

/// Maximum size of a reply.
const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;

/// Characters of an invalid reply that error messages quote.
const MAX_QUOTED_CHARS: usize = 80;

/// Whether a suite has persistent workers.
pub(crate) fn has_workers(suite: &Suite) -> bool {
    suite.targets.iter().any(|target| is_worker(&target.kind))
}

fn is_worker(kind: &TargetKind) -> bool {
    matches!(kind, TargetKind::Program(program) if program.protocol == Protocol::JsonLines)
}

/// Returns the persistent workers of a suite, by target. None is started before its first trial.
pub(crate) fn workers(
    suite: &Suite,
    run: &RunId,
    work: &WorkFolder,
) -> BTreeMap<TargetName, Workers> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let count = suite.settings.parallel.map_or(cores, |parallel| parallel as usize);
    let count = NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
    let identity = Identity { run: run.to_string(), trial: None, part: None };
    let variables = identity.variables().map(|(name, value)| (name.to_owned(), value.into()));
    let environment: BTreeMap<_, _> = suite.env_file.variables().chain(variables).collect();
    // The combinations of a search share a limit; otherwise each would have as many workers as trials run at once.
    let mut limits: BTreeMap<&TargetName, WorkerLimit> = BTreeMap::new();
    suite
        .targets
        .iter()
        .filter_map(|target| match &target.kind {
            TargetKind::Program(program) if is_worker(&target.kind) => {
                let environment = environment.clone().into_iter();
                let (command, folder) = (program.command.clone(), work.worker(&target.name));
                let mut worker = WorkerProgram::new(command, folder, MAX_REPLY_BYTES);
                worker.environment = environment.chain(role_variables(program)).collect();
                let limit = limits.entry(target.base()).or_insert_with(|| WorkerLimit::new(count));
                Some((target.name.clone(), Workers::within(worker, limit)))
            }
            _ => None,
        })
        .collect()
}

/// The reply of a worker.
#[derive(Debug, Deserialize)]
struct WorkerReply {
    id: String,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    usage: Option<ReplyUsage>,
    #[serde(default)]
    events: Vec<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct ReplyUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cost_usd: Option<f64>,
}

/// Sends a trial to a worker and waits for its reply.
pub(super) async fn call_worker(
    context: &TrialContext,
    workers: &Workers,
    input: TrialInput<'_>,
) -> Attempt {
    let folder = context.work.worker(&input.key.target);
    if let Err(error) = context.work.create().and_then(|()| std::fs::create_dir_all(folder)) {
        return failed(ErrorKind::Process, format!("cannot create the worker's folder: {error}"));
    }
    let id = trial_id(input.key);
    let mut request = match serde_json::to_value(&input.case.fields) {
        Ok(case) => {
            json!({"id": id, "prompt": input.prompt, "case": case, "trial": input.key.trial})
        }
        Err(error) => return failed(ErrorKind::Template, format!("the case: {error}")),
    };
    if !input.case.attachments.is_empty() {
        request["attachments"] = json!(absolute_paths(input.case));
    }
    let started = Instant::now();
    let parse = |line: &str| parse_reply(line, &id);
    let reply =
        workers.request_parsed(&request.to_string(), input.timeout, &context.abort, parse).await;
    let mut attempt = match reply {
        Ok(reply) => worker_attempt(context, reply),
        Err(error) => {
            let (kind, message) = describe_error(&error);
            failed(kind, context.redactor.scrub(message))
        }
    };
    attempt.timing = Timing { latency_ms: milliseconds(started.elapsed()), ..Timing::default() };
    attempt
}

fn worker_attempt(context: &TrialContext, reply: WorkerReply) -> Attempt {
    let scrub = |text: String| context.redactor.scrub(text);
    let usage = reply.usage.as_ref();
    let lines: String = reply.events.iter().map(|event| format!("{event}\n")).collect();
    let tools = reply.events.iter().filter_map(tool_use).collect();
    Attempt {
        output: match reply.output {
            Some(Value::String(text)) => scrub(text),
            Some(other) => scrub(other.to_string()),
            None => String::new(),
        },
        tool_uses: redact_tool_uses(tools, &context.redactor),
        transcript: (!reply.events.is_empty()).then(|| scrub(lines)),
        usage: usage.map(|usage| Usage {
            input: usage.input_tokens,
            output: usage.output_tokens,
            ..Usage::default()
        }),
        cost: usage
            .and_then(|usage| usage.cost_usd)
            .filter(|dollars| dollars.is_finite() && *dollars >= 0.0)
            .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
        error: reply.error.filter(|error| !error.is_null()).map(|error| {
            let TrialError { kind, message } = reported_error(&error);
            TrialError { kind, message: scrub(message) }
        }),
        // A reply corresponds to a program that exits with 0.
        exit_code: Some(0),
        ..Attempt::default()
    }
}

/// Parses the reply to the request with that id. The error is a message for users.
fn parse_reply(line: &str, id: &str) -> Result<WorkerReply, String> {
    let start: String = line.chars().take(MAX_QUOTED_CHARS).collect();
    let reply: WorkerReply = serde_json::from_str(line)
        .map_err(|error| format!("invalid reply: {error}; it starts with {start:?}"))?;
    if reply.id != id {
        return Err(format!("the reply has the id {:?}, the request had {id:?}", reply.id));
    }
    if reply.output.is_none() && reply.error.is_none() {
        return Err("the reply has neither `output` nor `error`".to_owned());
    }
    Ok(reply)
}

/// Parses `{"type": "tool_use", "name": …, "arguments": …}`.
fn tool_use(event: &Value) -> Option<ToolUse> {
    let name = event["name"].as_str().filter(|_| event["type"] == "tool_use")?;
    Some(ToolUse::new(name, event["arguments"].clone()))
}

/// Parses the error that a worker reports: a text, or `{"kind": …, "message": …}`.
fn reported_error(error: &Value) -> TrialError {
    let message = error["message"].as_str().or(error.as_str());
    TrialError {
        kind: serde_json::from_value(error["kind"].clone()).unwrap_or(ErrorKind::Process),
        message: message.map_or_else(|| error.to_string(), str::to_owned),
    }
}

fn describe_error(error: &WorkerError) -> (ErrorKind, String) {
    match error {
        WorkerError::Start(start) if start.is_exhaustion() => {
            (ErrorKind::Process, format!("{start} [EVAL_PARALLEL_EXHAUSTION]"))
        }
        WorkerError::Exited { stderr, .. } => {
            let kind = classify_throttling(stderr).unwrap_or(ErrorKind::Process);
            (kind, error.to_string())
        }
        WorkerError::Start(_) => (ErrorKind::Process, error.to_string()),
        WorkerError::TimedOut { .. } => {
            (ErrorKind::Timeout, format!("{error} [EVAL_CASE_TIMEOUT]"))
        }
        WorkerError::InvalidReply(_) => (ErrorKind::MalformedResponse, error.to_string()),
        WorkerError::Cancelled => (ErrorKind::Cancelled, error.to_string()),
    }
}
