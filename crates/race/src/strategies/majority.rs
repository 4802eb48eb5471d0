//! Majority vote over the answers of the branches.

use super::eligible;
use super::extraction::Extraction;
use crate::judge::{decide_without_judge, format_count};
use crate::names::BranchNames;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::break_tie;
use bakeoff_agent::{AgentMessage, EventSender};
use bakeoff_core::Usage;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Selects the answer that most branches give (self-consistency; Wang et al., arXiv 2203.11171), and the
/// first config that gives it.
///
/// At any time only those branches have started that every continuation of the vote needs, so no call is
/// wasted and the result equals that of the full vote. A branch without an extractable answer does not vote.
/// An equal number of votes is a tie, which the answer of the cheapest branch wins.
#[derive(Debug, Clone, Default)]
pub struct MajorityEvaluation {
    /// The part of an answer that is compared.
    pub extraction: Extraction,
}

impl MajorityEvaluation {
    /// A vote over extracted parts of the answers.
    pub fn new(extraction: Extraction) -> MajorityEvaluation {
        MajorityEvaluation { extraction }
    }

    /// Returns the vote of a branch.
    fn vote(&self, branch: &ParallelLoopOutcome) -> Option<String> {
        branch.is_eligible().then(|| self.extraction.extract(&branch.answer())).flatten()
    }
}

/// Returns how many of the `left` branches that have not ended are needed in any case: the fewest that can
/// put the leader beyond reach.
///
/// A lead is safe if it exceeds the number of branches left. If the next `k` branches all vote for the
/// leader, it is safe when `lead + k > left - k`.
fn needed(votes: &[usize], left: usize) -> usize {
    let mut votes = votes.to_vec();
    votes.sort_by_key(|count| Reverse(*count));
    let votes_at = |rank: usize| votes.get(rank).copied().unwrap_or_default();
    let lead = votes_at(0) - votes_at(1);
    let needed = left.checked_sub(lead).map_or(0, |behind| behind / 2 + 1);
    needed.min(left)
}

#[async_trait::async_trait]
impl EvaluationStrategy for MajorityEvaluation {
    fn name(&self) -> &str {
        "majority"
    }

    fn required_branches(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> usize {
        let mut votes: BTreeMap<String, usize> = BTreeMap::new();
        for vote in ended.iter().filter_map(|branch| self.vote(branch)) {
            *votes.entry(vote).or_default() += 1;
        }
        let votes: Vec<usize> = votes.into_values().collect();
        let needed = needed(&votes, branches.saturating_sub(ended.len()));
        // In a resumed race, the branches that have ended may have any index.
        let has_ended = |index: &usize| ended.iter().any(|branch| branch.config_index == *index);
        let last = (0..branches).filter(|index| !has_ended(index)).take(needed).last();
        last.map_or(0, |index| index + 1)
    }

    async fn evaluate(
        &self,
        _prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        _cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        (self.count(outcomes), Usage::default())
    }
}

impl MajorityEvaluation {
    fn count(&self, outcomes: &[ParallelLoopOutcome]) -> EvaluationDecision {
        let candidates: Vec<usize> = eligible(outcomes).map(|(index, _)| index).collect();
        if let Some(decision) = decide_without_judge(&candidates) {
            return decision;
        }
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, branch) in eligible(outcomes) {
            if let Some(vote) = self.vote(branch) {
                groups.entry(vote).or_default().push(index);
            }
        }
        let votes: usize = groups.values().map(Vec::len).sum();
        let max = groups.values().map(Vec::len).max().unwrap_or_default();
        let without_vote = candidates.len() - votes;
        let mut groups: Vec<(String, Vec<usize>)> = groups.into_iter().collect();
        // Largest group first, then in config order.
        groups.sort_by_key(|(_, members)| (Reverse(members.len()), members.first().copied()));
        let mut reasons: Vec<String> = groups
            .iter()
            .map(|(answer, members)| {
                let votes = format_count(u32::try_from(members.len()).unwrap_or(u32::MAX), "vote");
                format!("{votes} for {}", quote(answer))
            })
            .collect();
        if without_vote > 0 {
            reasons.push(format!("no answer extracted from {without_vote}"));
        }
        let leading: Vec<usize> = groups
            .iter()
            .take_while(|(_, members)| members.len() == max)
            .flat_map(|(_, m)| m.clone())
            .collect();
        let is_tie = groups.get(1).is_some_and(|(_, members)| members.len() == max);
        let (kind, first, fallback) = match (groups.first(), is_tie) {
            (None, _) => {
                let tie_break = break_tie(outcomes, &candidates);
                (
                    VerdictKind::Unparseable,
                    tie_break.ranking.first().copied(),
                    Some(tie_break.reason),
                )
            }
            (Some(_), true) => {
                let tie_break = break_tie(outcomes, &leading);
                let cheapest = tie_break.ranking.first().copied();
                // The answer of the cheapest branch wins, through the first config that gave it.
                let group = groups.iter().find(|(_, m)| cheapest.is_some_and(|c| m.contains(&c)));
                let winner = group.and_then(|(_, members)| members.first().copied());
                (VerdictKind::Tie, winner, Some(tie_break.reason))
            }
            (Some((_, members)), false) => (VerdictKind::Decided, members.first().copied(), None),
        };
        if let (Some(reason), Some(winner)) = (&fallback, first) {
            let name = BranchNames::of(outcomes).of_branch(winner);
            reasons.push(format!("{reason}; so {name} wins"));
        }
        let ranking: Vec<usize> = first
            .into_iter()
            .chain(groups.iter().flat_map(|(_, members)| members.iter().copied()))
            .collect();
        EvaluationDecision {
            selected: first,
            verdict: Verdict { ranking: distinct(ranking), reasons, fallback, ..Verdict::of(kind) },
        }
    }
}

