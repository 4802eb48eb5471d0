//! What all judges of one race share.

use super::material::Material;
use super::without_a_choice;
use crate::error::RaceError;
use crate::outcome::ParallelLoopOutcome;
use crate::strategies::eligible;
use crate::strategy::EvaluationDecision;
use bakeoff_agent::{AgentMessage, EventSender, Session};
use tokio_util::sync::CancellationToken;

/// A race, as its judges come to it.
pub(crate) struct Court<'r> {
    pub(super) material: Material,
    pub(crate) outcomes: &'r [ParallelLoopOutcome],
    /// The branches that can win; at least two.
    pub(crate) places: Vec<usize>,
    pub(super) session: Session,
    pub(super) tx: &'r EventSender,
    pub(super) cancel: CancellationToken,
}

impl<'r> Court<'r> {
    /// A court about these outcomes, in their session.
    ///
    /// # Errors
    ///
    /// The decision, when there are not two to choose among.
    pub(crate) fn open(
        prompts: &[AgentMessage],
        outcomes: &'r [ParallelLoopOutcome],
        tx: &'r EventSender,
        cancel: CancellationToken,
    ) -> Result<Court<'r>, Box<EvaluationDecision>> {
        let places: Vec<usize> = eligible(outcomes).map(|(place, _)| place).collect();
        if let Some(decision) = without_a_choice(&places) {
            return Err(Box::new(decision));
        }
        // Of one that cannot win, the conversation need not be there.
        let first = places.first().and_then(|place| outcomes.get(*place));
        Ok(Court {
            material: Material::of(prompts, first),
            outcomes,
            places,
            session: first.map(|outcome| outcome.context.session.clone()).unwrap_or_default(),
            tx,
            cancel,
        })
    }
}

/// What a strategy says to configs, given what is wrong with it whatever they are.
///
/// # Errors
///
/// [`RaceError::Strategy`] with the trouble.
pub(crate) fn refuse(strategy: &str, trouble: Option<String>) -> Result<(), RaceError> {
    match trouble {
        None => Ok(()),
        Some(reason) => Err(RaceError::Strategy { strategy: strategy.to_owned(), reason }),
    }
}
