//! Outcomes of branches and races.

use crate::strategy::Verdict;
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, EventSender, LoopEnd, LoopError, LoopId,
    LoopStatus, Session, agent_loop, last_answer,
};
use bakeoff_core::{FinishReason, Message, NanoDollars, Usage};
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
    /// Indices, among the branch's tool calls, of those that were refused.
    pub refused_calls: Vec<usize>,
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
    /// Creates the outcome of a branch from the end of its loop. In tests of a strategy, use [`LoopEnd::new`]
    /// and set the fields that the strategy reads.
    pub fn new(config_index: usize, end: LoopEnd, context: AgentContext) -> ParallelLoopOutcome {
        ParallelLoopOutcome {
            config_index,
            loop_id: end.loop_id,
            status: end.status,
            context,
            new_messages: end.new_messages,
            usage: end.usage,
            cost: end.cost,
            unaccounted_calls: end.unaccounted_calls,
            refused_calls: end.refused_calls,
            end_order: None,
            last_retry: end.last_retry,
            elapsed: end.elapsed,
            original_context_len: 0,
            finish: end.finish,
        }
    }

    /// Creates the outcome of a branch that completed with this answer, for tests of a strategy.
    ///
    /// ```
    /// use bakeoff_race::ParallelLoopOutcome;
    ///
    /// let outcome = ParallelLoopOutcome::completed(1, "forty-two");
    /// assert!(outcome.is_eligible());
    /// assert_eq!((outcome.config_index, outcome.answer().as_str()), (1, "forty-two"));
    /// ```
    pub fn completed(config_index: usize, answer: &str) -> ParallelLoopOutcome {
        let mut end = LoopEnd::new(Session::default().next_loop(&config_index.to_string()));
        end.new_messages.push(AgentMessage::Llm(Message::assistant(answer)));
        end.turns = 1;
        end.finish = Some(FinishReason::Stop);
        ParallelLoopOutcome::new(config_index, end, AgentContext::default())
    }

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
    /// Creates the result of a race from the winner, the other branches and the verdict. `evaluation_usage` is
    /// added to the total.
    pub fn new(
        winner: ParallelLoopOutcome,
        all_outcomes: Vec<ParallelLoopOutcome>,
        verdict: Verdict,
        evaluation_usage: Usage,
    ) -> ParallelLoopResult {
        let mut total_usage = winner.usage;
        all_outcomes.iter().for_each(|outcome| total_usage += outcome.usage);
        total_usage += evaluation_usage;
        ParallelLoopResult {
            selected_context: winner.context,
            selected_messages: winner.new_messages,
            selected_index: winner.config_index,
            selected: SelectedBranch {
                loop_id: winner.loop_id,
                usage: winner.usage,
                cost: winner.cost,
                elapsed: winner.elapsed,
                original_context_len: winner.original_context_len,
                finish: winner.finish,
            },
            all_outcomes,
            verdict,
            evaluation_usage,
            total_usage,
        }
    }

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
