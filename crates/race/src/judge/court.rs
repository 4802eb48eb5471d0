//! What all judges of one race share.

use super::material::Material;
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{AgentMessage, EventSender, Session};
use tokio_util::sync::CancellationToken;

/// A race, as its judges come to it.
pub(crate) struct Court<'r> {
    pub(super) material: Material,
    pub(crate) outcomes: &'r [ParallelLoopOutcome],
    pub(super) session: Session,
    pub(super) tx: &'r EventSender,
    pub(super) cancel: CancellationToken,
}

impl<'r> Court<'r> {
    /// A court about these outcomes, in their session.
    pub(crate) fn new(
        prompts: &[AgentMessage],
        outcomes: &'r [ParallelLoopOutcome],
        tx: &'r EventSender,
        cancel: CancellationToken,
    ) -> Court<'r> {
        let first = outcomes.first();
        Court {
            material: Material::of(prompts, first),
            outcomes,
            session: first.map(|outcome| outcome.context.session.clone()).unwrap_or_default(),
            tx,
            cancel,
        }
    }
}
