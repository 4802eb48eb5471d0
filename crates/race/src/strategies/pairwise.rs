//! Pairwise comparison of branches by a judge.

use crate::error::RaceError;
use crate::judge::{
    Conclusion, JudgeContext, JudgeFailure, LlmJudgeEvaluation, Poll, add_costs, reject_problem,
    run_polls,
};
use crate::names::BranchNames;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{Ballot, EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::break_tie;
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_core::{NanoDollars, Usage};
use bakeoff_stats::bradley_terry;
use tokio_util::sync::CancellationToken;

/// Maximum number of branches for a round robin; more branches play a knockout.
const MAX_ROUND_ROBIN: usize = 6;

/// Prior wins of each branch against each other branch.
const SMOOTHING: f64 = 0.5;

/// Selection by a judge that compares two answers at a time, in both orders.
///
/// Up to six branches play a round robin and are ranked by a Bradley–Terry model. More branches play a
/// knockout: the stage that a branch reached ranks before the model. A pair on which the orders disagree is a
/// tie and counts half for both. In a knockout the cheaper of the two advances; if the winner advanced that
/// way, the verdict is a tie.
#[derive(Debug, Clone)]
pub struct PairwiseEvaluation {
    /// Compares each pair.
    pub judge: LlmJudgeEvaluation,
}

#[async_trait::async_trait]
impl EvaluationStrategy for PairwiseEvaluation {
    fn name(&self) -> &str {
        "pairwise"
    }

    fn accepts(&self, _configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        reject_problem(self.name(), self.judge.problem())
    }

    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        let context = match JudgeContext::new(prompts, outcomes, tx, cancel) {
            Ok(context) => context,
            Err(decision) => return (*decision, Usage::default()),
        };
        let count = context.candidates.len();
        let mut tournament = Tournament::new(count);
        // Knockout stage that each branch reached; all zero in a round robin.
        let mut stages = vec![0_u32; count];
        if count <= MAX_ROUND_ROBIN {
            let pairs = |first| (first + 1..count).map(move |second| (first, second));
            let pairs: Vec<(usize, usize)> = (0..count).flat_map(pairs).collect();
            tournament.play(&self.judge, &pairs, &context).await;
        } else {
            let mut remaining: Vec<usize> = (0..count).collect();
            while remaining.len() > 1 && tournament.can_continue() {
                let pairs: Vec<(usize, usize)> =
                    remaining.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                let winners = tournament.play(&self.judge, &pairs, &context).await;
                let unpaired: Vec<usize> = remaining.chunks_exact(2).remainder().to_vec();
                let advancing = pairs.iter().zip(winners).map(|(pair, winner)| match winner {
                    Ok(winner) => winner,
                    Err(kind) => tournament.break_tie(*pair, kind, &context),
                });
                // A branch without an opponent comes first in the next stage, where it has one.
                remaining = unpaired.into_iter().chain(advancing).collect();
                for index in &remaining {
                    if let Some(stage) = stages.get_mut(*index) {
                        *stage += 1;
                    }
                }
            }
        }
        let usage = tournament.usage;
        (tournament.decide(&stages, &context), usage)
    }
}

/// A knockout pair that the judge left open and a tie-break decided.
struct TieBrokenPair {
    winner: usize,
    /// Why the judge did not decide.
    kind: VerdictKind,
    /// What decided.
    reason: String,
}

/// The results of all pairs. Branches are numbered by their position among the candidates.
struct Tournament {
    wins: Vec<Vec<f64>>,
    /// `beaten[i][j]`: `i` beat `j` in both orders.
    beaten: Vec<Vec<bool>>,
    decided: usize,
    tied: usize,
    /// Reason of the last failed call.
    failure: Option<JudgeFailure>,
    failed: usize,
    unparseable: usize,
    tie_broken: Vec<TieBrokenPair>,
    notes: Vec<String>,
    ballots: Vec<Ballot>,
    usage: Usage,
    cost: Option<NanoDollars>,
}

impl Tournament {
    fn new(count: usize) -> Tournament {
        Tournament {
            wins: vec![vec![0.0; count]; count],
            beaten: vec![vec![false; count]; count],
            decided: 0,
            tied: 0,
            failure: None,
            failed: 0,
            unparseable: 0,
            tie_broken: Vec::new(),
            notes: Vec::new(),
            ballots: Vec::new(),
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
        }
    }

    /// Returns whether further calls make sense: not all of them failed.
    fn can_continue(&self) -> bool {
        self.failed == 0 || self.decided + self.tied + self.unparseable > 0
    }

