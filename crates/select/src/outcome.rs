//! Outcome of a search: winner, ranking and Pareto front.

use crate::budget::SearchLimit;
use crate::evidence::Evidence;
use crate::money::model_dollars;
use crate::selector::{Elimination, SelectorChoice};
use crate::space::{Cell, Space};
use crate::winner;
use bakeoff_core::NanoDollars;
use bakeoff_stats::{CaseRate, mean_pass_rate, mean_score, mean_value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// Outcome of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// Name of the selector.
    pub selector: String,
    /// Number of the best combination.
    pub winner: usize,
    /// Confidence in the winner; absent if the selector makes no such claim.
    pub confidence: Option<f64>,
    /// Reason why the search ended.
    pub reason: String,
    /// Limit that ended the search early.
    pub stopped: Option<SearchLimit>,
    /// Evaluated combinations: the winner, then the remaining, then the eliminated ones, each by mean,
    /// and last those with nothing but errors.
    pub ranking: Vec<RankedCombination>,
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
    /// Pareto front of score, cost and latency: numbers of the combinations on it.
    pub front: Vec<usize>,
}

/// One evaluated combination in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedCombination {
    /// Number of the combination.
    pub combo: usize,
    /// Name: `planner=a + solver=b`.
    pub name: String,
    /// Mean of the objective; absent if every cell errored.
    pub mean: Option<f64>,
    /// Its 95 % interval: Wilson's if all values are 0 or 1, else Student's; absent if there are too few
    /// values.
    pub interval: Option<[f64; 2]>,
    /// Mean score; equals `mean` unless cost or latency is weighed.
    pub score: Option<f64>,
    /// Number of cells with a score.
    pub n: usize,
    /// Number of cells that errored.
    pub errors: usize,
    /// Mean cost of a cell; absent if it is unknown.
    #[serde(default, with = "crate::money::optional_dollars")]
    pub cost: Option<NanoDollars>,
    /// Mean latency of a cell in seconds.
    pub latency: f64,
    /// Whether it was eliminated.
    pub eliminated: bool,
    /// Whether its mean cost exceeds the objective's limit.
    #[serde(default, rename = "too_dear")]
    pub over_cost_limit: bool,
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
        SearchOutcome {
            selector: selector.to_owned(),
            winner: choice.combo,
            confidence: choice.confidence,
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

/// Ranks all evaluated combinations by mean; eliminated ones come after the others.
pub fn rank_combinations(
    space: &Space,
    evidence: &Evidence,
    eliminations: &[Elimination],
) -> Vec<RankedCombination> {
    let eliminated: HashSet<usize> = eliminations.iter().map(|gone| gone.combo).collect();
    let evaluated = (0..space.combos()).filter(|combo| evidence.visited(*combo).0 > 0);
    let rank = |combo| RankedCombination::new(space, evidence, combo, eliminated.contains(&combo));
    let mut ranking: Vec<RankedCombination> = evaluated.map(rank).collect();
    let group = |ranked: &RankedCombination| match ranked.mean {
        Some(_) => 2 * usize::from(ranked.over_cost_limit) + usize::from(ranked.eliminated),
        None => 4,
    };
    ranking.sort_by(|one, two| {
        let mean = |ranked: &RankedCombination| ranked.mean.unwrap_or(f64::NEG_INFINITY);
        (group(one).cmp(&group(two)))
            .then_with(|| mean(two).total_cmp(&mean(one)))
            .then_with(|| one.latency.total_cmp(&two.latency))
            .then_with(|| one.cost.cmp(&two.cost))
    });
    ranking
}

impl RankedCombination {
    /// Whether the mean is the mean score, with neither cost nor latency weighed.
    pub fn is_score(&self) -> bool {
        match (self.mean, self.score) {
            (Some(mean), Some(score)) => (mean - score).abs() < 1e-9,
            _ => true,
        }
    }

    fn new(
        space: &Space,
        evidence: &Evidence,
        combo: usize,
        eliminated: bool,
    ) -> RankedCombination {
        let (visited, errors) = evidence.visited(combo);
        let cells = || (0..space.datapoints()).map(move |datapoint| Cell { combo, datapoint });
        let score = |cell: Cell| evidence.observation(cell)?.score;
        // The penalty for exceeding the cost limit is not part of the reported mean.
        let over_cost_limit = !evidence.is_within_cost_limit(combo);
        let value = |cell: Cell| Some(evidence.value(cell)? + f64::from(over_cost_limit));
        let mut cases: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (cell, value) in cells().filter_map(|cell| Some((cell, value(cell)?))) {
            cases.entry(space.case(cell.datapoint)).or_default().push(value);
        }
        let n = visited - errors;
        let mean = |sum: f64| (n > 0).then(|| sum / n as f64);
        RankedCombination {
            combo,
            name: space.describe(combo),
            mean: mean(cells().filter_map(value).sum()),
            interval: interval(&cases),
            score: mean(cells().filter_map(score).sum()),
            n,
            errors,
            cost: evidence.mean_cost(combo),
            latency: evidence.mean_latency(combo).unwrap_or(0.0),
            eliminated,
            over_cost_limit,
        }
    }
}

/// 95 % interval clustered by case; absent if there are too few values.
fn interval(cases: &BTreeMap<usize, Vec<f64>>) -> Option<[f64; 2]> {
    let values = || cases.values().flatten().copied();
    // The interval of a pass rate is narrower than the one of any scores.
    if values().all(|value| value == 0.0 || value == 1.0) {
        let case = |values: &Vec<f64>| CaseRate {
            passed: values.iter().filter(|value| **value == 1.0).count() as u64,
            counted: values.len() as u64,
        };
        let estimate = mean_pass_rate(cases.values().map(case))?;
        return Some([estimate.interval.low, estimate.interval.high]);
    }
    let means: Vec<f64> =
        cases.values().map(|values| values.iter().sum::<f64>() / values.len() as f64).collect();
    let (min, max) =
        values().fold((0.0_f64, 1.0_f64), |(min, max), value| (min.min(value), max.max(value)));
    let estimate = if (min, max) == (0.0, 1.0) {
        mean_score(&means)?
    } else {
        // Student's interval has no width if all scores are equal.
        mean_value(&means).filter(|one| one.interval.high > one.interval.low)?
    };
    // A mean cannot lie outside the range of the scores.
    Some([estimate.interval.low.max(min), estimate.interval.high.min(max)])
}

/// Combinations that no other beats in score, cost and latency at once.
///
/// If a combination errors often, its errors count as zeros: one lucky success must not keep it.
fn pareto_front(evidence: &Evidence, ranking: &[RankedCombination]) -> Vec<usize> {
    let point = |ranked: &RankedCombination| {
        let score = ranked.score?;
        let share = ranked.n as f64 / (ranked.n + ranked.errors) as f64;
        let is_error_prone = winner::is_error_prone(evidence, ranked.combo);
        let score = if is_error_prone { score * share } else { score };
        let cost = ranked.cost.map(|cost| -model_dollars(cost));
        Some((ranked.combo, [Some(score), cost, Some(-ranked.latency)]))
    };
    let points: Vec<(usize, [Option<f64>; 3])> = ranking.iter().filter_map(point).collect();
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
    use crate::{Objective, Observation};

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
    fn repetitions_of_a_case_do_not_narrow_the_interval() {
        let row: Vec<Option<f64>> = (0..40).map(|at| Some(f64::from(at % 4 != 0))).collect();
        let plain = space(1, 40);
        let repeating = plain.clone().with_cases(4);
        let width = |space: &Space| {
            let evidence = filled(space, std::slice::from_ref(&row));
            let ranking = rank_combinations(space, &evidence, &[]);
            let [low, high] = ranking[0].interval.unwrap();
            assert_eq!(ranking[0].mean, Some(0.75));
            high - low
        };
        assert!(width(&repeating) > 2.0 * width(&plain), "{}", width(&repeating));
    }

    #[test]
    fn interval_stays_within_the_range_of_scores() {
        let space = space(2, 3);
        let rows = [vec![Some(0.9), Some(1.0), Some(0.6)], vec![Some(0.5); 3]];
        let ranking = rank_combinations(&space, &filled(&space, &rows), &[]);
        assert_eq!(ranking[0].interval.unwrap()[1], 1.0);
        assert_eq!(ranking[1].interval, Some([0.0, 1.0]), "three equal scores say little");
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
