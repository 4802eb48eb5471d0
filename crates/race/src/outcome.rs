//! Outcomes of branches and races.

use crate::strategy::Verdict;
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, EventSender, LoopEnd, LoopError, LoopId,
    LoopStatus, agent_loop, last_answer,
};
use bakeoff_core::{FinishReason, NanoDollars, Usage};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The outcome of one branch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParallelLoopOutcome {
    /// Index of the config.
    pub config_index: usize,
    /// Id of the branch's loop.
    pub loop_id: LoopId,
    /// How the loop ended.
    pub status: LoopStatus,
    /// The conversation at the end of the branch.
    pub context: AgentContext,
    /// New messages of the model and its tools, without the prompts.
    pub new_messages: Vec<AgentMessage>,
    /// Tokens of the branch's calls.
    pub usage: Usage,
    /// Cost of the branch's calls; `None` if a price is unknown.
    pub cost: Option<NanoDollars>,
    /// Calls that were cancelled in flight or lost in a panic. Their usage and cost are not included above.
    pub unaccounted_calls: u32,
    /// Number of branches that had ended before; `None` if the branch never started.
    pub end_order: Option<u32>,
    /// Reason of the last retry, if any.
    pub last_retry: Option<String>,
    /// Duration of the branch.
    pub elapsed: Duration,
    /// Number of messages in the base context: all branches started from
    /// `context.messages[..original_context_len]`.
    pub original_context_len: usize,
    /// Finish reason of the last response.
    pub finish: Option<FinishReason>,
}

impl ParallelLoopOutcome {
    /// Returns the text of the model's last message; empty if there is none.
    pub fn answer(&self) -> String {
        last_answer(&self.new_messages)
    }

    /// Returns whether the branch can win: it completed with a non-empty answer.
    pub fn is_eligible(&self) -> bool {
        self.failure_reason().is_none()
    }

    /// Returns why the branch cannot win.
    pub fn failure_reason(&self) -> Option<String> {
        match &self.status {
            LoopStatus::Failed(failure) => Some(failure.to_string()),
            LoopStatus::Cancelled => Some("cancelled".to_owned()),
            LoopStatus::LimitReached(limit) => Some(match &self.last_retry {
                Some(retry) => format!("{limit}; before that, {retry}"),
                None => limit.to_string(),
            }),
            LoopStatus::Completed if !self.answer().trim().is_empty() => None,
            LoopStatus::Completed if self.finish == Some(FinishReason::Length) => {
                Some("empty answer, cut off at the token limit".to_owned())
            }
            LoopStatus::Completed => Some("empty answer".to_owned()),
        }
    }
}

/// The result of a race.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParallelLoopResult {
    /// The winner's conversation, ready to be continued.
    pub selected_context: AgentContext,
    /// New messages of the winner and its tools, never compacted, without the prompts.
    pub selected_messages: Vec<AgentMessage>,
    /// Index of the winner's config.
    pub selected_index: usize,
    /// Figures of the winner; its context is [`selected_context`](Self::selected_context).
    pub selected: SelectedBranch,
    /// Outcomes of the other branches, in config order.
    pub all_outcomes: Vec<ParallelLoopOutcome>,
    /// Why the winner won.
    pub verdict: Verdict,
    /// Tokens of the evaluation.
    pub evaluation_usage: Usage,
    /// Tokens of all branches and of the evaluation.
    pub total_usage: Usage,
}

/// Figures of the winner.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SelectedBranch {
    /// Id of the branch's loop.
    pub loop_id: LoopId,
    /// Tokens of the branch's calls.
    pub usage: Usage,
    /// Cost of the branch's calls; `None` if a price is unknown.
    pub cost: Option<NanoDollars>,
    /// Duration of the branch.
    pub elapsed: Duration,
    /// Number of messages in the base context.
    pub original_context_len: usize,
    /// Finish reason; [`FinishReason::Length`] if the answer is cut off.
    pub finish: Option<FinishReason>,
}

impl ParallelLoopResult {
    /// Returns the winner's answer.
    pub fn answer(&self) -> String {
        last_answer(&self.selected_messages)
    }

    /// Continues with the winner: adds a message to its context and runs a loop.
    ///
    /// # Errors
    ///
    /// As for [`agent_loop`]; the context is then unchanged.
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
