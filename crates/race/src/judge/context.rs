//! State shared by all judges of one race.

use super::conversation::Conversation;
use super::decide_without_judge;
use crate::error::RaceError;
use crate::outcome::ParallelLoopOutcome;
use crate::strategies::eligible;
use crate::strategy::EvaluationDecision;
use bakeoff_agent::{AgentMessage, EventSender, Session};
use tokio_util::sync::CancellationToken;

/// The race that judges evaluate.
pub(crate) struct JudgeContext<'r> {
    pub(super) conversation: Conversation,
    pub(crate) outcomes: &'r [ParallelLoopOutcome],
    /// Indices of the branches that can win; at least two.
    pub(crate) candidates: Vec<usize>,
    pub(super) session: Session,
    pub(super) tx: &'r EventSender,
    pub(super) cancel: CancellationToken,
}

impl<'r> JudgeContext<'r> {
    /// Creates the context for these outcomes, in their session.
    ///
    /// # Errors
    ///
    /// Fewer than two branches can win; the error is the decision.
    pub(crate) fn new(
        prompts: &[AgentMessage],
        outcomes: &'r [ParallelLoopOutcome],
        tx: &'r EventSender,
        cancel: CancellationToken,
    ) -> Result<JudgeContext<'r>, Box<EvaluationDecision>> {
        let candidates: Vec<usize> = eligible(outcomes).map(|(index, _)| index).collect();
        if let Some(decision) = decide_without_judge(&candidates) {
            return Err(Box::new(decision));
        }
        // The context of a branch that cannot win may be missing.
        let first = candidates.first().and_then(|index| outcomes.get(*index));
        Ok(JudgeContext {
            conversation: Conversation::new(prompts, first),
            outcomes,
            candidates,
            session: first.map(|outcome| outcome.context.session.clone()).unwrap_or_default(),
            tx,
            cancel,
        })
    }
}

/// Turns a problem of a strategy into an error.
///
/// # Errors
///
/// [`RaceError::Strategy`] if there is a problem.
pub(crate) fn reject_problem(strategy: &str, problem: Option<String>) -> Result<(), RaceError> {
    match problem {
        None => Ok(()),
        Some(reason) => Err(RaceError::Strategy { strategy: strategy.to_owned(), reason }),
    }
}
