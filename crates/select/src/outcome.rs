//! Outcome of a search: winner, ranking and Pareto front.

use crate::budget::SearchLimit;
use crate::evidence::Evidence;
use crate::gap::{PairedGap, is_well_measured};
use crate::money::model_dollars;
use crate::ranking::{RankedCombination, rank_combinations};
use crate::selector::{Elimination, SelectorChoice};
use crate::space::Space;
use crate::winner;
use bakeoff_core::NanoDollars;
use serde::{Deserialize, Serialize};

/// Outcome of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// Name of the selector.
    pub selector: String,
    /// Number of the best combination.
    pub winner: usize,
    /// Confidence in the winner; absent if the selector makes no such claim.
    pub confidence: Option<f64>,
    /// What holds with this confidence; absent if the selector makes no such claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Reason why the search ended.
    pub reason: String,
    /// Limit that ended the search early.
    pub stopped: Option<SearchLimit>,
    /// Evaluated combinations: the winner, then the remaining, then the eliminated ones, each by adjusted mean,
    /// and last those with nothing but errors.
    pub ranking: Vec<RankedCombination>,
    /// Combinations that were evaluated on at least half as many cells as the winner, without a difference that the
    /// shared cases could distinguish from chance: their numbers, in the order of the ranking.
    #[serde(default)]
    pub equivalents: Vec<usize>,
    /// The first combination of the ranking that is worse than the winner by more than chance explains.
    #[serde(default)]
    pub next: Option<usize>,
    /// Eliminations, in order.
    pub eliminations: Vec<Elimination>,
    /// Number of evaluated cells, errors included.
    pub cells: usize,
    /// Number of cells of the space.
    pub cells_of: usize,
    /// Cost of the search, as far as known; absent if nothing is known.
    #[serde(default, with = "crate::money::optional_dollars")]
    pub spent: Option<NanoDollars>,
    /// Number of evaluated cells whose cost is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_costs: usize,
    /// Cost avoided because equal calls shared a response.
    #[serde(default, with = "crate::money::dollars")]
    pub saved: NanoDollars,
    /// Estimated cost at full price of the cells that were not evaluated; absent if a cost is unknown.
    #[serde(default, with = "crate::money::optional_dollars")]
    pub avoided: Option<NanoDollars>,
    /// Pareto front of adjusted score, cost and latency, among the combinations that were evaluated on at least half as
    /// many cells as the winner: their numbers.
    pub front: Vec<usize>,
}

impl SearchOutcome {
    pub(crate) fn new(
        space: &Space,
        evidence: &Evidence,
        selector: &str,
        choice: SelectorChoice,
        stopped: Option<SearchLimit>,
        eliminations: &[Elimination],
    ) -> SearchOutcome {
        let mut ranking = rank_combinations(space, evidence, eliminations);
        // The winner comes first even if another mean is higher.
        ranking.sort_by_key(|ranked| ranked.combo != choice.combo);
        if let Some((winner, others)) = ranking.split_first_mut() {
            for other in others.iter_mut() {
                other.gap = PairedGap::new(space, evidence, winner.combo, other.combo);
            }
        }
        let compared: Vec<&RankedCombination> = match ranking.split_first() {
            Some((winner, others)) => {
                others.iter().filter(|other| is_well_measured(other, winner)).collect()
            }
            None => Vec::new(),
        };
        let is_worse = |other: &RankedCombination| {
            other.gap.is_some_and(|gap| gap.difference > 0.0 && gap.is_distinguishable())
        };
        let is_equivalent = |other: &RankedCombination| {
            other.gap.is_some_and(|gap| !gap.is_distinguishable()) && !other.over_cost_limit
        };
        let numbers = |chosen: &dyn Fn(&RankedCombination) -> bool| {
            let chosen = compared.iter().filter(|other| chosen(other));
            chosen.map(|other| other.combo).collect::<Vec<usize>>()
        };
        SearchOutcome {
            equivalents: numbers(&is_equivalent),
            next: numbers(&is_worse).first().copied(),
            avoided: avoided_cost(space, evidence),
            selector: selector.to_owned(),
            winner: choice.combo,
            confidence: choice.confidence,
            claim: None,
            reason: choice.reason,
            stopped,
            front: pareto_front(evidence, &ranking),
            ranking,
            eliminations: eliminations.to_vec(),
            cells: evidence.cells(),
            cells_of: space.cells(),
            spent: evidence.spent(),
            unknown_costs: evidence.unknown_costs(),
            saved: evidence.saved(),
        }
    }

