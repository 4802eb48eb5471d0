//! What a search came to.

use crate::budget::Limit;
use crate::evidence::Evidence;
use crate::selector::{Choice, Elimination};
use crate::space::{Cell, Space};
use crate::winner;
use bakeoff_stats::{CaseRate, mean_pass_rate, mean_score};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Who searched.
    pub selector: String,
    /// The best combination, by number.
    pub winner: usize,
    /// How sure that is; absent where the selector makes no such claim.
    pub confidence: Option<f64>,
    /// Why the search ended.
    pub reason: String,
    /// The limit that ended it early.
    pub stopped: Option<Limit>,
    /// Combinations that were tried: the winner, those that were left, those that were given up, and
    /// last those of which nothing is known but errors; the better first.
    pub ranking: Vec<Ranked>,
    /// What was given up, in order.
    pub eliminations: Vec<Elimination>,
    /// Cells that were evaluated, errors among them.
    pub cells: usize,
    /// Cells that there are.
    pub cells_of: usize,
    /// Dollars that the search took.
    pub spent: f64,
    /// Dollars that it would have taken more if equal calls had not shared an answer.
    #[serde(default)]
    pub saved: f64,
    /// Combinations that no other beats in score, cost and latency at once, by number.
    pub front: Vec<usize>,
}

/// One combination that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// By number.
    pub combo: usize,
    /// In words.
    pub name: String,
    /// Mean of what was to be made large; absent when everything errored.
    pub mean: Option<f64>,
    /// Its 95 % interval: Wilson's where all values are 0 or 1, else Student's; absent when there are
    /// too few values for one.
    pub interval: Option<[f64; 2]>,
    /// Mean score, which is `mean` unless money or time count.
    pub score: Option<f64>,
    /// Cells with a score.
    pub n: usize,
    /// Cells that errored.
    pub errors: usize,
    /// Mean dollars of a cell.
    pub cost: f64,
    /// Mean seconds of a cell.
    pub latency: f64,
    /// Whether it was given up.
    pub eliminated: bool,
    /// Whether it costs more than it may.
    #[serde(default)]
    pub too_dear: bool,
}

impl Selection {
    pub(crate) fn new(
        space: &Space,
        evidence: &Evidence,
        selector: &str,
        choice: Choice,
        stopped: Option<Limit>,
        eliminations: &[Elimination],
    ) -> Selection {
        let mut ranking = ranking(space, evidence, eliminations);
        // The winner comes first, whatever the means say.
        ranking.sort_by_key(|ranked| ranked.combo != choice.combo);
        Selection {
            selector: selector.to_owned(),
            winner: choice.combo,
            confidence: choice.confidence,
            reason: choice.reason,
            stopped,
            front: front(evidence, &ranking),
            ranking,
            eliminations: eliminations.to_vec(),
            cells: evidence.cells(),
            cells_of: space.cells(),
            spent: evidence.spent(),
            saved: evidence.saved(),
        }
    }
}

/// All combinations that were tried, the best first and who was given up last.
pub fn ranking(space: &Space, evidence: &Evidence, eliminations: &[Elimination]) -> Vec<Ranked> {
    let gone: HashSet<usize> = eliminations.iter().map(|gone| gone.combo).collect();
    let tried = (0..space.combos()).filter(|combo| evidence.visited(*combo).0 > 0);
    let mut ranking: Vec<Ranked> =
        tried.map(|combo| Ranked::new(space, evidence, combo, gone.contains(&combo))).collect();
    let group = |ranked: &Ranked| match ranked.mean {
        Some(_) => 2 * usize::from(ranked.too_dear) + usize::from(ranked.eliminated),
        None => 4,
    };
    ranking.sort_by(|one, two| {
        let mean = |ranked: &Ranked| ranked.mean.unwrap_or(f64::NEG_INFINITY);
        (group(one).cmp(&group(two)))
            .then_with(|| mean(two).total_cmp(&mean(one)))
            .then_with(|| one.latency.total_cmp(&two.latency))
            .then_with(|| one.cost.total_cmp(&two.cost))
    });
    ranking
}

impl Ranked {
    /// Whether the mean is that of the scores: neither money nor time count.
    pub fn is_score(&self) -> bool {
        match (self.mean, self.score) {
            (Some(mean), Some(score)) => (mean - score).abs() < 1e-9,
            _ => true,
        }
    }

    fn new(space: &Space, evidence: &Evidence, combo: usize, eliminated: bool) -> Ranked {
        let (visited, errors) = evidence.visited(combo);
        let cells = || (0..space.datapoints()).map(move |datapoint| Cell { combo, datapoint });
        let score = |cell: Cell| evidence.observation(cell)?.score;
        // Who is too dear is so by its price, not by its score.
        let too_dear = !evidence.is_affordable(combo);
        let value = |cell: Cell| Some(evidence.value(cell)? + f64::from(too_dear));
        let mut cases: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (cell, value) in cells().filter_map(|cell| Some((cell, value(cell)?))) {
            cases.entry(space.case(cell.datapoint)).or_default().push(value);
        }
        let n = visited - errors;
        let mean = |sum: f64| (n > 0).then(|| sum / n as f64);
        Ranked {
            combo,
            name: space.describe(combo),
            mean: mean(cells().filter_map(value).sum()),
            interval: interval(&cases),
            score: mean(cells().filter_map(score).sum()),
            n,
            errors,
            cost: evidence.mean_cost(combo).unwrap_or(0.0),
            latency: evidence.mean_latency(combo).unwrap_or(0.0),
            eliminated,
            too_dear,
        }
    }
}

