//! Tie-breaking by cost, tokens and config order.

use crate::names::BranchNames;
use crate::outcome::ParallelLoopOutcome;

/// A ranking of tied branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TieBreak {
    /// Branch indices, winner first.
    pub(crate) ranking: Vec<usize>,
    /// Why the first one wins.
    pub(crate) reason: String,
}

/// Ranks tied branches by cost if all costs are known, then by tokens, then by config order.
pub(crate) fn break_tie(outcomes: &[ParallelLoopOutcome], tied: &[usize]) -> TieBreak {
    let known: Vec<(usize, &ParallelLoopOutcome)> =
        tied.iter().filter_map(|index| Some((*index, outcomes.get(*index)?))).collect();
    let all_priced = known.iter().all(|(_, branch)| branch.cost.is_some());
    let cost = |branch: &ParallelLoopOutcome| branch.cost.filter(|_| all_priced);
    let mut ranked = known;
    ranked.sort_by_key(|(index, branch)| (cost(branch), branch.usage.total(), *index));
    let names = BranchNames::of(outcomes);
    let reason = match &ranked[..] {
        [] => "no branch is left".to_owned(),
        [(only, _)] => format!("{} is the only branch", names.of_branch(*only)),
        [(winner, first), (_, second), ..] => {
            let name = names.of_branch(*winner);
            let (tokens, other_tokens) = (first.usage.total(), second.usage.total());
            match cost(first) {
                Some(amount) if cost(second) != Some(amount) => {
                    format!("{name} is cheaper: {amount}")
                }
                _ if tokens != other_tokens => {
                    format!("{name} has fewer tokens: {tokens}")
                }
                _ => format!("{name} is first in config order"),
            }
        }
    };
    TieBreak { ranking: ranked.iter().map(|(index, _)| *index).collect(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answered;
    use bakeoff_agent::Session;

    #[test]
    fn ties_are_broken_by_cost_then_tokens_then_config_order() {
        let session = Session::named("s");
        let broken = |branches: &[(Option<i64>, u64)], tied: &[usize]| {
            let name = |(cost, tokens): &(Option<i64>, u64)| {
                answered(&session, &format!("m{tokens}"), *cost, *tokens)
            };
            let outcomes: Vec<ParallelLoopOutcome> = branches.iter().map(name).collect();
            let TieBreak { ranking, reason } = break_tie(&outcomes, tied);
            (ranking, reason)
        };
        let is = |ranking: &[usize], reason: &str| (ranking.to_vec(), reason.to_owned());
        let costs = [(Some(9_000), 1), (Some(7_000), 2), (Some(8_000), 3)];
        assert_eq!(broken(&costs, &[0, 1, 2]), is(&[1, 2, 0], "m2 is cheaper: $0.0000070"));
        assert_eq!(broken(&costs, &[0, 2]), is(&[2, 0], "m3 is cheaper: $0.0000080"));
        // With one unknown cost, costs do not decide.
        let unknown = [(Some(1), 5), (None, 4), (Some(9), 6)];
        assert_eq!(broken(&unknown, &[0, 1, 2]), is(&[1, 0, 2], "m4 has fewer tokens: 4"));
        let expensive = [(Some(1), 5), (None, 9)];
        assert_eq!(broken(&expensive, &[0, 1]).0, [0, 1], "an unknown cost is not zero");
        assert_eq!(broken(&unknown, &[0, 2]).0, [0, 2], "the unknown cost is not among them");
        let free = [(Some(0), 8), (Some(0), 7)];
        assert_eq!(broken(&free, &[0, 1]), is(&[1, 0], "m7 has fewer tokens: 7"));
        let same = [(None, 3), (None, 3)];
        assert_eq!(broken(&same, &[1, 0]), is(&[0, 1], "m3.17 is first in config order"));
        assert_eq!(broken(&same, &[1, 9]), is(&[1], "m3.20 is the only branch"));
        assert_eq!(broken(&same, &[]), is(&[], "no branch is left"));
    }
}
