//! Attempts of a target at a case, one module per kind of target.

mod agent;
mod agent_output;
mod attachments;
mod chain;
mod model;
mod program;
mod service;
mod throttling;
mod worker;
mod workspace;

pub(crate) use model::describe_failure;
pub(crate) use worker::{has_workers, workers};

use crate::budget::TrialReservation;
use crate::context::TrialContext;
use crate::trace::Trace;
use crate::trial::{failed, milliseconds};
use attachments::LoadedAttachments;
use bakeoff_agent::{ToolExchange, ToolResult, Workspace};
use bakeoff_core::{Attempt, ErrorKind, Event, Redactor, ToolUse, TrialError, TrialKey, Usage};
use bakeoff_llm::Ordinals;
use bakeoff_suite::{Case, ProgramTarget, Target, TargetKind};
use model::ModelPrompt;
use serde_json::{Value, json};
use std::time::Duration;
use throttling::{DEFAULT_RETRIES, RetryLimits, retry_throttled};

/// Deepest nesting of stored tool arguments: reading a journal record back is limited in depth.
const MAX_DEPTH: usize = 64;

/// The input of a trial.
#[derive(Debug, Clone)]
pub(crate) struct TrialInput<'a> {
    pub(crate) prompt: String,
    pub(crate) case: &'a Case,
    pub(crate) key: &'a TrialKey,
    pub(crate) timeout: Duration,
}

/// An attempt, with its trace and workspace.
#[derive(Debug, Default)]
pub(crate) struct AttemptOutput {
    pub(crate) attempt: Attempt,
    pub(crate) trace: Trace,
    /// Workspace of a program or of a model with tools.
    pub(crate) workspace: Option<Workspace>,
}

impl From<Attempt> for AttemptOutput {
    fn from(attempt: Attempt) -> AttemptOutput {
        AttemptOutput { attempt, ..AttemptOutput::default() }
    }
}

impl From<(Attempt, Trace)> for AttemptOutput {
    fn from((attempt, trace): (Attempt, Trace)) -> AttemptOutput {
        AttemptOutput { attempt, trace, workspace: None }
    }
}

/// Makes the attempt of a trial.
pub(crate) async fn attempt(
    context: &TrialContext,
    target: &Target,
    case: &Case,
    key: &TrialKey,
) -> AttemptOutput {
    let prompt = match target.prompt.render(&case.fields) {
        Ok(prompt) => prompt,
        Err(reason) => return failed(ErrorKind::Template, format!("prompt: {reason}")).into(),
    };
    let timeout = target.timeout.unwrap_or(context.suite.settings.timeout);
    let input = TrialInput { prompt, case, key, timeout };
    match &target.kind {
        TargetKind::Model(model) if let Some(settings) = &model.agent => {
            agent::run_agent(context, model, settings, target, input).await
        }
        TargetKind::Model(model) => {
            let (fields, ordinals) = (&case.fields, Ordinals::default());
            let attachments = match LoadedAttachments::load(case).await {
                Ok(attachments) => attachments,
                Err(attempt) => return attempt.into(),
            };
            let (history, prompt) = (&case.history, input.prompt);
            let prompt =
                ModelPrompt { target: model, history, attachments, prompt, fields, ordinals };
            model::call_model(context, prompt, target, key).await.into()
        }
        TargetKind::Chain(chain) => {
            chain::run_chain(context, chain, target, case, key).await.into()
        }
        TargetKind::Program(program) => {
            let attempt = attempt_program(context, program, target, input, timeout);
            within_budget(context, target, attempt).await
        }
        TargetKind::Service(service) => {
            let attempt = async { service::call_service(context, service, input).await.into() };
            within_budget(context, target, attempt).await
        }
    }
}

