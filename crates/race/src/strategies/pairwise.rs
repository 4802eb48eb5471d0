//! Everybody against everybody, two at a time.

use crate::error::RaceError;
use crate::judge::{Conclusion, Court, LlmJudgeEvaluation, Poll, refuse, settle, sum};
use crate::names::Names;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{Ballot, EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::break_tie;
use bakeoff_agent::{AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_core::{NanoDollars, Usage};
use bakeoff_stats::bradley_terry;
use tokio_util::sync::CancellationToken;

/// With more branches than this a full round of pairs is too much.
const MOST_FOR_ALL_PAIRS: usize = 6;

/// Wins that each has against each before they meet.
const SMOOTHING: f64 = 0.5;

/// A judge compares two answers at a time, in both orders.
///
/// Up to six branches meet each other, and Bradley and Terry's model ranks them; with more, the
/// winners of each stage meet in the next, and stages come before the model. A pair on which the
/// orders do not agree is a tie and counts half for both. In a stage the cheaper of the two goes on,
/// and whoever comes to the top that way has not won: the verdict is a tie.
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
        refuse(self.name(), self.judge.trouble())
    }

    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        let court = match Court::open(prompts, outcomes, tx, cancel) {
            Ok(court) => court,
            Err(decision) => return (*decision, Usage::default()),
        };
        let places = court.places.clone();
        let mut games = Games::new(places.len());
        // How many stages each has reached; all are equal when everybody meets everybody.
        let mut stages = vec![0_u32; places.len()];
        if places.len() <= MOST_FOR_ALL_PAIRS {
            let pairs = |first| (first + 1..places.len()).map(move |second| (first, second));
            let pairs: Vec<(usize, usize)> = (0..places.len()).flat_map(pairs).collect();
            games.play(&self.judge, &pairs, &court).await;
        } else {
            let mut left: Vec<usize> = (0..places.len()).collect();
            while left.len() > 1 && games.can_go_on() {
                let pairs: Vec<(usize, usize)> =
                    left.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                let won = games.play(&self.judge, &pairs, &court).await;
                let rest: Vec<usize> = left.chunks_exact(2).remainder().to_vec();
                let going_on = pairs.iter().zip(won).map(|(pair, won)| match won {
                    Ok(winner) => winner,
                    Err(kind) => games.settle(*pair, kind, &court),
                });
                // Who has nobody to meet comes first in the next stage, where it has.
                left = rest.into_iter().chain(going_on).collect();
                for index in &left {
                    if let Some(stage) = stages.get_mut(*index) {
                        *stage += 1;
                    }
                }
            }
        }
        let usage = games.usage;
        (games.decision(&stages, &court), usage)
    }
}

/// A pair of a stage that the judge left open, so that something else decided who goes on.
struct Settled {
    winner: usize,
    /// Why the judge did not decide.
    kind: VerdictKind,
    /// What did.
    words: String,
}

/// What came of all pairs; branches are numbered by their place among those that can win.
struct Games {
    wins: Vec<Vec<f64>>,
    /// Who has beaten whom in both orders.
    beaten: Vec<Vec<bool>>,
    decided: usize,
    tied: usize,
    /// Why the judge could not be asked, the last time.
    failure: Option<String>,
    failed: usize,
    unreadable: usize,
    settled: Vec<Settled>,
    notes: Vec<String>,
    ballots: Vec<Ballot>,
    usage: Usage,
    cost: Option<NanoDollars>,
}

impl Games {
    fn new(count: usize) -> Games {
        Games {
            wins: vec![vec![0.0; count]; count],
            beaten: vec![vec![false; count]; count],
            decided: 0,
            tied: 0,
            failure: None,
            failed: 0,
            unreadable: 0,
            settled: Vec::new(),
            notes: Vec::new(),
            ballots: Vec::new(),
            usage: Usage::default(),
            cost: Some(NanoDollars(0)),
        }
    }

    /// Whether asking on makes sense: the judge has answered at all.
    fn can_go_on(&self) -> bool {
        self.failed == 0 || self.decided + self.tied + self.unreadable > 0
    }

