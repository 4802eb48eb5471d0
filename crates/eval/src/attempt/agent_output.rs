//! Conversion of a finished agent loop to an attempt.

use super::model::tool_use;
use super::redact_tool_uses;
use crate::context::TrialContext;
use crate::trial::milliseconds;
use bakeoff_agent::{AgentMessage, LoopEnd, LoopLimit, LoopStatus, ToolExchange, ToolResult};
use bakeoff_core::{
    Attempt, Content, ErrorKind, Message, NanoDollars, Redactor, Timing, ToolUse, TrialError, Usage,
};
use bakeoff_suite::{CacheScope, ModelTarget};
use serde_json::{Map, Value};
use std::time::Duration;

/// Maximum size of a transcript.
const MAX_TRANSCRIPT_BYTES: usize = 1024 * 1024;

/// Maximum size of the result of a tool in the trace.
const MAX_RESULT_BYTES: usize = 10_000;

/// A finished agent loop.
pub(super) struct AgentRun {
    pub(super) end: LoopEnd,
    pub(super) calls: AgentCalls,
}

/// Calls of an agent loop.
#[derive(Default)]
pub(super) struct AgentCalls {
    /// Usage of each call.
    pub(super) usages: Vec<Usage>,
    /// Fields of responses that the messages do not represent, by turn.
    pub(super) extra: Vec<(u32, Map<String, Value>)>,
}

/// Removes secrets from an error message.
pub(super) fn redacted(context: &TrialContext, error: TrialError) -> TrialError {
    TrialError { message: context.redactor.scrub(error.message), ..error }
}

/// Converts a finished loop to an attempt.
pub(super) fn agent_attempt(
    context: &TrialContext,
    model: &ModelTarget,
    end: LoopEnd,
    usages: &[Usage],
    timeout: Duration,
) -> Attempt {
    let has_answers = end.turns > 0;
    let messages: Vec<&Message> =
        end.new_messages.iter().filter_map(AgentMessage::as_llm).collect();
    let (transcript, dropped_transcript_bytes) = transcript(&messages, &context.redactor);
    let latency = end.latency + end.tool_time;
    let cost = match context.suite.settings.cache {
        // A hit in this run's own cache was paid for by this run, before it was interrupted.
        CacheScope::Run => usages.iter().try_fold(NanoDollars::default(), |sum, usage| {
            Some(sum.saturating_add(model.model.cost(usage)?))
        }),
        CacheScope::Shared | CacheScope::None => end.cost,
    };
    let paid = end.cost.filter(|_| has_answers && end.cached_turns > 0);
    let (note, error) = describe_end(&end, timeout);
    Attempt {
        output: context.redactor.scrub(end.answer()),
        finish: end.finish,
        stderr: note.unwrap_or_default(),
        tool_uses: redact_tool_uses(tool_uses(&messages, &end.refused_calls), &context.redactor),
        turns: Some(end.turns),
        is_out_of_turns: end.status == LoopStatus::LimitReached(LoopLimit::Turns),
        transcript: Some(transcript),
        dropped_transcript_bytes,
        usage: has_answers.then_some(end.usage),
        cost: cost.filter(|_| has_answers),
        // Paid calls are those that were not in the cache.
        saved: cost.zip(paid).map_or(NanoDollars(0), |(cost, paid)| {
            NanoDollars(cost.0.saturating_sub(paid.0).max(0))
        }),
        cached: has_answers && end.cached_turns == end.turns,
        timing: Timing {
            latency_ms: milliseconds(latency),
            retries: end.retries,
            ..Timing::default()
        },
        error: error.map(|error| redacted(context, error)),
        ..Attempt::default()
    }
}

/// Returns a note for the user, and an error if there is nothing to check. Reaching the turn limit is a
/// result of the model and is checked; a failed call or a timeout need not be the model's fault.
fn describe_end(end: &LoopEnd, timeout: Duration) -> (Option<String>, Option<TrialError>) {
    let error = |kind, message| (None, Some(TrialError { kind, message }));
    match &end.status {
        LoopStatus::Completed => (None, None),
        LoopStatus::Failed(failure) => error(failure.kind, failure.message.clone()),
        LoopStatus::Cancelled => error(ErrorKind::Cancelled, "cancelled".to_owned()),
        LoopStatus::LimitReached(LoopLimit::Time) => {
            let seconds = timeout.as_secs_f64();
            error(
                ErrorKind::Timeout,
                format!("still running after {seconds} s [EVAL_CASE_TIMEOUT]"),
            )
        }
        LoopStatus::LimitReached(_) => {
            let turns = end.turns;
            (Some(format!("stopped after {turns} turns (`max_turns`) before it was done\n")), None)
        }
    }
}

/// Returns the tool calls of the model, in order. Those with these indices were refused.
fn tool_uses(messages: &[&Message], refused: &[usize]) -> Vec<ToolUse> {
    let parts = messages.iter().flat_map(|message| message.content());
    let calls = parts.filter_map(|part| match part {
        Content::ToolCall(call) => Some(call),
        _ => None,
    });
    let uses = calls.map(tool_use).enumerate();
    uses.map(|(index, call)| ToolUse { refused: refused.contains(&index), ..call }).collect()
}

/// Returns the ids and results of the tool calls of the model, in the order of the calls.
pub(super) fn tool_exchanges(end: &LoopEnd) -> Vec<ToolExchange> {
    let mut exchanges: Vec<ToolExchange> = Vec::new();
    for message in end.new_messages.iter().filter_map(AgentMessage::as_llm) {
        for part in message.content() {
            if let Content::ToolCall(call) = part {
                exchanges.push(ToolExchange { id: call.id.clone(), result: None });
            }
        }
        if let Message::ToolResult { tool_call_id, is_error, .. } = message {
            // Some providers use the same ids again in later turns.
            let open = exchanges
                .iter_mut()
                .rev()
                .find(|exchange| exchange.id == *tool_call_id && exchange.result.is_none());
            if let Some(exchange) = open {
                let text = message.text();
                let kept = text.floor_char_boundary(MAX_RESULT_BYTES);
                exchange.result = Some(ToolResult {
                    output: text[..kept].to_owned(),
                    dropped_bytes: (text.len() - kept) as u64,
                    is_error: *is_error,
                });
            }
        }
    }
    exchanges
}

/// Returns the messages without secrets, one per line, up to [`MAX_TRANSCRIPT_BYTES`], and the number
/// of bytes that were dropped.
fn transcript(messages: &[&Message], redactor: &Redactor) -> (String, u64) {
    let mut text = String::new();
    let mut dropped = 0;
    for message in messages {
        let Ok(line) = serde_json::to_string(message) else { continue };
        let line = redactor.scrub(line);
        // A cut line would not be valid JSON, and lines after a gap would mislead.
        if dropped > 0 || text.len() + line.len() >= MAX_TRANSCRIPT_BYTES {
            dropped += line.len() as u64 + 1;
            continue;
        }
        text.push_str(&line);
        text.push('\n');
    }
    (text, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcript_ends_with_the_last_whole_message_that_fits() {
        let long = "x".repeat(MAX_TRANSCRIPT_BYTES);
        let messages = [Message::user("first"), Message::user(long), Message::user("last")];
        let messages: Vec<&Message> = messages.iter().collect();
        let whole: u64 = messages
            .iter()
            .map(|message| serde_json::to_string(message).unwrap().len() as u64 + 1)
            .sum();
        let (text, dropped) = transcript(&messages, &Redactor::default());
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains("first") && text.ends_with("}\n"), "{text}");
        assert_eq!(text.len() as u64 + dropped, whole);
    }
}
