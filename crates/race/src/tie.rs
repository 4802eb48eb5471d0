//! Who wins when those who should decide cannot.

use crate::names::Names;
use crate::outcome::ParallelLoopOutcome;

/// Equals in an order, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TieBreak {
    /// The winner first.
    pub(crate) ranking: Vec<usize>,
    /// Why the winner wins.
    pub(crate) words: String,
}

/// Of branches that nobody can tell apart, the cheaper wins; where a price is unknown or prices are
/// equal, the one with fewer tokens; and then the first of the configs.
pub(crate) fn break_tie(outcomes: &[ParallelLoopOutcome], tied: &[usize]) -> TieBreak {
    let known: Vec<(usize, &ParallelLoopOutcome)> =
        tied.iter().filter_map(|place| Some((*place, outcomes.get(*place)?))).collect();
    let all_priced = known.iter().all(|(_, branch)| branch.cost.is_some());
    let cost = |branch: &ParallelLoopOutcome| branch.cost.filter(|_| all_priced);
    let mut ranked = known;
    ranked.sort_by_key(|(place, branch)| (cost(branch), branch.usage.total(), *place));
    let names = Names::of(outcomes);
    let words = match &ranked[..] {
        [] => "nobody is left".to_owned(),
        [(only, _)] => format!("{} is the only one", names.of_place(*only)),
        [(winner, first), (_, second), ..] => {
            let name = names.of_place(*winner);
            let (tokens, other_tokens) = (first.usage.total(), second.usage.total());
            match cost(first) {
                Some(amount) if cost(second) != Some(amount) => {
                    format!("{name} is cheaper: {amount}")
                }
                _ if tokens != other_tokens => {
                    format!("{name} has fewer tokens: {tokens}")
                }
                _ => format!("{name} is the first of equals"),
            }
        }
    };
    TieBreak { ranking: ranked.iter().map(|(place, _)| *place).collect(), words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answered;
    use bakeoff_agent::Session;

    #[test]
    fn the_cheaper_then_fewer_tokens_then_the_first() {
        let session = Session::named("s");
        let broken = |branches: &[(Option<i64>, u64)], tied: &[usize]| {
            let name = |(cost, tokens): &(Option<i64>, u64)| {
                answered(&session, &format!("m{tokens}"), *cost, *tokens)
            };
            let outcomes: Vec<ParallelLoopOutcome> = branches.iter().map(name).collect();
            let TieBreak { ranking, words } = break_tie(&outcomes, tied);
            (ranking, words)
        };
        let is = |ranking: &[usize], words: &str| (ranking.to_vec(), words.to_owned());
        let costs = [(Some(9_000), 1), (Some(7_000), 2), (Some(8_000), 3)];
        assert_eq!(broken(&costs, &[0, 1, 2]), is(&[1, 2, 0], "m2 is cheaper: $0.0000070"));
        assert_eq!(broken(&costs, &[0, 2]), is(&[2, 0], "m3 is cheaper: $0.0000080"));
        // One unknown price, and prices say nothing about any of them.
        let unknown = [(Some(1), 5), (None, 4), (Some(9), 6)];
        assert_eq!(broken(&unknown, &[0, 1, 2]), is(&[1, 0, 2], "m4 has fewer tokens: 4"));
        let dear = [(Some(1), 5), (None, 9)];
        assert_eq!(broken(&dear, &[0, 1]).0, [0, 1], "what is unknown is not free");
        assert_eq!(broken(&unknown, &[0, 2]).0, [0, 2], "unless it is not among them");
        let free = [(Some(0), 8), (Some(0), 7)];
        assert_eq!(broken(&free, &[0, 1]), is(&[1, 0], "m7 has fewer tokens: 7"));
        let same = [(None, 3), (None, 3)];
        assert_eq!(broken(&same, &[1, 0]), is(&[0, 1], "m3.17 is the first of equals"));
        assert_eq!(broken(&same, &[1, 9]), is(&[1], "m3.20 is the only one"));
        assert_eq!(broken(&same, &[]), is(&[], "nobody is left"));
    }
}
