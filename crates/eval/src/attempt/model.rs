//! Model targets: one call.

use super::attachments::LoadedAttachments;
use super::{limit_depth, sample};
use crate::context::TrialContext;
use crate::trace::Trace;
use crate::trial::{failed, milliseconds};
use bakeoff_core::{Attempt, ErrorKind, Message, Request, Timing, ToolCall, ToolUse, TrialKey};
use bakeoff_llm::{CallContext, Ordinals, Retry};
use bakeoff_suite::{Artifacts, CacheScope, ModelTarget, Target};
use minijinja::Value as Fields;

/// The input of a model call.
#[derive(Debug)]
pub(super) struct ModelPrompt<'a> {
    /// The model and its settings.
    pub(super) target: &'a ModelTarget,
    /// Messages before the prompt.
    pub(super) history: &'a [Message],
    pub(super) attachments: LoadedAttachments,
    pub(super) prompt: String,
    /// Fields for the system prompt.
    pub(super) fields: &'a Fields,
    /// Counts identical calls within the trial.
    pub(super) ordinals: Ordinals,
}

/// Calls a model on behalf of `target`, of which it may be a part.
pub(super) async fn call_model(
    context: &TrialContext,
    prompt: ModelPrompt<'_>,
    target: &Target,
    key: &TrialKey,
) -> (Attempt, Trace) {
    let ModelPrompt { target: model, history, attachments, prompt, fields, ordinals } = prompt;
    let mut messages = Vec::with_capacity(history.len() + 2);
    if let Some(system) = &model.system {
        match system.render(fields) {
            Ok(text) => messages.push(Message::system(text)),
            Err(reason) => {
                let attempt = failed(ErrorKind::Template, format!("system: {reason}"));
                return (attempt, Trace::default());
            }
        }
    }
    messages.extend_from_slice(history);
    let mut request = Request { messages, ..model.request.clone() };
    let has_trace = context.suite.settings.artifacts != Artifacts::None;
    let mut trace = Trace::default();
    if has_trace {
        request.messages.push(attachments.record(&prompt));
        trace.request = serde_json::to_value(&request).ok();
        request.messages.pop();
    }
    request.messages.push(attachments.message(prompt));
    let on_retry = |retry: &Retry<'_>| context.emit_retry(key, retry);
    let sample = sample(target, key);
    let call_context = CallContext::default()
        .run(context.run)
        .sample(&sample)
        .trial(key.trial)
        .ordinals(ordinals)
        .cancel(context.abort.clone())
        .stop(context.stop.clone())
        .on_retry(&on_retry);
    let attempt = match context.client.call(&model.model, request, &call_context).await {
        Ok(call) => {
            let timing = Timing {
                latency_ms: milliseconds(call.latency),
                retries: call.retries,
                ..Timing::default()
            };
            // A hit in this run's own cache was paid for by this run, before it was interrupted.
            let cost = match context.suite.settings.cache {
                CacheScope::Run => model.model.cost(&call.response.usage),
                CacheScope::Shared | CacheScope::None => call.cost,
            };
            let attempt = Attempt {
                output: call.response.text(),
                finish: Some(call.response.finish.clone()),
                tool_uses: call.response.tool_calls().map(tool_use).collect(),
                usage: Some(call.response.usage),
                cost,
                lost_cost: call.lost,
                saved: cost.filter(|_| call.cached).unwrap_or_default(),
                cached: call.cached,
                timing,
                ..Attempt::default()
            };
            if has_trace {
                trace.response = serde_json::to_value(&call.response).ok();
            }
            attempt
        }
        Err(error) => {
            let mut attempt = failed(error.failure.kind, describe_failure(&error.failure));
            attempt.timing.retries = error.retries;
            attempt.lost_cost = error.lost;
            attempt
        }
    };
    (attempt, trace)
}

pub(super) fn tool_use(call: &ToolCall) -> ToolUse {
    ToolUse::new(call.name.as_str(), limit_depth(call.arguments.clone()))
}

/// Returns the provider's error message, with the HTTP status where there is one.
pub(crate) fn describe_failure(failure: &bakeoff_llm::Failure) -> String {
    match failure.status {
        Some(status) => format!("{status}: {}", failure.message),
        None => failure.message.clone(),
    }
}
