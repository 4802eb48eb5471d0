//! What a vote costs that stops when it is decided, beside one that asks everybody.

use super::{client, config, run};
use crate::Error;
use bakeoff_agent::{AgentLoopConfig, LoopStatus};
use bakeoff_pace::Strategy;
use bakeoff_race::{EvaluationStrategy, MajorityEvaluation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers that may be asked for.
const SAMPLES: usize = 15;

/// How often a model is right.
const RIGHT: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// Votes of models that are right so often.
#[derive(Debug, Clone)]
pub struct VoteRow {
    /// How often a model is right.
    pub right: f64,
    /// Votes.
    pub races: u64,
    /// Calls that asking everybody takes.
    pub full_calls: u64,
    /// Calls until it was decided.
    pub calls: u64,
    /// Votes that came to the right answer when everybody is asked.
    pub full_correct: u64,
    /// Votes that came to the right answer.
    pub correct: u64,
}

pub(super) async fn measure(races: u64) -> Result<Vec<VoteRow>, Error> {
    let mut rows = Vec::new();
    for right in RIGHT {
        let samples = SAMPLES as u64;
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
                (0..SAMPLES)
                    .map(|_| config(&client, &format!("pass-{right}"), Strategy::None))
                    .collect()
            };
            let early = run(configs()?, Arc::new(MajorityEvaluation::default())).await?;
            let asked = |status: &LoopStatus| *status != LoopStatus::Cancelled;
            let others = early.all_outcomes.iter().filter(|other| asked(&other.status)).count();
            row.calls += 1 + others as u64;
            row.correct += u64::from(early.answer() == "ok");
            let full = run(configs()?, Arc::new(Everybody(MajorityEvaluation::default()))).await?;
            row.full_correct += u64::from(full.answer() == "ok");
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The same vote, which asks everybody at once.
struct Everybody(MajorityEvaluation);

#[async_trait::async_trait]
impl EvaluationStrategy for Everybody {
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