/// A 95 % interval by cases; absent where too little is known for one.
fn interval(cases: &BTreeMap<usize, Vec<f64>>) -> Option<[f64; 2]> {
    let values = || cases.values().flatten().copied();
    // Student's interval has no width when all scores are equal, as they often are when they are
    // right or wrong.
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
    let (least, most) = values()
        .fold((0.0_f64, 1.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    let estimate = mean_score(&means).filter(|one| one.interval.high > one.interval.low)?;
    // No mean can be where no score can.
    Some([estimate.interval.low.max(least), estimate.interval.high.min(most)])
}

/// Whom no other beats. The score of whoever errs often counts its errors as zeros: it must not be
/// kept by one lucky success.
fn front(evidence: &Evidence, ranking: &[Ranked]) -> Vec<usize> {
    let point = |ranked: &Ranked| {
        let score = ranked.score?;
        let share = ranked.n as f64 / (ranked.n + ranked.errors) as f64;
        let score = if winner::errs(evidence, ranked.combo) { score * share } else { score };
        Some((ranked.combo, [score, -ranked.cost, -ranked.latency]))
    };
    let points: Vec<(usize, [f64; 3])> = ranking.iter().filter_map(point).collect();
    let beats = |one: &[f64; 3], two: &[f64; 3]| {
        let pairs = || one.iter().zip(two);
        pairs().all(|(one, two)| one >= two) && pairs().any(|(one, two)| one > two)
    };
    let kept = points.iter().filter(|(_, own)| !points.iter().any(|(_, other)| beats(other, own)));
    let mut front: Vec<usize> = kept.map(|(combo, _)| *combo).collect();
    front.sort_unstable();
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{filled, space};
    use crate::{Objective, Observation};

    fn choice(combo: usize) -> Choice {
        Choice { combo, confidence: None, reason: String::new() }
    }

    #[test]
    fn the_better_first_and_who_was_given_up_last() {
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
        let selection = Selection::new(&space, &evidence, "some", choice(3), None, &[gone]);
        let order: Vec<usize> = selection.ranking.iter().map(|ranked| ranked.combo).collect();
        assert_eq!(order, [3, 0, 1, 2]);
        let third = &selection.ranking[0];
        assert_eq!((third.n, third.errors, third.mean), (2, 1, Some(0.5)));
        assert_eq!(selection.ranking[3].mean, None);
        // Wilson's interval for 2 of 2 (R: binom::binom.wilson(2, 2)).
        let [low, high] = selection.ranking[2].interval.unwrap();
        assert!((low - 0.342_380).abs() < 1e-5 && (high - 1.0).abs() < 1e-9, "{low} {high}");
        assert_eq!((selection.cells, selection.cells_of, selection.spent), (9, 20, 9.0));
        let text = serde_json::to_string(&selection).unwrap();
        let read: Selection = serde_json::from_str(&text).unwrap();
        assert_eq!((read.winner, read.ranking[2].combo, read.cells), (3, 1, 9));
    }

    #[test]
    fn repetitions_of_a_case_are_no_new_cases() {
        let row: Vec<Option<f64>> = (0..40).map(|at| Some(f64::from(at % 4 != 0))).collect();
        let plain = space(1, 40);
        let repeating = plain.clone().repeating(4);
        let width = |space: &Space| {
            let ranking = ranking(space, &filled(space, std::slice::from_ref(&row)), &[]);
            let [low, high] = ranking[0].interval.unwrap();
            assert_eq!(ranking[0].mean, Some(0.75));
            high - low
        };
        assert!(width(&repeating) > 2.0 * width(&plain), "{}", width(&repeating));
    }

    #[test]
    fn an_interval_is_where_scores_can_be() {
        let space = space(2, 3);
        let rows = [vec![Some(0.9), Some(1.0), Some(0.6)], vec![Some(0.5); 3]];
        let ranking = ranking(&space, &filled(&space, &rows), &[]);
        assert_eq!(ranking[0].interval.unwrap()[1], 1.0);
        assert_eq!(ranking[1].interval, None, "three equal scores tell nothing of the others");
    }

    #[test]
    fn the_front_is_whom_no_other_beats() {
        let space = space(5, 1);
        let mut evidence = Evidence::new(&space, Objective::default());
        // Best; cheapest; worse and dearer than the first; fastest; an error.
        let cells = [(0.9, 3.0, 3.0), (0.5, 1.0, 3.0), (0.8, 4.0, 3.0), (0.1, 5.0, 1.0)];
        for (combo, (score, cost, latency)) in cells.into_iter().enumerate() {
            let seen = Observation { score: Some(score), cost, paid: cost, latency };
            evidence.add(Cell { combo, datapoint: 0 }, seen);
        }
        let errored = Observation { score: None, cost: 0.0, paid: 0.0, latency: 0.0 };
        evidence.add(Cell { combo: 4, datapoint: 0 }, errored);
        let selection = Selection::new(&space, &evidence, "some", choice(0), None, &[]);
        assert_eq!(selection.front, [0, 1, 3]);
    }
}
