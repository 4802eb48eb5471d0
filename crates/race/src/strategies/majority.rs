//! What most branches say.

use super::eligible;
use super::extraction::Extraction;
use crate::judge::{counted, without_a_choice};
use crate::names::Names;
use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
use crate::tie::break_tie;
use bakeoff_agent::{AgentMessage, EventSender};
use bakeoff_core::Usage;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// The answer that most branches give (self-consistency; Wang et al., arXiv 2203.11171); of the
/// branches that give it, the first of the configs.
///
/// At any time only so many branches are started as are needed whatever they say, so that no call is
/// wasted and the result is that of the full vote. A branch from whose answer nothing can be
/// extracted does not vote. Equally many votes are a tie, which the answer of the cheapest branch
/// wins.
#[derive(Debug, Clone, Default)]
pub struct MajorityEvaluation {
    /// What votes: the part of an answer that is compared.
    pub extraction: Extraction,
}

impl MajorityEvaluation {
    /// A vote over parts of the answers.
    pub fn new(extraction: Extraction) -> MajorityEvaluation {
        MajorityEvaluation { extraction }
    }

    /// What a branch votes for.
    fn vote(&self, branch: &ParallelLoopOutcome) -> Option<String> {
        branch.is_eligible().then(|| self.extraction.of(&branch.answer())).flatten()
    }
}

/// How many more of the branches that have not ended are needed, whatever they say: the fewest that
/// can put the leader beyond reach.
///
/// With so many votes ahead and so many branches to come, the lead is safe when it is larger than
/// what is to come. If the next `k` all voted for the leader, it would be safe when
/// `lead + k > left - k`.
fn needed(votes: &[usize], left: usize) -> usize {
    let mut votes = votes.to_vec();
    votes.sort_by_key(|count| Reverse(*count));
    let place = |index: usize| votes.get(index).copied().unwrap_or_default();
    let lead = place(0) - place(1);
    let needed = left.checked_sub(lead).map_or(0, |behind| behind / 2 + 1);
    needed.min(left)
}

#[async_trait::async_trait]
impl EvaluationStrategy for MajorityEvaluation {
    fn name(&self) -> &str {
        "majority"
    }

    fn wanted(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> usize {
        let mut votes: BTreeMap<String, usize> = BTreeMap::new();
        for vote in ended.iter().filter_map(|branch| self.vote(branch)) {
            *votes.entry(vote).or_default() += 1;
        }
        let votes: Vec<usize> = votes.into_values().collect();
        let needed = needed(&votes, branches.saturating_sub(ended.len()));
        // Those that ended in an earlier session may stand anywhere among the others.
        let has_ended = |place: &usize| ended.iter().any(|branch| branch.config_index == *place);
        let last = (0..branches).filter(|place| !has_ended(place)).take(needed).last();
        last.map_or(0, |place| place + 1)
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
        let places: Vec<usize> = eligible(outcomes).map(|(place, _)| place).collect();
        if let Some(decision) = without_a_choice(&places) {
            return decision;
        }
        let mut camps: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, branch) in eligible(outcomes) {
            if let Some(vote) = self.vote(branch) {
                camps.entry(vote).or_default().push(place);
            }
        }
        let votes: usize = camps.values().map(Vec::len).sum();
        let most = camps.values().map(Vec::len).max().unwrap_or_default();
        let silent = places.len() - votes;
        let mut camps: Vec<(String, Vec<usize>)> = camps.into_iter().collect();
        // The larger first, and of equals the one with the first config.
        camps.sort_by_key(|(_, members)| (Reverse(members.len()), members.first().copied()));
        let mut reasons: Vec<String> = camps
            .iter()
            .map(|(answer, members)| {
                let votes = counted(u32::try_from(members.len()).unwrap_or(u32::MAX), "vote");
                format!("{votes} for {}", shown(answer))
            })
            .collect();
        if silent > 0 {
            reasons.push(format!("no answer could be read from {silent}"));
        }
        let leading: Vec<usize> = camps
            .iter()
            .take_while(|(_, members)| members.len() == most)
            .flat_map(|(_, m)| m.clone())
            .collect();
        let is_tie = camps.get(1).is_some_and(|(_, members)| members.len() == most);
        let (kind, first, fallback) = match (camps.first(), is_tie) {
            (None, _) => {
                let broken = break_tie(outcomes, &places);
                (VerdictKind::Unparseable, broken.ranking.first().copied(), Some(broken.words))
            }
            (Some(_), true) => {
                let broken = break_tie(outcomes, &leading);
                let cheapest = broken.ranking.first().copied();
                // The answer of the cheapest wins, and so does the first who gave it.
                let camp = camps.iter().find(|(_, m)| cheapest.is_some_and(|c| m.contains(&c)));
                let winner = camp.and_then(|(_, members)| members.first().copied());
                (VerdictKind::Tie, winner, Some(broken.words))
            }
            (Some((_, members)), false) => (VerdictKind::Decided, members.first().copied(), None),
        };
        if let (Some(words), Some(winner)) = (&fallback, first) {
            let name = Names::of(outcomes).of_place(winner);
            reasons.push(format!("{words}; so {name} wins"));
        }
        let ranking: Vec<usize> = first
            .into_iter()
            .chain(camps.iter().flat_map(|(_, members)| members.iter().copied()))
            .collect();
        EvaluationDecision {
            selected: first,
            verdict: Verdict { ranking: distinct(ranking), reasons, fallback, ..Verdict::of(kind) },
        }
    }
}

