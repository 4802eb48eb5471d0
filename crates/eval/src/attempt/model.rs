//! A model is asked.

use super::{sample, shallow};
use crate::trial::{Trace, Trials, failed, milliseconds};
use bakeoff_core::{
    Attempt, ErrorKind, Event, Message, Request, Timing, ToolCall, ToolUse, TrialKey,
};
use bakeoff_llm::{CallContext, Ordinals, Retry};
use bakeoff_suite::{Artifacts, CacheScope, ModelTarget, Target};
use minijinja::Value as Fields;

/// What a model is asked.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// Who is asked, and how.
    pub(crate) target: &'a ModelTarget,
    /// What it is asked.
    pub(crate) prompt: String,
    /// What its instructions are made from.
    pub(crate) fields: &'a Fields,
    /// Counts the calls of the trial that are the same.
    pub(crate) ordinals: Ordinals,
}

impl Trials {
    /// Asks on behalf of a target, which the model may be only a part of.
    pub(crate) async fn ask_model(
        &self,
        question: Question<'_>,
        whole: &Target,
        key: &TrialKey,
    ) -> (Attempt, Trace) {
        let Question { target, prompt, fields, ordinals } = question;
        let mut messages = Vec::with_capacity(2);
        if let Some(system) = &target.system {
            match system.render(fields) {
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
        let mut trace = Trace::default();
        if wants_trace {
            trace.request = serde_json::to_value(&request).ok();
        }
        let on_retry = |retry: &Retry<'_>| self.tell_retry(key, retry);
        let sample = sample(whole, key);
        let context = CallContext {
            run: self.run,
            sample: &sample,
            trial: key.trial,
            ordinals,
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
                // What this run's own cache has was paid for by this run, before it was killed.
                let cost = match self.suite.settings.cache {
                    CacheScope::Run => target.model.cost(&call.response.usage),
                    CacheScope::Shared | CacheScope::None => call.cost,
                };
                let attempt = Attempt {
                    output: call.response.text(),
                    finish: Some(call.response.finish.clone()),
                    tool_uses: call.response.tool_calls().map(used).collect(),
                    usage: Some(call.response.usage),
                    cost,
                    saved: cost.filter(|_| call.cached).unwrap_or_default(),
                    cached: call.cached,
                    timing,
                    ..Attempt::default()
                };
                if wants_trace {
                    trace.response = serde_json::to_value(&call.response).ok();
                }
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

    pub(crate) fn tell_retry(&self, key: &TrialKey, retry: &Retry<'_>) {
        let _ = self.events.try_send(Event::Retry {
            key: key.clone(),
            delay_ms: milliseconds(retry.pause),
            reason: format!("{}: {}", retry.model, describe(retry.failure)),
        });
    }
}

fn used(call: &ToolCall) -> ToolUse {
    ToolUse { name: call.name.clone(), arguments: shallow(call.arguments.clone()) }
}

/// The provider's words, with the status where there is one.
pub(crate) fn describe(failure: &bakeoff_llm::Failure) -> String {
    match failure.status {
        Some(status) => format!("{status}: {}", failure.message),
        None => failure.message.clone(),
    }
}