/// Makes an attempt of a target that makes its calls itself.
async fn within_budget(
    context: &TrialContext,
    target: &Target,
    attempt: impl Future<Output = AttemptOutput>,
) -> AttemptOutput {
    let reservation = match TrialReservation::new(context, target).await {
        Ok(reservation) => reservation,
        Err(error) => return Attempt { error: Some(error), ..Attempt::default() }.into(),
    };
    let mut output = attempt.await;
    let attempt = &mut output.attempt;
    attempt.usage = attempt.usage.and_then(Usage::plausible);
    attempt.cost = attempt.cost.or_else(|| target.pricing.cost(attempt.usage.as_ref()));
    reservation.finish(attempt);
    output
}

async fn attempt_program(
    context: &TrialContext,
    program: &ProgramTarget,
    target: &Target,
    input: TrialInput<'_>,
    timeout: Duration,
) -> AttemptOutput {
    let arguments = program.command.iter().map(|argument| argument.to_string_lossy().into_owned());
    let request = json!({
        "prompt": context.redactor.scrub(input.prompt.clone()),
        "command": arguments.map(|argument| context.redactor.scrub(argument)).collect::<Vec<_>>(),
    });
    let run = || async {
        match context.workers.get(&target.name) {
            Some(workers) => worker::call_worker(context, workers, input.clone()).await.into(),
            None => program::run_program(context, program, input.clone()).await,
        }
    };
    let retries = context.max_program_retries.unwrap_or(DEFAULT_RETRIES);
    let limits = RetryLimits { retries, timeout };
    let on_retry = |delay: Duration, error: &TrialError| {
        // A full channel drops the event; the retry takes place anyway.
        let _ = context.events.try_send(Event::Retry {
            key: input.key.clone(),
            delay_ms: milliseconds(delay),
            reason: error.message.clone(),
        });
    };
    let retried = retry_throttled(input.key, limits, &context.stop, run, on_retry);
    let mut output = retried.await;
    let artifacts = context.suite.settings.artifacts;
    let trace = Trace::new(artifacts, request, &output.attempt);
    output.trace = Trace { tools: output.trace.tools, ..trace };
    output
}

/// Returns the sample that a trial's calls belong to: combinations of a target share theirs.
pub(crate) fn sample(target: &Target, key: &TrialKey) -> String {
    format!("{}\0{}", target.base(), key.case)
}

/// Returns the id of a trial for programs and the gateway.
pub(crate) fn trial_id(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.target, key.case, key.trial)
}

/// Returns the value, or its JSON text when it is nested too deeply.
fn limit_depth(value: Value) -> Value {
    fn is_deeper(value: &Value, depth: usize) -> bool {
        match value {
            Value::Array(items) => {
                depth == 0 || items.iter().any(|value| is_deeper(value, depth - 1))
            }
            Value::Object(entries) => {
                depth == 0 || entries.values().any(|value| is_deeper(value, depth - 1))
            }
            _ => false,
        }
    }
    if is_deeper(&value, MAX_DEPTH) { Value::String(value.to_string()) } else { value }
}

/// Removes secrets from the ids and results of tool uses.
fn redact_tool_exchanges(exchanges: Vec<ToolExchange>, redactor: &Redactor) -> Vec<ToolExchange> {
    let redacted = |exchange: ToolExchange| ToolExchange {
        id: redactor.scrub(exchange.id),
        result: exchange
            .result
            .map(|result| ToolResult { output: redactor.scrub(result.output), ..result }),
    };
    exchanges.into_iter().map(redacted).collect()
}

/// Removes secrets from tool uses.
fn redact_tool_uses(tools: Vec<ToolUse>, redactor: &Redactor) -> Vec<ToolUse> {
    let redacted = |tool: ToolUse| {
        let json = tool.arguments.to_string();
        let arguments = match redactor.finds_in(&json) {
            // Arguments that are not JSON any more held a secret across a delimiter; drop all of them.
            true => serde_json::from_str(&redactor.scrub(json)).unwrap_or_default(),
            false => tool.arguments,
        };
        ToolUse { name: redactor.scrub(tool.name), arguments: limit_depth(arguments), ..tool }
    };
    tools.into_iter().map(redacted).collect()
}
