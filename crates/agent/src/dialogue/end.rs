//! Outcomes of agent loops, and errors that prevent a start.

use super::context::AgentMessage;
use super::session::LoopId;
use bakeoff_core::{ErrorKind, FinishReason, Message, NanoDollars, Usage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Outcome of a loop. The context contains all messages up to the end, for every status.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoopEnd {
    /// Id of the loop.
    pub loop_id: LoopId,
    /// Whether it completed, and what stopped it otherwise.
    pub status: LoopStatus,
    /// Messages of the model and its tools, without the prompts.
    pub new_messages: Vec<AgentMessage>,
    /// Token usage of all calls.
    pub usage: Usage,
    /// Cost of all calls; `None` if a price is unknown.
    pub cost: Option<NanoDollars>,
    /// Calls that were abandoned in flight; `usage` and `cost` do not include them.
    pub unaccounted_calls: u32,
    /// Indices, among all tool calls, of those that were refused: there is no such tool, the arguments are invalid, or a
    /// limit was reached.
    pub refused_calls: Vec<usize>,
    /// Number of model calls.
    pub turns: u32,
    /// Number of model calls served from the cache.
    pub cached_turns: u32,
    /// Number of retried requests.
    pub retries: u32,
    /// Reason of the last retry.
    pub last_retry: Option<String>,
    /// Number of calls with a compacted conversation.
    pub compactions: u32,
    /// Total duration.
    pub elapsed: Duration,
    /// Duration of the successful requests, without waits for permits and retries.
    pub latency: Duration,
    /// Duration of tool execution.
    pub tool_time: Duration,
    /// Finish reason of the last response.
    pub finish: Option<FinishReason>,
}

impl LoopEnd {
    /// Creates the end of a completed loop without messages or usage. Loops start from it; in tests of your own
    /// code, set the other fields afterwards.
    pub fn new(loop_id: LoopId) -> LoopEnd {
        LoopEnd {
            loop_id,
            status: LoopStatus::Completed,
            new_messages: Vec::new(),
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
            unaccounted_calls: 0,
            refused_calls: Vec::new(),
            turns: 0,
            cached_turns: 0,
            retries: 0,
            last_retry: None,
            compactions: 0,
            elapsed: Duration::ZERO,
            latency: Duration::ZERO,
            tool_time: Duration::ZERO,
            finish: None,
        }
    }

    /// Returns the text of the last model message; empty if there is none.
    pub fn answer(&self) -> String {
        last_answer(&self.new_messages)
    }
}

/// Returns the text of the last model message; empty if there is none. Text of earlier messages, which call
/// tools, is not part of the answer.
pub fn last_answer(messages: &[AgentMessage]) -> String {
    let mut messages = messages.iter().rev().filter_map(AgentMessage::as_llm);
    let last = messages.find(|message| matches!(message, Message::Assistant { .. }));
    last.map(Message::text).unwrap_or_default()
}

/// Whether a loop completed, and what stopped it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// The model responded without tool calls.
    Completed,
    /// A call failed and was not retried any more.
    Failed(LoopFailure),
    /// The caller cancelled the loop.
    Cancelled,
    /// The loop reached one of its limits.
    LimitReached(LoopLimit),
}

/// Error that ended a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct LoopFailure {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Message for the user, without secrets.
    pub message: String,
}

/// A limit that ends a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopLimit {
    /// Number of model calls.
    Turns,
    /// Number of tokens.
    Tokens,
    /// Duration.
    Time,
    /// Cost.
    Cost,
}

impl std::fmt::Display for LoopLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LoopLimit::Turns => "out of turns",
            LoopLimit::Tokens => "limit of tokens reached",
            LoopLimit::Time => "timed out",
            LoopLimit::Cost => "limit of cost reached",
        })
    }
}

/// A loop cannot start. No call was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// No prompt was given.
    #[error("no prompt given")]
    NoPrompt,
    /// The context to continue has no messages.
    #[error("the context is empty")]
    EmptyContext,
    /// The context to continue ends with a model message.
    #[error("the context ends with a response of the model")]
    EndsOnAssistant,
    /// A config with a prompt template was given no prompt.
    #[error("the prompt template needs a prompt")]
    NoPromptForTemplate,
    /// The prompt template cannot be rendered.
    #[error("prompt template: {reason}")]
    Template {
        /// The reason.
        reason: String,
    },
    /// A tool definition is invalid.
    #[error("tool `{name}`: {reason}")]
    BadTool {
        /// Name of the tool.
        name: String,
        /// Problem of the definition.
        reason: String,
    },
    /// A cost limit was set for a model without known price.
    #[error("no price known for {model}; a cost limit needs one")]
    NoPrice {
        /// Name of the model.
        model: String,
    },
}
