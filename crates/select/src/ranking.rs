//! Ranking of the evaluated combinations.

use crate::adjusted::adjusted_means;
use crate::evidence::Evidence;
use crate::gap::PairedGap;
use crate::selector::Elimination;
use crate::space::{Cell, Space};
use bakeoff_core::NanoDollars;
use bakeoff_stats::{CaseRate, mean_pass_rate, mean_score};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// One evaluated combination in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedCombination {
    /// Number of the combination.
    pub combo: usize,
    /// Name: `planner=a + solver=b`.
    pub name: String,
    /// Mean of the objective; absent if every cell errored.
    pub mean: Option<f64>,
    /// Its 95 % interval: Clopper and Pearson's if all values are 0 or 1, else the betting interval of bounded values.
    pub interval: Option<[f64; 2]>,
    /// Mean score; equals `mean` unless cost or latency is weighed.
    pub score: Option<f64>,
    /// Expected mean of the objective over all cases: a model of the shared cases makes combinations comparable that
    /// were evaluated on different ones. Equals `mean` if all cases were evaluated.
    #[serde(default)]
    pub adjusted: Option<f64>,
    /// The same for the score.
    #[serde(default)]
    pub adjusted_score: Option<f64>,
    /// Number of cells with a score.
    pub n: usize,
    /// Comparison with the winner, case by case; absent for the winner and without shared cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<PairedGap>,
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

/// Ranks all evaluated combinations by their adjusted mean; eliminated ones come after the others.
pub fn rank_combinations(
    space: &Space,
    evidence: &Evidence,
    eliminations: &[Elimination],
) -> Vec<RankedCombination> {
    let eliminated: HashSet<usize> = eliminations.iter().map(|gone| gone.combo).collect();
    let evaluated = (0..space.combos()).filter(|combo| evidence.visited(*combo).0 > 0);
    let adjusted = adjusted_means(space, |cell| mean_part(evidence, cell));
    let scores = match evidence.is_weighted() {
        true => adjusted_means(space, |cell| evidence.observation(cell)?.score),
        false => adjusted.clone(),
    };
    let rank = |combo: usize| RankedCombination {
        adjusted: adjusted[combo],
        adjusted_score: scores[combo],
        eliminated: eliminated.contains(&combo),
        ..RankedCombination::new(space, evidence, combo)
    };
    let mut ranking: Vec<RankedCombination> = evaluated.map(rank).collect();
    let group = |ranked: &RankedCombination| match ranked.mean {
        Some(_) => 2 * usize::from(ranked.over_cost_limit) + usize::from(ranked.eliminated),
        None => 4,
    };
    ranking.sort_by(|one, two| {
        let mean = |ranked: &RankedCombination| ranked.adjusted.unwrap_or(f64::NEG_INFINITY);
        (group(one).cmp(&group(two)))
            .then_with(|| mean(two).total_cmp(&mean(one)))
            .then_with(|| one.cost.cmp(&two.cost))
            .then_with(|| one.combo.cmp(&two.combo))
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

    /// Whether a model contributes to the adjusted mean, because not all cells have a value.
    pub fn is_adjusted(&self) -> bool {
        match (self.mean, self.adjusted) {
            (Some(mean), Some(adjusted)) => (mean - adjusted).abs() > 1e-9,
            _ => false,
        }
    }

    fn new(space: &Space, evidence: &Evidence, combo: usize) -> RankedCombination {
        let (visited, errors) = evidence.visited(combo);
        let cells = || (0..space.datapoints()).map(move |datapoint| Cell { combo, datapoint });
        let score = |cell: Cell| evidence.observation(cell)?.score;
        let value = |cell: Cell| mean_part(evidence, cell);
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
            interval: interval(&cases, evidence.value_range()),
            score: mean(cells().filter_map(score).sum()),
            adjusted: None,
            adjusted_score: None,
            n,
            gap: None,
            errors,
            cost: evidence.mean_cost(combo),
            latency: evidence.mean_latency(combo).unwrap_or(0.0),
            eliminated: false,
            over_cost_limit: !evidence.is_within_cost_limit(combo),
        }
    }
}

/// Value of a cell without the penalty for exceeding the cost limit, which is not part of reported means.
pub(crate) fn mean_part(evidence: &Evidence, cell: Cell) -> Option<f64> {
    let penalty = f64::from(!evidence.is_within_cost_limit(cell.combo));
    Some(evidence.value(cell)? + penalty)
}

/// 95 % interval clustered by case; absent without values.
fn interval(cases: &BTreeMap<usize, Vec<f64>>, (low, high): (f64, f64)) -> Option<[f64; 2]> {
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
    bounded_interval(&means, (low, high))
}

/// Betting interval of the mean of values in a range, which has a width even if all values are equal.
pub(crate) fn bounded_interval(values: &[f64], (low, high): (f64, f64)) -> Option<[f64; 2]> {
    let (low, high) =
        values.iter().fold((low, high), |(low, high), value| (low.min(*value), high.max(*value)));
    let width = high - low;
    let shares: Vec<f64> = values.iter().map(|value| (value - low) / width).collect();
    let found = mean_score(&shares)?.interval;
    Some([low + width * found.low, low + width * found.high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{filled, space};

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
}
