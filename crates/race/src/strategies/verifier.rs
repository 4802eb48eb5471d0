//! Verification of answers before another strategy selects among them.

use super::eligible;
use super::figures::PickFirstEvaluation;
use crate::error::RaceError;
use crate::judge::reject_problem;
use crate::names::BranchNames;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, EventSender, LoopFailure, LoopStatus,
};
use bakeoff_core::{ErrorKind, Usage};
use futures_util::future::join_all;
use std::borrow::Cow;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Verifies answers.
#[async_trait::async_trait]
pub trait Verify: Send + Sync {
    /// Returns why the verifier cannot verify any answer. It is called before any model call.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Verifies the answer of a branch.
    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Verification;
}

/// The result of a verification, with a human-readable reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// The answer is acceptable.
    Passed,
    /// The answer is not acceptable.
    Failed(String),
    /// The verifier gave no result. The answer may be acceptable, but cannot win.
    Inconclusive(String),
}

/// Selects among the answers that pass a verifier, with another strategy.
///
/// All answers are verified concurrently. If none passes, none wins; the verdict is
/// [`NoneAcceptable`](VerdictKind::NoneAcceptable) if all fail, and otherwise
/// [`Inconclusive`](VerdictKind::Inconclusive).
#[derive(Clone)]
pub struct VerifierEvaluation {
    /// The verifier.
    pub verifier: Arc<dyn Verify>,
    /// Selects among the answers that pass.
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
    /// Selects the first config whose answer passes.
    pub fn new(verifier: Arc<dyn Verify>) -> VerifierEvaluation {
        VerifierEvaluation { verifier, among: Arc::new(PickFirstEvaluation) }
    }

    /// Selects among the answers that pass with another strategy, such as a judge.
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
        reject_problem(self.name(), self.verifier.problem())?;
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
            join_all(eligible(outcomes).map(async |(index, outcome)| {
                (index, self.verifier.verify(outcome, &cancel).await)
            }))
            .await;
        let names = BranchNames::of(outcomes);
        let mut reasons = Vec::new();
        let mut passed = Vec::new();
        let mut kind = VerdictKind::NoneAcceptable;
        for (index, result) in verified {
            let name = names.of_branch(index);
            match result {
                Verification::Passed => passed.push(index),
                Verification::Failed(reason) => reasons.push(format!("{name}: {reason}")),
                Verification::Inconclusive(reason) => {
                    reasons.push(format!("no result for {name}: {reason}"));
                    kind = VerdictKind::Inconclusive;
                }
            }
        }
        if passed.is_empty() {
            let verdict = Verdict { reasons, ..Verdict::of(kind) };
            return (EvaluationDecision { selected: None, verdict }, Usage::default());
        }
        let remaining = fail_others(outcomes, &passed);
        let passes = match &passed[..] {
            [only] => format!("only {} passes", names.of_branch(*only)),
            several => format!("{} pass", names.list(several, "and")),
        };
        let (mut decision, usage) = self.among.evaluate(prompts, &remaining, tx, cancel).await;
        let mut selection = std::mem::take(&mut decision.verdict.reasons);
        if passed.len() == 1 && self.among.name() == PickFirstEvaluation.name() {
            // The order of the branches decided nothing.
            selection.clear();
        }
        decision.verdict.reasons =
            std::iter::once(passes).chain(selection).chain(reasons).collect();
        (decision, usage)
    }
}

/// Returns the branches for the other strategy: those that did not pass keep their index and figures but have
/// failed. Their messages are not copied, because they cannot win.
fn fail_others<'o>(
    outcomes: &'o [ParallelLoopOutcome],
    passed: &[usize],
) -> Cow<'o, [ParallelLoopOutcome]> {
    if eligible(outcomes).all(|(index, _)| passed.contains(&index)) {
        return Cow::Borrowed(outcomes);
    }
    let view = |(index, outcome): (usize, &ParallelLoopOutcome)| match passed.contains(&index) {
        true => outcome.clone(),
        false => ParallelLoopOutcome {
            status: LoopStatus::Failed(LoopFailure {
                kind: ErrorKind::InvalidRequest,
                message: outcome.failure_reason().unwrap_or_else(|| "not verified".to_owned()),
            }),
            context: AgentContext::default().with_session(outcome.context.session.clone()),
            new_messages: Vec::new(),
            original_context_len: 0,
            loop_id: outcome.loop_id.clone(),
            finish: outcome.finish.clone(),
            last_retry: outcome.last_retry.clone(),
            refused_calls: outcome.refused_calls.clone(),
            ..*outcome
        },
    };
    Cow::Owned(outcomes.iter().enumerate().map(view).collect())
}
