//! What can be checked is checked before anybody is asked for an opinion.

use super::eligible;
use super::figures::PickFirstEvaluation;
use crate::error::RaceError;
use crate::names::Names;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender, LoopFailure, LoopStatus};
use bakeoff_core::{ErrorKind, Usage};
use futures_util::future::join_all;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Says whether an answer is right.
#[async_trait::async_trait]
pub trait Verify: Send + Sync {
    /// Looks at what became of a branch.
    ///
    /// # Errors
    ///
    /// Why it will not do, for people; also when nobody can say.
    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Result<(), String>;
}

/// Only what passes a verifier can win; among that, another strategy chooses.
///
/// All answers are verified at once. When none passes, none wins.
#[derive(Clone)]
pub struct VerifierEvaluation {
    /// Says which answers are right.
    pub verifier: Arc<dyn Verify>,
    /// Chooses among them.
    pub among: Arc<dyn EvaluationStrategy>,
}

impl std::fmt::Debug for VerifierEvaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifierEvaluation")
            .field("among", &self.among.name())
            .finish_non_exhaustive()
    }
}

impl VerifierEvaluation {
    /// The first of the configs whose answer passes.
    pub fn new(verifier: Arc<dyn Verify>) -> VerifierEvaluation {
        VerifierEvaluation { verifier, among: Arc::new(PickFirstEvaluation) }
    }

    /// Another strategy chooses among those that pass, such as a judge.
    #[must_use]
    pub fn among(self, among: Arc<dyn EvaluationStrategy>) -> VerifierEvaluation {
        VerifierEvaluation { among, ..self }
    }
}

#[async_trait::async_trait]
impl EvaluationStrategy for VerifierEvaluation {
    fn name(&self) -> &str {
        "verifier"
    }

    fn accepts(&self, configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        self.among.accepts(configs)
    }

    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        let verified =
            join_all(eligible(outcomes).map(async |(place, outcome)| {
                (place, self.verifier.verify(outcome, &cancel).await)
            }))
            .await;
        let names = Names::of(outcomes);
        let mut reasons = Vec::new();
        let mut passed = Vec::new();
        let mut remaining = outcomes.to_vec();
        for (place, result) in verified {
            match result {
                Ok(()) => passed.push(place),
                Err(reason) => {
                    reasons.push(format!("{}: {reason}", names.of_place(place)));
                    // The other strategy knows that what failed cannot win.
                    let failure = LoopFailure { kind: ErrorKind::InvalidRequest, message: reason };
                    if let Some(outcome) = remaining.get_mut(place) {
                        outcome.status = LoopStatus::Failed(failure);
                    }
                }
            }
        }
        if passed.is_empty() {
            let verdict = Verdict { reasons, ..Verdict::of(VerdictKind::NoneAcceptable) };
            return (EvaluationDecision { selected: None, verdict }, Usage::default());
        }
        let passes = match &passed[..] {
            [only] => format!("only {} passes", names.of_place(*only)),
            several => format!("{} pass", names.list(several, "and")),
        };
        let (mut decision, usage) = self.among.evaluate(prompts, &remaining, tx, cancel).await;
        let chosen = std::mem::take(&mut decision.verdict.reasons);
        decision.verdict.reasons = std::iter::once(passes).chain(chosen).chain(reasons).collect();
        (decision, usage)
    }
}
