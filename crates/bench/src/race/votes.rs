//! Cost of a majority vote that stops when it is decided, compared with one that collects all answers.

use super::{client, config, run};
use crate::Error;
use bakeoff_agent::{AgentLoopConfig, LoopStatus};
use bakeoff_pace::Strategy;
use bakeoff_race::{EvaluationStrategy, MajorityEvaluation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of answers per vote.
const MAX_ANSWERS: usize = 15;

/// Probabilities of a correct answer.
const ACCURACIES: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// Results of votes at one accuracy.
#[derive(Debug, Clone)]
pub struct VoteRow {
    /// Probability of a correct answer.
    pub right: f64,
    /// Number of votes.
    pub races: u64,
    /// Calls when all answers are collected.
    pub full_calls: u64,
    /// Calls until the vote was decided.
    pub calls: u64,
    /// Correct votes when all answers are collected.
    pub full_correct: u64,
    /// Correct votes.
    pub correct: u64,
}

pub(super) async fn measure(races: u64) -> Result<Vec<VoteRow>, Error> {
    let mut rows = Vec::new();
    for right in ACCURACIES {
        let samples = MAX_ANSWERS as u64;
        let mut row = VoteRow {
            right,
            races,
            full_calls: races * samples,
            calls: 0,
            full_correct: 0,
            correct: 0,
        };
        for seed in 0..races {
            let client = client(seed, BTreeMap::new());
            let configs = || -> Result<Vec<AgentLoopConfig>, Error> {
                (0..MAX_ANSWERS)
                    .map(|_| config(&client, &format!("pass-{right}"), Strategy::None))
                    .collect()
            };
            let early = run(configs()?, Arc::new(MajorityEvaluation::default())).await?;
            let was_called = |status: &LoopStatus| *status != LoopStatus::Cancelled;
            let others =
                early.all_outcomes.iter().filter(|other| was_called(&other.status)).count();
            row.calls += 1 + others as u64;
            row.correct += u64::from(early.answer() == "ok");
            let full = run(configs()?, Arc::new(FullVote(MajorityEvaluation::default()))).await?;
            row.full_correct += u64::from(full.answer() == "ok");
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The same vote without early stopping.
struct FullVote(MajorityEvaluation);

#[async_trait::async_trait]
impl EvaluationStrategy for FullVote {
    async fn evaluate(
        &self,
        prompts: &[bakeoff_agent::AgentMessage],
        outcomes: &[bakeoff_race::ParallelLoopOutcome],
        tx: &bakeoff_agent::EventSender,
        cancel: tokio_util::sync::CancellationToken,
    ) -> (bakeoff_race::EvaluationDecision, bakeoff_core::Usage) {
        self.0.evaluate(prompts, outcomes, tx, cancel).await
    }
}
