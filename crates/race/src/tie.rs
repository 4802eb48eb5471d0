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
