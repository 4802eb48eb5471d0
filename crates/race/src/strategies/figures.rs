//! Strategies that compare figures and make no calls. The first of equal branches wins.

use super::eligible;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy};
use bakeoff_agent::{AgentMessage, EventSender};
use bakeoff_core::Usage;
use std::cmp::Reverse;
use tokio_util::sync::CancellationToken;

/// Selects the first config with an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PickFirstEvaluation;

/// Selects the branch with the fewest tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEfficientEvaluation;

/// Selects the branch with the most tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElaborateEvaluation;

/// Selects the first answer to arrive, by the order in which the branches ended; the other branches are cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FastestEvaluation;

/// Selects the cheapest branch; branches with unknown cost come last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheapestEvaluation;

/// Implements a strategy that ranks by a key, smallest first, and states the winner's figure.
macro_rules! by_figure {
    ($strategy:ty, $name:literal, $early:expr, $key:expr, $reason:expr) => {
        #[async_trait::async_trait]
        impl EvaluationStrategy for $strategy {
            fn name(&self) -> &str {
                $name
            }

            fn early_stop(&self, ended: &[&ParallelLoopOutcome], _branches: usize) -> bool {
                $early && ended.iter().any(|branch| branch.is_eligible())
            }

            async fn evaluate(
                &self,
                _prompts: &[AgentMessage],
                outcomes: &[ParallelLoopOutcome],
                _tx: &EventSender,
                _cancel: CancellationToken,
            ) -> (EvaluationDecision, Usage) {
                (rank(outcomes, $key, $reason), Usage::default())
            }
        }
    };
}

by_figure!(PickFirstEvaluation, "first", false, |_| 0, |_| "the first branch with an answer"
    .to_owned());

by_figure!(
    TokenEfficientEvaluation,
    "token-efficient",
    false,
    |branch| branch.usage.total(),
    |branch| format!("the fewest tokens: {}", branch.usage.total())
);

by_figure!(
    ElaborateEvaluation,
    "elaborate",
    false,
    |branch| Reverse(branch.usage.total()),
    |branch| format!("the most tokens: {}", branch.usage.total())
);

by_figure!(
    FastestEvaluation,
    "fastest",
    true,
    // Branches start at different times, so the duration of one does not say when it ended.
    |branch| (branch.end_order.is_none(), branch.end_order, branch.elapsed),
    |branch| format!("the first answer, after {:.2} s", branch.elapsed.as_secs_f64())
);

by_figure!(
    CheapestEvaluation,
    "cheapest",
    false,
    |branch| (branch.cost.is_none(), branch.cost, branch.usage.total()),
    |branch| match branch.cost {
        Some(cost) => format!("the lowest cost: {cost}"),
        None => format!("no price known; the fewest tokens: {}", branch.usage.total()),
    }
);

fn rank<K: Ord>(
    outcomes: &[ParallelLoopOutcome],
    key: impl Fn(&ParallelLoopOutcome) -> K,
    reason: impl Fn(&ParallelLoopOutcome) -> String,
) -> EvaluationDecision {
    let mut ranking: Vec<(usize, &ParallelLoopOutcome)> = eligible(outcomes).collect();
    // A stable sort keeps equal branches in config order.
    ranking.sort_by_key(|(_, branch)| key(branch));
    let reason = ranking.first().map(|(_, branch)| reason(branch)).unwrap_or_default();
    EvaluationDecision::rank(ranking.iter().map(|(index, _)| *index).collect(), reason)
}
