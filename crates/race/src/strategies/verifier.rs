//! What can be checked is checked before anybody is asked for an opinion.

use super::eligible;
use super::figures::PickFirstEvaluation;
use crate::error::RaceError;
use crate::judge::refuse;
use crate::names::Names;
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

/// Says whether an answer is right.
#[async_trait::async_trait]
pub trait Verify: Send + Sync {
    /// Why it can never say, whatever the answer; asked before anything is spent.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Looks at what became of a branch.
    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Verification;
}

/// What a verifier says about an answer. Reasons are for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// It is right.
    Passes,
    /// It will not do, and why.
    Fails(String),
    /// Nobody can say, and why. It may be right, and cannot win.
    CannotSay(String),
}

/// Only what passes a verifier can win; among that, another strategy chooses.
///
/// All answers are verified at once. When none passes, none wins; the verdict is
/// [`NoneAcceptable`](VerdictKind::NoneAcceptable) when all of them fail, and otherwise
/// [`CannotSay`](VerdictKind::CannotSay).
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
        refuse(self.name(), self.verifier.trouble())?;
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
        let mut none = VerdictKind::NoneAcceptable;
        for (place, result) in verified {
            let name = names.of_place(place);
            match result {
                Verification::Passes => passed.push(place),
                Verification::Fails(reason) => reasons.push(format!("{name}: {reason}")),
                Verification::CannotSay(reason) => {
                    reasons.push(format!("nobody can say about {name}: {reason}"));
                    none = VerdictKind::CannotSay;
                }
            }
        }
        if passed.is_empty() {
            let verdict = Verdict { reasons, ..Verdict::of(none) };
            return (EvaluationDecision { selected: None, verdict }, Usage::default());
        }
        let remaining = remaining(outcomes, &passed);
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

/// The branches as the other strategy sees them: what does not pass is there, in its place and with
/// its figures, but has failed. It cannot win, so that nobody needs a copy of what it said.
fn remaining<'o>(
    outcomes: &'o [ParallelLoopOutcome],
    passed: &[usize],
) -> Cow<'o, [ParallelLoopOutcome]> {
    if eligible(outcomes).all(|(place, _)| passed.contains(&place)) {
        return Cow::Borrowed(outcomes);
    }
    let one = |(place, outcome): (usize, &ParallelLoopOutcome)| match passed.contains(&place) {
        true => outcome.clone(),
        false => ParallelLoopOutcome {
            status: LoopStatus::Failed(LoopFailure {
                kind: ErrorKind::InvalidRequest,
                message: outcome.trouble().unwrap_or_else(|| "it was not verified".to_owned()),
            }),
            context: AgentContext {
                session: outcome.context.session.clone(),
                ..AgentContext::default()
            },
            new_messages: Vec::new(),
            original_context_len: 0,
            loop_id: outcome.loop_id.clone(),
            finish: outcome.finish.clone(),
            last_retry: outcome.last_retry.clone(),
            ..*outcome
        },
    };
    Cow::Owned(outcomes.iter().enumerate().map(one).collect())
}
