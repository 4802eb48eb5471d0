//! Outcomes for unit tests.

use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{AgentContext, AgentMessage, LoopStatus, Session};
use bakeoff_core::{Message, NanoDollars, Usage};
use std::time::Duration;

/// Returns a branch with an answer.
pub(crate) fn answered(
    session: &Session,
    segment: &str,
    cost: Option<i64>,
    tokens: u64,
) -> ParallelLoopOutcome {
    ParallelLoopOutcome {
        config_index: 0,
        loop_id: session.next_loop(segment),
        status: LoopStatus::Completed,
        context: AgentContext::default(),
        new_messages: vec![AgentMessage::Llm(Message::assistant("answer"))],
        usage: Usage { output: tokens, ..Usage::default() },
        cost: cost.map(NanoDollars),
        unaccounted_calls: 0,
        refused_calls: Vec::new(),
        end_order: None,
        last_retry: None,
        elapsed: Duration::ZERO,
        original_context_len: 0,
        finish: None,
    }
}
