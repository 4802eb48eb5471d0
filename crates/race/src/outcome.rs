//! What became of the branches of a race.

use crate::strategy::Verdict;
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, EventSender, LoopEnd, LoopError, LoopId,
    LoopStatus, agent_loop, last_answer,
};
use bakeoff_core::{FinishReason, NanoDollars, Usage};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What became of one branch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParallelLoopOutcome {
    /// Its place among the configs.
    pub config_index: usize,
    /// Its loop.
    pub loop_id: LoopId,
    /// How it ended.
    pub status: LoopStatus,
    /// The conversation as it left it.
    pub context: AgentContext,
    /// What the model and its tools said; the prompts are not among it.
    pub new_messages: Vec<AgentMessage>,
    /// Tokens of its calls.
    pub usage: Usage,
    /// Money for its calls; `None` when a price is unknown.
    pub cost: Option<NanoDollars>,
    /// Calls that were given up while they were under way, or broke down with their branch: what
    /// they cost is in neither figure.
    pub unaccounted_calls: u32,
    /// How many branches had ended before it; `None` when it never began.
    pub end_order: Option<u32>,
    /// Why its last call was made again, if one was.
    pub last_retry: Option<String>,
    /// How long it took.
    pub elapsed: Duration,
    /// Messages in the context before it began: `context.messages[..original_context_len]` is what
    /// all branches started from.
    pub original_context_len: usize,
    /// Why the model stopped the last time.
    pub finish: Option<FinishReason>,
}

impl ParallelLoopOutcome {
    /// The text of the model's last message; empty when it said nothing.
    pub fn answer(&self) -> String {
        last_answer(&self.new_messages)
    }

    /// Whether it can win: it came to its end, and says something.
    pub fn is_eligible(&self) -> bool {
        self.trouble().is_none()
    }

    /// Why it cannot win.
    pub fn trouble(&self) -> Option<String> {
        match &self.status {
            LoopStatus::Failed(failure) => Some(failure.to_string()),
            LoopStatus::Cancelled => Some("cancelled".to_owned()),
            LoopStatus::LimitReached(limit) => Some(match &self.last_retry {
                Some(retry) => format!("{limit}; before that, {retry}"),
                None => limit.to_string(),
            }),
            LoopStatus::Completed if !self.answer().trim().is_empty() => None,
            LoopStatus::Completed if self.finish == Some(FinishReason::Length) => {
                Some("empty answer, cut off at the most tokens allowed".to_owned())
            }
            LoopStatus::Completed => Some("empty answer".to_owned()),
        }
    }
}

/// What became of a race.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParallelLoopResult {
    /// The winner's conversation, to go on with.
    pub selected_context: AgentContext,
    /// What the winner and its tools said, as it was said; the prompts are not among it.
    pub selected_messages: Vec<AgentMessage>,
    /// The winner's place among the configs.
    pub selected_index: usize,
    /// The winner itself; its context is [`selected_context`](Self::selected_context).
    pub selected: Selected,
    /// The others, in the order of their configs.
    pub all_outcomes: Vec<ParallelLoopOutcome>,
    /// Why the winner won.
    pub verdict: Verdict,
    /// Tokens of the evaluation.
    pub evaluation_usage: Usage,
    /// Tokens of all branches and of the evaluation.
    pub total_usage: Usage,
}

/// The winner's figures.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Selected {
    /// Its loop.
    pub loop_id: LoopId,
    /// Tokens of its calls.
    pub usage: Usage,
    /// Money for its calls; `None` when a price is unknown.
    pub cost: Option<NanoDollars>,
    /// How long it took.
    pub elapsed: Duration,
    /// Messages in the context before it began.
    pub original_context_len: usize,
    /// Why the model stopped; [`FinishReason::Length`] when its answer is cut off.
    pub finish: Option<FinishReason>,
}

impl ParallelLoopResult {
    /// The winner's answer.
    pub fn answer(&self) -> String {
        last_answer(&self.selected_messages)
    }

    /// Goes on with the winner: adds a message to its context and has it answered.
    ///
    /// # Errors
    ///
    /// As for [`agent_loop`]; the context is as it was then.
    pub async fn continue_with(
        &mut self,
        message: impl Into<AgentMessage>,
        config: &AgentLoopConfig,
        tx: EventSender,
        cancel: CancellationToken,
    ) -> Result<LoopEnd, LoopError> {
        agent_loop(vec![message.into()], &mut self.selected_context, config, tx, cancel).await
    }
}
