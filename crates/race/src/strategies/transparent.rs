//! The strategy for a single config.

use crate::error::RaceError;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy};
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_core::Usage;
use tokio_util::sync::CancellationToken;

/// Accepts exactly one config, with the events and results of a race.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransparentEvaluation;

#[async_trait::async_trait]
impl EvaluationStrategy for TransparentEvaluation {
    fn name(&self) -> &str {
        "transparent"
    }

    fn accepts(&self, configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        if configs.len() == 1 {
            return Ok(());
        }
        let reason = format!("needs exactly one branch, got {}", configs.len());
        Err(RaceError::Strategy { strategy: self.name().to_owned(), reason })
    }

    async fn evaluate(
        &self,
        _prompts: &[AgentMessage],
        _outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        _cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        (EvaluationDecision::select(0, "the only branch"), Usage::default())
    }
}
