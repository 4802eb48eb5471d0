//! How loops end, and why some cannot begin.

use super::context::AgentMessage;
use super::session::LoopId;
use bakeoff_core::{ErrorKind, FinishReason, Message, NanoDollars, Usage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a loop ended. Whatever it says, the context holds what was said until then.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoopEnd {
    /// Which loop.
    pub loop_id: LoopId,
    /// How.
    pub status: LoopStatus,
    /// What the model and its tools said; the prompts are not among it.
    pub new_messages: Vec<AgentMessage>,
    /// Tokens of all calls.
    pub usage: Usage,
    /// Money for all calls; `None` when a price is unknown.
    pub cost: Option<NanoDollars>,
    /// Calls that were given up while they were under way: what they cost is in neither figure.
    pub unaccounted_calls: u32,
    /// Calls of the model.
    pub turns: u32,
    /// Those of them that the cache answered.
    pub cached_turns: u32,
    /// Attempts of calls that failed and were made again.
    pub retries: u32,
    /// Why a call was made again, the last time.
    pub last_retry: Option<String>,
    /// How often less than the whole conversation was sent.
    pub compactions: u32,
    /// From start to end.
    pub elapsed: Duration,
    /// The successful calls themselves, without waiting for permits and retries.
    pub latency: Duration,
    /// Running tools.
    pub tool_time: Duration,
    /// Why the model stopped the last time.
    pub finish: Option<FinishReason>,
}

impl LoopEnd {
    /// A loop that has only begun.
    pub(super) fn begun(loop_id: LoopId) -> LoopEnd {
        LoopEnd {
            loop_id,
            status: LoopStatus::Completed,
            new_messages: Vec::new(),
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
            unaccounted_calls: 0,
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

    /// The text of the model's last message; empty when it said nothing.
    pub fn answer(&self) -> String {
        last_answer(&self.new_messages)
    }
}

/// The text of the model's last message; empty when it said nothing. What it said before it called
/// tools is no answer.
pub fn last_answer(messages: &[AgentMessage]) -> String {
    let mut backwards = messages.iter().rev().filter_map(AgentMessage::as_llm);
    let last = backwards.find(|message| matches!(message, Message::Assistant { .. }));
    last.map(Message::text).unwrap_or_default()
}

/// Whether a loop came to its end, and what stopped it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// The model has answered and calls no more tools.
    Completed,
    /// A call failed for good.
    Failed(LoopFailure),
    /// Somebody stopped it.
    Cancelled,
    /// It reached one of its limits.
    LimitReached(Limit),
}

/// What a loop failed of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct LoopFailure {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// What happened, for people; without secrets.
    pub message: String,
}

/// A limit that ends a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Calls of the model.
    Turns,
    /// Tokens.
    Tokens,
    /// Time.
    Time,
    /// Money.
    Cost,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Limit::Turns => "limit of turns reached",
            Limit::Tokens => "limit of tokens reached",
            Limit::Time => "time is up",
            Limit::Cost => "limit of cost reached",
        })
    }
}

/// A loop that cannot begin. Nothing was called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// There is nothing to ask.
    #[error("there is no prompt; to answer the last message of a context, continue it")]
    NoPrompt,
    /// There is nothing to continue.
    #[error("the context is empty; there is nothing to continue")]
    EmptyContext,
    /// The model spoke last.
    #[error("the context ends with the model's answer; add a message before continuing")]
    EndsOnAssistant,
    /// A tool cannot be offered.
    #[error("tool `{name}`: {reason}")]
    BadTool {
        /// Which one.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A limit of cost cannot be kept.
    #[error("nobody knows the price of {model}, so a limit of cost cannot be kept")]
    NoPrice {
        /// Which model.
        model: String,
    },
}