/// Removes repeated indices.
fn distinct(indices: Vec<usize>) -> Vec<usize> {
    let mut unique = Vec::new();
    for index in indices {
        if !unique.contains(&index) {
            unique.push(index);
        }
    }
    unique
}

/// Returns the start of an answer, quoted.
fn quote(answer: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match answer.char_indices().nth(MAX_CHARACTERS) {
        None => format!("{answer:?}"),
        Some((end, _)) => format!("{:?}…", answer.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answered;
    use bakeoff_agent::Session;
    use proptest::prelude::*;

    /// Returns the votes that a race collects if branches end in config order with these votes.
    fn collect_votes(votes: &[Option<u8>]) -> Vec<Option<u8>> {
        let mut ended: Vec<Option<u8>> = Vec::new();
        loop {
            let required = ended.len() + needed(&counts(&ended), votes.len() - ended.len());
            if required <= ended.len() {
                return ended;
            }
            ended.push(votes[ended.len()]);
        }
    }

    fn counts(votes: &[Option<u8>]) -> Vec<usize> {
        (0..=u8::MAX)
            .map(|answer| votes.iter().filter(|vote| **vote == Some(answer)).count())
            .filter(|count| *count > 0)
            .collect()
    }

    fn winners(votes: &[Option<u8>]) -> Vec<u8> {
        let votes = |answer: &u8| votes.iter().filter(|vote| **vote == Some(*answer)).count();
        let max = (0..=u8::MAX).map(|answer| votes(&answer)).max().unwrap_or_default();
        (0..=u8::MAX).filter(|answer| max > 0 && votes(answer) == max).collect()
    }

    #[test]
    fn only_branches_needed_in_any_case_are_required() {
        for (votes, left, expected) in [
            (&[][..], 5, 3),
            (&[], 4, 3),
            (&[], 1, 1),
            (&[], 0, 0),
            (&[2], 3, 1),
            (&[3], 2, 0),
            (&[2], 2, 1),
            (&[1, 1], 3, 2),
            (&[2, 2], 1, 1),
            (&[2, 1, 1], 2, 1),
        ] {
            assert_eq!(needed(votes, left), expected, "{votes:?} {left}");
        }
    }

    #[test]
    fn ended_branches_of_a_resumed_race_are_skipped() {
        let session = Session::named("s");
        let ended_at = |index: usize| {
            let branch = answered(&session, "m", None, 1);
            ParallelLoopOutcome { config_index: index, ..branch }
        };
        let required = |ended: &[usize]| {
            let ended: Vec<ParallelLoopOutcome> = ended.iter().map(|i| ended_at(*i)).collect();
            let ended: Vec<&ParallelLoopOutcome> = ended.iter().collect();
            MajorityEvaluation::default().required_branches(&ended, 5)
        };
        assert_eq!(required(&[]), 3);
        assert_eq!(required(&[4]), 2, "the first two");
        assert_eq!(required(&[1]), 3, "the first and the third");
        assert_eq!(required(&[0, 4]), 2, "the second");
        assert_eq!(required(&[0, 2, 4]), 0, "all agree");
    }

    proptest! {
        /// The vote stops as soon as no continuation can change it, and never starts a branch that some
        /// continuation does not need.
        #[test]
        fn decision_equals_that_of_the_full_vote(
            votes in prop::collection::vec(prop::option::weighted(0.85, 0_u8..4), 0..9),
        ) {
            let ended = collect_votes(&votes);
            prop_assert_eq!(winners(&ended), winners(&votes));
            // Brute force: before the last branch ended, the winner was still open.
            if let Some((_, before)) = ended.split_last() {
                let left = votes.len() - before.len();
                let leader = winners(before);
                let other = |answer: u8| {
                    let mut rest = before.to_vec();
                    rest.extend(std::iter::repeat_n(Some(answer), left));
                    winners(&rest) != leader
                };
                prop_assert!((0..=4).any(other), "{before:?} was decided");
            }
        }

        /// In any order of ends, the started branches never exceed those needed in any case, so no branch is
        /// running when the vote is decided.
        #[test]
        fn no_branch_is_running_when_the_vote_is_decided(
            votes in prop::collection::vec(prop::option::weighted(0.85, 0_u8..4), 1..9),
            order in prop::collection::vec(0_usize..9, 9),
        ) {
            let mut ended: Vec<Option<u8>> = Vec::new();
            let mut running: Vec<usize> = Vec::new();
            let mut started = 0;
            loop {
                let required = ended.len() + needed(&counts(&ended), votes.len() - ended.len());
                prop_assert!(started <= required, "{started} started, {required} required");
                running.extend(started..required);
                started = required;
                if running.is_empty() {
                    break;
                }
                let next = order[ended.len()] % running.len();
                ended.push(votes[running.remove(next)]);
            }
            let full = winners(&votes);
            prop_assert_eq!(winners(&ended), full);
        }
    }
}