    /// Has pairs compared, all at once; the winner of each, or why there is none.
    async fn play(
        &mut self,
        judge: &LlmJudgeEvaluation,
        pairs: &[(usize, usize)],
        court: &Court<'_>,
    ) -> Vec<Result<usize, VerdictKind>> {
        let place = |index: usize| court.places.get(index).copied().unwrap_or_default();
        let mut polls: Vec<Poll<'_>> = pairs
            .iter()
            .map(|(one, other)| Poll::new(judge, vec![place(*one), place(*other)], court))
            .collect();
        settle(court, &mut polls).await;
        let mut winners = Vec::new();
        for ((one, other), poll) in pairs.iter().zip(polls) {
            let winner = match &poll.conclusion {
                Some(Conclusion::Decided(winner)) => {
                    self.decided += 1;
                    Ok(if *winner == place(*one) { *one } else { *other })
                }
                Some(Conclusion::Tied(_)) => {
                    self.tied += 1;
                    Err(VerdictKind::Tie)
                }
                Some(Conclusion::Unreadable(_)) => {
                    self.unreadable += 1;
                    Err(VerdictKind::Unparseable)
                }
                Some(Conclusion::Failed(reason, _)) => {
                    self.failed += 1;
                    self.failure = Some(reason.clone());
                    Err(VerdictKind::JudgeFailed)
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
            self.cost = sum(self.cost, poll.cost);
            winners.push(winner);
        }
        winners
    }

    /// The cheaper of two that the judge could not tell apart goes on, and it is kept that it did
    /// not win.
    fn settle(
        &mut self,
        (one, other): (usize, usize),
        kind: VerdictKind,
        court: &Court<'_>,
    ) -> usize {
        let place = |index: usize| court.places.get(index).copied();
        let pair: Vec<usize> = [one, other].into_iter().filter_map(place).collect();
        let broken = break_tie(court.outcomes, &pair);
        let (winner, loser) = match broken.ranking.first() {
            Some(first) if place(other) == Some(*first) => (other, one),
            _ => (one, other),
        };
        let against = Names::of(court.outcomes).of_place(place(loser).unwrap_or_default());
        let words = format!("against {against}, {}", broken.words);
        self.settled.push(Settled { winner, kind, words });
        winner
    }

    /// What a branch owes to something else than the judge: the kind of verdict, and what decided.
    fn owed(&self, index: usize) -> Option<(VerdictKind, String)> {
        let owed: Vec<&Settled> = self.settled.iter().filter(|pair| pair.winner == index).collect();
        let is_among = |kind: &VerdictKind| owed.iter().any(|pair| pair.kind == *kind);
        let kinds = [VerdictKind::Tie, VerdictKind::Unparseable, VerdictKind::JudgeFailed];
        let kind = kinds.into_iter().find(is_among)?;
        let words: Vec<&str> = owed.iter().map(|pair| pair.words.as_str()).collect();
        Some((kind, words.join("; ")))
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

    fn decision(self, stages: &[u32], court: &Court<'_>) -> EvaluationDecision {
        let Court { places, outcomes, .. } = court;
        let names = Names::of(outcomes);
        let name = |index: usize| names.of_place(places.get(index).copied().unwrap_or_default());
        let strengths = bradley_terry(&self.wins, SMOOTHING).unwrap_or_default();
        // Rounded, so that equals are equal whatever the last digits say.
        let strength = |index: usize| {
            let strength = strengths.get(index).copied().unwrap_or_default();
            (strength * 1e9).round() as i64
        };
        let standing = |index: usize| (stages.get(index).copied(), strength(index));
        let by_cost = break_tie(outcomes, places).ranking;
        let mut order: Vec<usize> =
            by_cost.iter().filter_map(|place| places.iter().position(|p| p == place)).collect();
        // Stable, so that of equals the cheaper stays first.
        order.sort_by_key(|index| std::cmp::Reverse(standing(*index)));
        let best = order.first().copied().unwrap_or_default();
        let equals: Vec<usize> = order
            .iter()
            .filter(|index| standing(**index) == standing(best))
            .filter_map(|index| places.get(*index).copied())
            .collect();
        let heard = self.decided + self.tied;
        let instead = |kind| (kind, Some(break_tie(outcomes, &equals).words));
        let (kind, fallback) = match (equals.len(), self.owed(best)) {
            (0 | 1, Some((kind, words))) => (kind, Some(words)),
            _ if heard == 0 && self.unreadable > 0 => instead(VerdictKind::Unparseable),
            _ if heard == 0 => instead(VerdictKind::JudgeFailed),
            (0 | 1, None) => (VerdictKind::Decided, None),
            _ => instead(VerdictKind::Tie),
        };
        let listed: Vec<String> = order
            .iter()
            .map(|index| {
                let strength = strengths.get(*index).copied().unwrap_or_default();
                format!("{} {:.0} %", name(*index), strength * 100.0)
            })
            .collect();
        let mut reasons = vec![format!("strengths: {}", listed.join(", "))];
        if self.tied + self.unreadable + self.failed > 0 {
            reasons.push(format!(
                "of {} pairs, {} are ties, {} cannot be read and {} could not be asked about",
                heard + self.unreadable + self.failed,
                self.tied,
                self.unreadable,
                self.failed
            ));
        }
        reasons
            .extend(self.failure.map(|reason| format!("the judge could not be asked: {reason}")));
        reasons.extend(circles(&self.beaten).iter().map(|members| {
            let members: Vec<usize> =
                members.iter().filter_map(|index| places.get(*index).copied()).collect();
            format!("a circle, in which each beats another: {}", names.list(&members, "and"))
        }));
        reasons.extend(fallback.clone());
        reasons.extend(self.notes);
        let ranking: Vec<usize> =
            order.iter().filter_map(|index| places.get(*index).copied()).collect();
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

/// Groups in which everybody has beaten everybody else, over others if need be.
fn circles(beaten: &[Vec<bool>]) -> Vec<Vec<usize>> {
    let count = beaten.len();
    let mut reaches: Vec<Vec<bool>> = beaten.to_vec();
    // Warshall's closure.
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
        let both_ways = |other: &usize| row[*other] && reaches[*other][index];
        let group: Vec<usize> = (0..count).filter(both_ways).collect();
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
    fn a_tie_counts_half_for_both() {
        let mut games = Games::new(3);
        games.count(0, 1, Some(1));
        games.count(0, 2, None);
        assert_eq!(games.wins, [[0.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]);
        assert!(games.beaten[1][0] && !games.beaten[0][1] && !games.beaten[0][2]);
    }

    #[test]
    fn circles_are_found() {
        let table = |pairs: &[(usize, usize)]| {
            let mut beaten = vec![vec![false; 5]; 5];
            pairs.iter().for_each(|(one, other)| beaten[*one][*other] = true);
            beaten
        };
        assert!(circles(&table(&[(0, 1), (1, 2), (0, 2)])).is_empty());
        assert_eq!(circles(&table(&[(0, 1), (1, 2), (2, 0), (0, 3)])), [vec![0, 1, 2]]);
        // Four that never meet crosswise.
        assert_eq!(circles(&table(&[(0, 1), (1, 2), (2, 3), (3, 0)])), [vec![0, 1, 2, 3]]);
        assert!(circles(&[]).is_empty());
    }
}
