//! The strategy trait and its decisions.

use crate::error::RaceError;
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender, LoopId};
use bakeoff_core::{NanoDollars, Usage};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Selects the winner among the branches of a race.
#[async_trait::async_trait]
pub trait EvaluationStrategy: Send + Sync {
    /// Name of the strategy in verdicts.
    fn name(&self) -> &str {
        "custom"
    }

    /// Rejects configs that the strategy cannot handle, before any call is made.
    ///
    /// # Errors
    ///
    /// [`RaceError::Strategy`].
    fn accepts(&self, configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        let _ = configs;
        Ok(())
    }

    /// Returns how many branches, in config order, must have been started, given those that have ended. The
    /// default is all of them. When this many have ended, the race is decided.
    fn required_branches(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> usize {
        let _ = ended;
        branches
    }

    /// Returns whether the branches that have ended are sufficient. The others are then cancelled.
    fn early_stop(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> bool {
        let _ = (ended, branches);
        false
    }

    /// Selects among all branches, given in config order, and returns the decision and the tokens it used. At
    /// least one branch [can win](ParallelLoopOutcome::is_eligible); selecting one that cannot is
    /// [`RaceError::BadDecision`].
    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage);
}

/// The decision of a strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationDecision {
    /// Index of the winner; `None` if no branch is acceptable.
    pub selected: Option<usize>,
    /// The reasons.
    pub verdict: Verdict,
}

impl EvaluationDecision {
    /// Selects a branch.
    pub fn select(index: usize, reason: impl Into<String>) -> EvaluationDecision {
        EvaluationDecision {
            selected: Some(index),
            verdict: Verdict {
                ranking: vec![index],
                reasons: vec![reason.into()],
                ..Verdict::of(VerdictKind::Decided)
            },
        }
    }

    /// Selects the first of a ranking.
    pub fn rank(ranking: Vec<usize>, reason: impl Into<String>) -> EvaluationDecision {
        EvaluationDecision {
            selected: ranking.first().copied(),
            verdict: Verdict {
                ranking,
                reasons: vec![reason.into()],
                ..Verdict::of(VerdictKind::Decided)
            },
        }
    }
}

/// Why a branch won.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the strategy; set by the race.
    #[serde(default)]
    pub strategy: String,
    /// The kind of verdict.
    pub kind: VerdictKind,
    /// Branch indices, best first, without branches that cannot win.
    pub ranking: Vec<usize>,
    /// Human-readable reasons.
    pub reasons: Vec<String>,
    /// What decided if the strategy could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// All replies of judges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ballots: Vec<Ballot>,
    /// Cost of the evaluation; `None` if a price is unknown.
    #[serde(default, rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
}

impl Verdict {
    /// Returns an otherwise empty verdict of a kind.
    pub fn of(kind: VerdictKind) -> Verdict {
        Verdict {
            strategy: String::new(),
            kind,
            ranking: Vec::new(),
            reasons: Vec::new(),
            fallback: None,
            ballots: Vec::new(),
            cost: Some(NanoDollars(0)),
        }
    }
}

/// Kinds of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VerdictKind {
    /// The strategy decided.
    Decided,
    /// Only one branch could win, so no judge was called.
    Unopposed,
    /// The best branches are equal, or a judge's preference depends on the order; the fallback decided.
    Tie,
    /// The judge's reply is unparseable; the fallback decided.
    Unparseable,
    /// The judge's call failed; the fallback decided.
    JudgeFailed,
    /// The budget did not cover a call of the judge; the fallback decided.
    BudgetExhausted,
    /// Too few judges of a panel voted; the fallback decided.
    NoQuorum,
    /// No branch is acceptable.
    NoneAcceptable,
    /// No branch is known to be acceptable, and the verifier gave no result for at least one.
    #[serde(rename = "cannot_say")]
    Inconclusive,
}

impl VerdictKind {
    /// Returns whether the strategy compared the answers. Otherwise the fallback has nothing to do with their
    /// quality, or there is no winner at all.
    pub fn is_conclusive(self) -> bool {
        match self {
            VerdictKind::Decided
            | VerdictKind::Unopposed
            | VerdictKind::Tie
            | VerdictKind::NoneAcceptable => true,
            VerdictKind::Unparseable
            | VerdictKind::JudgeFailed
            | VerdictKind::BudgetExhausted
            | VerdictKind::NoQuorum
            | VerdictKind::Inconclusive => false,
        }
    }
}

/// One reply of a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ballot {
    /// The judge's loop.
    pub loop_id: LoopId,
    /// Branch indices in the order in which the judge saw them.
    pub order: Vec<usize>,
    /// Index of the branch with the vote; `None` if the reply is unparseable or the call failed.
    pub choice: Option<usize>,
    /// The reply, or why the call failed.
    pub reply: String,
}