    /// Returns the entry of a combination in the ranking.
    pub fn ranked(&self, combo: usize) -> Option<&RankedCombination> {
        self.ranking.iter().find(|ranked| ranked.combo == combo)
    }

    /// Adds the cost of trials that are not among the evaluated cells.
    pub fn add_cost(&mut self, cost: NanoDollars) {
        if !cost.is_zero() {
            self.spent = Some(self.spent.unwrap_or_default().saturating_add(cost));
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Estimated cost at full price of the cells that were not evaluated. A combination without cells costs as much as the
/// others on average. `None` if a cost is unknown.
fn avoided_cost(space: &Space, evidence: &Evidence) -> Option<NanoDollars> {
    let combos = || (0..space.combos()).map(|combo| (combo, evidence.visited(combo).0));
    let evaluated = combos().filter(|(_, visited)| *visited > 0);
    let costs: Vec<i64> =
        evaluated.map(|(combo, _)| Some(evidence.mean_cost(combo)?.0)).collect::<Option<_>>()?;
    let typical = costs.iter().sum::<i64>() / i64::try_from(costs.len()).ok().filter(|n| *n > 0)?;
    let left = combos().map(|(combo, visited)| {
        let cost = evidence.mean_cost(combo).map_or(typical, |cost| cost.0);
        cost.saturating_mul((space.datapoints() - visited) as i64)
    });
    (evidence.unknown_costs() == 0).then(|| NanoDollars(left.fold(0, i64::saturating_add)))
}

/// Combinations that no other beats in score, cost and latency at once.
///
/// If a combination errors often, its errors count as zeros: one lucky success must not keep it.
fn pareto_front(evidence: &Evidence, ranking: &[RankedCombination]) -> Vec<usize> {
    let well_measured = ranking.iter().filter(|ranked| is_well_measured(ranked, &ranking[0]));
    let point = |ranked: &RankedCombination| {
        let score = ranked.adjusted_score?;
        let share = ranked.n as f64 / (ranked.n + ranked.errors) as f64;
        let is_error_prone = winner::is_error_prone(evidence, ranked.combo);
        let score = if is_error_prone { score * share } else { score };
        let cost = ranked.cost.map(|cost| -model_dollars(cost));
        Some((ranked.combo, [Some(score), cost, Some(-ranked.latency)]))
    };
    let points: Vec<(usize, [Option<f64>; 3])> = well_measured.filter_map(point).collect();
    let beats = |one: &[Option<f64>; 3], two: &[Option<f64>; 3]| {
        let pairs = || one.iter().zip(two);
        // A known cost is neither less nor more than an unknown one.
        let is_comparable = pairs().all(|(one, two)| one.is_some() == two.is_some());
        is_comparable && pairs().all(|(one, two)| one >= two) && pairs().any(|(one, two)| one > two)
    };
    let kept = points.iter().filter(|(_, own)| !points.iter().any(|(_, other)| beats(other, own)));
    let mut front: Vec<usize> = kept.map(|(combo, _)| *combo).collect();
    front.sort_unstable();
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dollars, filled, space};
    use crate::{Cell, Objective, Observation};

    fn choice(combo: usize) -> SelectorChoice {
        SelectorChoice { combo, confidence: None, reason: String::new() }
    }

    #[test]
    fn ranking_lists_better_combinations_first_and_eliminated_ones_last() {
        let space = space(5, 4);
        let rows = [
            vec![Some(0.25), Some(0.75)],
            vec![Some(1.0), Some(1.0)],
            vec![None, None],
            vec![Some(0.0), Some(1.0), None],
            vec![],
        ];
        let evidence = filled(&space, &rows);
        let gone = Elimination { combo: 1, after_cells: 4, by: Some(0) };
        let outcome = SearchOutcome::new(&space, &evidence, "some", choice(3), None, &[gone]);
        let order: Vec<usize> = outcome.ranking.iter().map(|ranked| ranked.combo).collect();
        assert_eq!(order, [3, 0, 1, 2]);
        let third = &outcome.ranking[0];
        assert_eq!((third.n, third.errors, third.mean), (2, 1, Some(0.5)));
        assert_eq!(outcome.ranking[3].mean, None);
        // Clopper and Pearson's interval for 2 of 2: 0.025^(1/2).
        let [low, high] = outcome.ranking[2].interval.unwrap();
        assert!((low - 0.158_114).abs() < 1e-5 && (high - 1.0).abs() < 1e-9, "{low} {high}");
        assert_eq!((outcome.cells, outcome.cells_of, outcome.spent), (9, 20, Some(dollars(9.0))));
        let text = serde_json::to_string(&outcome).unwrap();
        let read: SearchOutcome = serde_json::from_str(&text).unwrap();
        assert_eq!((read.winner, read.ranking[2].combo, read.cells), (3, 1, 9));
    }

    #[test]
    fn json_keeps_field_names_and_amounts_in_dollars() {
        let space = space(1, 1);
        let evidence = filled(&space, &[vec![Some(1.0)]]);
        let outcome = SearchOutcome::new(&space, &evidence, "some", choice(0), None, &[]);
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!((&json["spent"], &json["saved"]), (&1.0.into(), &0.0.into()));
        let ranked = &json["ranking"][0];
        assert_eq!((&ranked["cost"], &ranked["too_dear"]), (&1.0.into(), &false.into()));
        // A file of an older version, whose sums are not rounded to nano-dollars.
        let mut old = json;
        old["spent"] = 0.300_000_000_000_000_04.into();
        old.as_object_mut().unwrap().remove("saved");
        let read: SearchOutcome = serde_json::from_value(old).unwrap();
        assert_eq!((read.spent, read.saved), (Some(dollars(0.3)), NanoDollars(0)));
    }

    #[test]
    fn front_holds_combinations_that_no_other_beats() {
        let space = space(5, 1);
        let mut evidence = Evidence::new(&space, Objective::default());
        // Best; cheapest; worse and more expensive than the first; fastest; an error.
        let cells = [(0.9, 3.0, 3.0), (0.5, 1.0, 3.0), (0.8, 4.0, 3.0), (0.1, 5.0, 1.0)];
        for (combo, (score, cost, latency)) in cells.into_iter().enumerate() {
            let cost = dollars(cost);
            let observation =
                Observation { score: Some(score), cost: Some(cost), paid: cost, latency };
            evidence.add(Cell { combo, datapoint: 0 }, observation);
        }
        evidence.add(Cell { combo: 4, datapoint: 0 }, Observation::default());
        let outcome = SearchOutcome::new(&space, &evidence, "some", choice(0), None, &[]);
        assert_eq!(outcome.front, [0, 1, 3]);
    }

    #[test]
    fn unknown_costs_are_not_cheap() {
        let space = space(3, 1);
        let mut evidence = Evidence::new(&space, Objective::default());
        let cells = [(0.9, Some(3.0), 3.0), (0.5, None, 4.0), (0.4, None, 5.0)];
        for (combo, (score, cost, latency)) in cells.into_iter().enumerate() {
            let cost = cost.map(dollars);
            let paid = cost.unwrap_or_default();
            let observation = Observation { score: Some(score), cost, paid, latency };
            evidence.add(Cell { combo, datapoint: 0 }, observation);
        }
        let outcome = SearchOutcome::new(&space, &evidence, "some", choice(0), None, &[]);
        assert_eq!(
            outcome.front,
            [0, 1],
            "the third is worse than the second in all known respects"
        );
        assert_eq!((outcome.ranking[1].cost, outcome.unknown_costs), (None, 2));
        assert_eq!(outcome.spent, Some(dollars(3.0)));
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!((&json["ranking"][1]["cost"], &json["unknown_costs"]), (&().into(), &2.into()));
    }
}