/// Each place once, where it stands first.
fn distinct(places: Vec<usize>) -> Vec<usize> {
    let mut seen = Vec::new();
    for place in places {
        if !seen.contains(&place) {
            seen.push(place);
        }
    }
    seen
}

/// An answer in quotes, not too much of it.
fn shown(answer: &str) -> String {
    const MOST: usize = 60;
    match answer.char_indices().nth(MOST) {
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

    /// The votes that a race collects when each branch, in its turn, says what is written here, and
    /// branches end in the order in which they start.
    fn raced(says: &[Option<u8>]) -> Vec<Option<u8>> {
        let mut ended: Vec<Option<u8>> = Vec::new();
        loop {
            let wanted = ended.len() + needed(&counts(&ended), says.len() - ended.len());
            if wanted <= ended.len() {
                return ended;
            }
            ended.push(says[ended.len()]);
        }
    }

    fn counts(says: &[Option<u8>]) -> Vec<usize> {
        (0..=u8::MAX)
            .map(|answer| says.iter().filter(|said| **said == Some(answer)).count())
            .filter(|count| *count > 0)
            .collect()
    }

    fn winners(says: &[Option<u8>]) -> Vec<u8> {
        let votes = |answer: &u8| says.iter().filter(|said| **said == Some(*answer)).count();
        let most = (0..=u8::MAX).map(|answer| votes(&answer)).max().unwrap_or_default();
        (0..=u8::MAX).filter(|answer| most > 0 && votes(answer) == most).collect()
    }

    #[test]
    fn as_many_are_started_as_are_needed_in_any_case() {
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
    fn branches_that_ended_in_an_earlier_session_are_not_started_again() {
        let session = Session::named("s");
        let ended_at = |place: usize| {
            let branch = answered(&session, "m", None, 1);
            ParallelLoopOutcome { config_index: place, ..branch }
        };
        let wanted = |places: &[usize]| {
            let ended: Vec<ParallelLoopOutcome> = places.iter().map(|p| ended_at(*p)).collect();
            let ended: Vec<&ParallelLoopOutcome> = ended.iter().collect();
            MajorityEvaluation::default().wanted(&ended, 5)
        };
        assert_eq!(wanted(&[]), 3);
        assert_eq!(wanted(&[4]), 2, "the first two");
        assert_eq!(wanted(&[1]), 3, "the first and the third");
        assert_eq!(wanted(&[0, 4]), 2, "the second");
        assert_eq!(wanted(&[0, 2, 4]), 0, "all agree");
    }

    proptest! {
        /// The vote stops at the first moment at which nothing that may come can change it, and
        /// never starts a branch that some continuation could do without.
        #[test]
        fn the_decision_is_that_of_the_full_vote(
            says in prop::collection::vec(prop::option::weighted(0.85, 0_u8..4), 0..9),
        ) {
            let ended = raced(&says);
            prop_assert_eq!(winners(&ended), winners(&says));
            // Brute force: before the last one ended, something could still have changed it.
            if let Some((_, before)) = ended.split_last() {
                let left = says.len() - before.len();
                let leader = winners(before);
                let other = |answer: u8| {
                    let mut rest = before.to_vec();
                    rest.extend(std::iter::repeat_n(Some(answer), left));
                    winners(&rest) != leader
                };
                prop_assert!((0..=4).any(other), "{before:?} was decided");
            }
        }

        /// Whatever ends first: what was started is never more than what is needed in any case, so
        /// nothing is under way when the vote is decided.
        #[test]
        fn nothing_is_under_way_when_it_is_decided(
            says in prop::collection::vec(prop::option::weighted(0.85, 0_u8..4), 1..9),
            order in prop::collection::vec(0_usize..9, 9),
        ) {
            let mut ended: Vec<Option<u8>> = Vec::new();
            let mut running: Vec<usize> = Vec::new();
            let mut started = 0;
            loop {
                let wanted = ended.len() + needed(&counts(&ended), says.len() - ended.len());
                prop_assert!(started <= wanted, "{started} are started and {wanted} needed");
                running.extend(started..wanted);
                started = wanted;
                if running.is_empty() {
                    break;
                }
                let next = order[ended.len()] % running.len();
                ended.push(says[running.remove(next)]);
            }
            let full = winners(&says);
            prop_assert_eq!(winners(&ended), full);
        }
    }
}
