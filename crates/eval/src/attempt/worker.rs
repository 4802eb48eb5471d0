//! A program that stays is asked: one line of JSON in, one out.

use super::program::told;
use super::{trial_id, without_secrets};
use crate::folder::RunFolder;
use crate::trial::{Asked, Trials, failed, milliseconds};
use bakeoff_agent::{Identity, WorkerError, WorkerProgram, Workers};
use bakeoff_core::{
    Attempt, ErrorKind, NanoDollars, TargetName, Timing, ToolUse, TrialError, Usage,
};
use bakeoff_suite::{Protocol, Suite, TargetKind};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use tokio::time::Instant;

/// Most bytes of an answer.
const MOST_ANSWER: usize = 8 * 1024 * 1024;

/// Whether a suite has programs that stay.
pub(crate) fn has_workers(suite: &Suite) -> bool {
    suite.targets.iter().any(|target| stays(&target.kind))
}

fn stays(kind: &TargetKind) -> bool {
    matches!(kind, TargetKind::Program(program) if program.protocol == Protocol::JsonLines)
}

/// The programs of a suite that stay, by target. None is started before its first trial.
pub(crate) fn workers(suite: &Suite, folder: &RunFolder) -> BTreeMap<TargetName, Workers> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let most = suite.settings.parallel.map_or(cores, |most| most as usize);
    let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
    let identity = Identity { run: folder.id.to_string(), trial: None, part: None };
    let variables = identity.variables().map(|(name, value)| (name.to_owned(), value.into()));
    let environment: BTreeMap<_, _> = variables.collect();
    suite
        .targets
        .iter()
        .filter_map(|target| match &target.kind {
            TargetKind::Program(program) if stays(&target.kind) => {
                let program = WorkerProgram {
                    command: program.command.clone(),
                    folder: folder.worker(&target.name),
                    environment: environment.clone().into_iter().chain(told(program)).collect(),
                    most_answer: MOST_ANSWER,
                };
                Some((target.name.clone(), Workers::new(program, most)))
            }
            _ => None,
        })
        .collect()
}

/// What a worker answers.
#[derive(Debug, Deserialize)]
struct Answer {
    id: String,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    usage: Option<AnswerUsage>,
    #[serde(default)]
    events: Vec<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct AnswerUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cost_usd: Option<f64>,
}

impl Trials {
    pub(crate) async fn ask_worker(&self, workers: &Workers, asked: Asked<'_>) -> Attempt {
        if let Err(error) = std::fs::create_dir_all(self.folder.worker(&asked.key.target)) {
            return failed(ErrorKind::Process, format!("cannot make a folder: {error}"));
        }
        let id = trial_id(asked.key);
        let question = match serde_json::to_value(&asked.case.fields) {
            Ok(case) => {
                json!({"id": id, "prompt": asked.prompt, "case": case, "trial": asked.key.trial})
            }
            Err(error) => return failed(ErrorKind::Template, format!("the case: {error}")),
        };
        let started = Instant::now();
        let read = |line: &str| read(line, &id);
        let answered =
            workers.ask_for(&question.to_string(), asked.timeout, &self.abort, read).await;
        let mut attempt = match answered {
            Ok(answer) => self.answered(answer),
            Err(error) => {
                let (kind, message) = describe(&error);
                failed(kind, self.redactor.scrub(message))
            }
        };
        attempt.timing =
            Timing { latency_ms: milliseconds(started.elapsed()), ..Timing::default() };
        attempt
    }

    fn answered(&self, answer: Answer) -> Attempt {
        let usage = answer.usage.as_ref();
        let lines: String = answer.events.iter().map(|event| format!("{event}\n")).collect();
        let tools = answer.events.iter().filter_map(tool).collect();
        Attempt {
            output: match answer.output {
                Some(Value::String(text)) => self.redactor.scrub(text),
                Some(other) => self.redactor.scrub(other.to_string()),
                None => String::new(),
            },
            tool_uses: without_secrets(tools, &self.redactor),
            transcript: (!answer.events.is_empty()).then(|| self.redactor.scrub(lines)),
            usage: usage.map(|usage| Usage {
                input: usage.input_tokens,
                output: usage.output_tokens,
                ..Usage::default()
            }),
            cost: usage
                .and_then(|usage| usage.cost_usd)
                .filter(|dollars| dollars.is_finite() && *dollars >= 0.0)
                .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
            error: answer.error.filter(|error| !error.is_null()).map(|error| {
                let TrialError { kind, message } = trouble(&error);
                TrialError { kind, message: self.redactor.scrub(message) }
            }),
            // A worker that answers has done what a program does that ends with 0.
            exit_code: Some(0),
            ..Attempt::default()
        }
    }
}

/// An answer to this question; the error is for people.
fn read(line: &str, id: &str) -> Result<Answer, String> {
    let start: String = line.chars().take(80).collect();
    let answer: Answer = serde_json::from_str(line).map_err(|error| {
        format!("the answer is not what it must be: {error}; it starts with {start:?}")
    })?;
    if answer.id != id {
        return Err(format!("the answer is to {:?}, the question was {id:?}", answer.id));
    }
    if answer.output.is_none() && answer.error.is_none() {
        return Err("the answer has neither `output` nor `error`".to_owned());
    }
    Ok(answer)
}

/// `{"type": "tool_use", "name": …, "arguments": …}`
fn tool(event: &Value) -> Option<ToolUse> {
    let name = event["name"].as_str().filter(|_| event["type"] == "tool_use")?;
    Some(ToolUse { name: name.to_owned(), arguments: event["arguments"].clone() })
}

/// What a worker says kept it from answering: a text, or `{"kind": …, "message": …}`.
fn trouble(error: &Value) -> TrialError {
    let message = error["message"].as_str().or(error.as_str());
    TrialError {
        kind: serde_json::from_value(error["kind"].clone()).unwrap_or(ErrorKind::Process),
        message: message.map_or_else(|| error.to_string(), str::to_owned),
    }
}

fn describe(error: &WorkerError) -> (ErrorKind, String) {
    match error {
        WorkerError::Start(start) if start.is_exhaustion() => {
            (ErrorKind::Process, format!("{start} [EVAL_PARALLEL_EXHAUSTION]"))
        }
        WorkerError::Start(_) | WorkerError::Died { .. } => (ErrorKind::Process, error.to_string()),
        WorkerError::TimedOut { .. } => {
            (ErrorKind::Timeout, format!("{error} [EVAL_CASE_TIMEOUT]"))
        }
        WorkerError::BadAnswer(_) => (ErrorKind::MalformedResponse, error.to_string()),
        WorkerError::Cancelled => (ErrorKind::Cancelled, error.to_string()),
    }
}