    /// Compares pairs concurrently; returns the winner of each, or why there is none.
    async fn play(
        &mut self,
        judge: &LlmJudgeEvaluation,
        pairs: &[(usize, usize)],
        context: &JudgeContext<'_>,
    ) -> Vec<Result<usize, VerdictKind>> {
        let branch = |index: usize| context.candidates.get(index).copied().unwrap_or_default();
        let mut polls: Vec<Poll<'_>> = pairs
            .iter()
            .map(|(one, other)| Poll::new(judge, 0, vec![branch(*one), branch(*other)], context))
            .collect();
        run_polls(context, &mut polls).await;
        let mut winners = Vec::new();
        for ((one, other), poll) in pairs.iter().zip(polls) {
            let winner = match &poll.conclusion {
                Some(Conclusion::Decided(winner)) => {
                    self.decided += 1;
                    Ok(if *winner == branch(*one) { *one } else { *other })
                }
                Some(Conclusion::Tied(_)) => {
                    self.tied += 1;
                    Err(VerdictKind::Tie)
                }
                Some(Conclusion::Unparseable(_)) => {
                    self.unparseable += 1;
                    Err(VerdictKind::Unparseable)
                }
                Some(Conclusion::Failed(failure, _)) => {
                    self.failed += 1;
                    self.failure = Some(failure.clone());
                    Err(failure.kind)
                }
                None => Err(VerdictKind::JudgeFailed),
            };
            self.count(*one, *other, winner.ok());
            for note in poll.notes {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            self.ballots.extend(poll.ballots);
            self.usage += poll.usage;
            self.cost = add_costs(self.cost, poll.cost);
            winners.push(winner);
        }
        winners
    }

    /// Lets the cheaper of two branches advance that the judge left open, and records that it did not win.
    fn break_tie(
        &mut self,
        (one, other): (usize, usize),
        kind: VerdictKind,
        context: &JudgeContext<'_>,
    ) -> usize {
        let branch = |index: usize| context.candidates.get(index).copied();
        let pair: Vec<usize> = [one, other].into_iter().filter_map(branch).collect();
        let tie_break = break_tie(context.outcomes, &pair);
        let (winner, loser) = match tie_break.ranking.first() {
            Some(first) if branch(other) == Some(*first) => (other, one),
            _ => (one, other),
        };
        let against =
            BranchNames::of(context.outcomes).of_branch(branch(loser).unwrap_or_default());
        let reason = format!("against {against}, {}", tie_break.reason);
        self.tie_broken.push(TieBrokenPair { winner, kind, reason });
        winner
    }

    /// Returns the kind of verdict and the reasons if a branch advanced by a tie-break.
    fn tie_breaks_of(&self, index: usize) -> Option<(VerdictKind, String)> {
        let pairs: Vec<&TieBrokenPair> =
            self.tie_broken.iter().filter(|pair| pair.winner == index).collect();
        let is_among = |kind: &VerdictKind| pairs.iter().any(|pair| pair.kind == *kind);
        let kinds = [
            VerdictKind::Tie,
            VerdictKind::Unparseable,
            VerdictKind::JudgeFailed,
            VerdictKind::BudgetExhausted,
        ];
        let kind = kinds.into_iter().find(is_among)?;
        let reasons: Vec<&str> = pairs.iter().map(|pair| pair.reason.as_str()).collect();
        Some((kind, reasons.join("; ")))
    }

    fn count(&mut self, one: usize, other: usize, winner: Option<usize>) {
        for (index, against) in [(one, other), (other, one)] {
            let points = match winner {
                None => 0.5,
                Some(winner) if winner == index => 1.0,
                Some(_) => 0.0,
            };
            if let Some(wins) = self.wins.get_mut(index).and_then(|row| row.get_mut(against)) {
                *wins += points;
            }
            if let Some(beaten) = self.beaten.get_mut(index).and_then(|row| row.get_mut(against)) {
                *beaten = winner == Some(index);
            }
        }
    }

    fn decide(self, stages: &[u32], context: &JudgeContext<'_>) -> EvaluationDecision {
        let JudgeContext { candidates, outcomes, .. } = context;
        let names = BranchNames::of(outcomes);
        let name =
            |index: usize| names.of_branch(candidates.get(index).copied().unwrap_or_default());
        let strengths = bradley_terry(&self.wins, SMOOTHING).unwrap_or_default();
        // Rounded, so that rounding errors do not rank equal branches.
        let strength = |index: usize| {
            let strength = strengths.get(index).copied().unwrap_or_default();
            (strength * 1e9).round() as i64
        };
        let standing = |index: usize| (stages.get(index).copied(), strength(index));
        let by_cost = break_tie(outcomes, candidates).ranking;
        let mut order: Vec<usize> = by_cost
            .iter()
            .filter_map(|branch| candidates.iter().position(|c| c == branch))
            .collect();
        // A stable sort keeps the cheaper of equal branches first.
        order.sort_by_key(|index| std::cmp::Reverse(standing(*index)));
        let best = order.first().copied().unwrap_or_default();
        let equals: Vec<usize> = order
            .iter()
            .filter(|index| standing(**index) == standing(best))
            .filter_map(|index| candidates.get(*index).copied())
            .collect();
        let judged = self.decided + self.tied;
        let fall_back = |kind| (kind, Some(break_tie(outcomes, &equals).reason));
        let (kind, fallback) = match (equals.len(), self.tie_breaks_of(best)) {
            (0 | 1, Some((kind, reason))) => (kind, Some(reason)),
            _ if judged == 0 && self.unparseable > 0 => fall_back(VerdictKind::Unparseable),
            _ if judged == 0 => fall_back(
                self.failure.as_ref().map_or(VerdictKind::JudgeFailed, |failure| failure.kind),
            ),
            (0 | 1, None) => (VerdictKind::Decided, None),
            _ => fall_back(VerdictKind::Tie),
        };
        let listed: Vec<String> = order
            .iter()
            .map(|index| {
                let strength = strengths.get(*index).copied().unwrap_or_default();
                format!("{} {:.0} %", name(*index), strength * 100.0)
            })
            .collect();
        let mut reasons = vec![format!("strengths: {}", listed.join(", "))];
        if self.tied + self.unparseable + self.failed > 0 {
            reasons.push(format!(
                "of {} pairs, {} are ties, {} have unparseable replies and {} have failed calls",
                judged + self.unparseable + self.failed,
                self.tied,
                self.unparseable,
                self.failed
            ));
        }
        reasons.extend(self.failure.map(|failure| failure.to_string()));
        reasons.extend(find_cycles(&self.beaten).iter().map(|members| {
            let members: Vec<usize> =
                members.iter().filter_map(|index| candidates.get(*index).copied()).collect();
            format!("cyclic preferences: {}", names.list(&members, "and"))
        }));
        reasons.extend(fallback.clone());
        reasons.extend(self.notes);
        let ranking: Vec<usize> =
            order.iter().filter_map(|index| candidates.get(*index).copied()).collect();
        EvaluationDecision {
            selected: ranking.first().copied(),
            verdict: Verdict {
                ranking,
                reasons,
                fallback,
                ballots: self.ballots,
                cost: self.cost,
                ..Verdict::of(kind)
            },
        }
    }
}

/// Returns groups in which every branch has beaten every other, directly or through others.
fn find_cycles(beaten: &[Vec<bool>]) -> Vec<Vec<usize>> {
    let count = beaten.len();
    let mut reaches: Vec<Vec<bool>> = beaten.to_vec();
    // Transitive closure (Warshall).
    for over in 0..count {
        for from in 0..count {
            for to in 0..count {
                reaches[from][to] = reaches[from][to] || (reaches[from][over] && reaches[over][to]);
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, row) in reaches.iter().enumerate() {
        let is_known = groups.iter().any(|group| group.contains(&index));
        let is_mutual = |other: &usize| row[*other] && reaches[*other][index];
        let group: Vec<usize> = (0..count).filter(is_mutual).collect();
        if !is_known && group.len() > 1 {
            groups.push(group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tie_counts_half_for_both() {
        let mut tournament = Tournament::new(3);
        tournament.count(0, 1, Some(1));
        tournament.count(0, 2, None);
        assert_eq!(tournament.wins, [[0.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]);
        assert!(tournament.beaten[1][0] && !tournament.beaten[0][1] && !tournament.beaten[0][2]);
    }

    #[test]
    fn cycles_are_found() {
        let table = |pairs: &[(usize, usize)]| {
            let mut beaten = vec![vec![false; 5]; 5];
            pairs.iter().for_each(|(one, other)| beaten[*one][*other] = true);
            beaten
        };
        assert!(find_cycles(&table(&[(0, 1), (1, 2), (0, 2)])).is_empty());
        assert_eq!(find_cycles(&table(&[(0, 1), (1, 2), (2, 0), (0, 3)])), [vec![0, 1, 2]]);
        // A cycle of four without the diagonals.
        assert_eq!(find_cycles(&table(&[(0, 1), (1, 2), (2, 3), (3, 0)])), [vec![0, 1, 2, 3]]);
        assert!(find_cycles(&[]).is_empty());
    }
}
