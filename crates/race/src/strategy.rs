//! Who decides, and what a decision is.

use crate::error::RaceError;
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender, LoopId};
use bakeoff_core::{NanoDollars, Usage};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Chooses among the branches of a race.
#[async_trait::async_trait]
pub trait EvaluationStrategy: Send + Sync {
    /// What it is called in verdicts.
    fn name(&self) -> &str {
        "custom"
    }

    /// Refuses configs that it cannot choose among, before anything is spent.
    ///
    /// # Errors
    ///
    /// [`RaceError::Strategy`].
    fn accepts(&self, configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        let _ = configs;
        Ok(())
    }

    /// How many branches should have been started by now, given those that have ended; at once all,
    /// unless the strategy may do with fewer. They are started in the order of their configs. When
    /// this many have ended, the race is decided.
    fn wanted(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> usize {
        let _ = ended;
        branches
    }

    /// Whether the branches that have ended are enough. The others are cancelled then.
    fn early_stop(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> bool {
        let _ = (ended, branches);
        false
    }

    /// Chooses among all branches, which come in the order of their configs. At least one of them
    /// [can win](ParallelLoopOutcome::is_eligible); choosing one that cannot is
    /// [`RaceError::BadDecision`]. Also gives the tokens that it took.
    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage);
}

/// What a strategy decided.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationDecision {
    /// The winner's place among the branches; `None` when none of them will do.
    pub selected: Option<usize>,
    /// Why.
    pub verdict: Verdict,
}

impl EvaluationDecision {
    /// This branch wins.
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

    /// The first of a ranking wins.
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

/// Why a branch won, and how sure that is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the strategy; filled in by the race.
    #[serde(default)]
    pub strategy: String,
    /// What kind of verdict it is.
    pub kind: VerdictKind,
    /// Places of branches, the best first; those that cannot win are not in it.
    pub ranking: Vec<usize>,
    /// Why, for people.
    pub reasons: Vec<String>,
    /// What decided instead, where the strategy itself could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// What judges said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ballots: Vec<Ballot>,
    /// Money for the evaluation; `None` when a price is unknown.
    #[serde(default, rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
}

impl Verdict {
    /// A verdict of this kind, to be filled in.
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
    /// The strategy has decided.
    Decided,
    /// Only one branch could win, so nobody was asked.
    Unopposed,
    /// The best are equal, or a judge's preference depends on the order; the fallback decided.
    Tie,
    /// Nobody can tell what the judge means; the fallback decided.
    Unparseable,
    /// The judge could not be asked; the fallback decided.
    JudgeFailed,
    /// None of the branches will do.
    NoneAcceptable,
    /// None of the branches is known to do, and of some nobody can say whether they will.
    CannotSay,
}

/// What a judge said, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ballot {
    /// The judge's loop.
    pub loop_id: LoopId,
    /// Places of the branches, in the order in which the judge saw them.
    pub order: Vec<usize>,
    /// The place of the branch that it chose; `None` when nobody can tell, or it failed.
    pub choice: Option<usize>,
    /// Its reply, or why there is none.
    pub reply: String,
}
