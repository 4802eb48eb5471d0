//! Means of combinations that were evaluated on different cases, made comparable by a model.
//!
//! A selector stops evaluating most combinations early, so their plain means refer to different cases: a few easy ones
//! make a combination look perfect. The model `value = μ + Σ effect[role, candidate] + effect[combination] +
//! effect[case] + noise` has random effects, whose variances are estimated together with the effects. It describes a
//! finished search and is independent of the model by which `auto` decides.

use crate::space::{Cell, Space};

/// Sweeps over all effects. Effects and variances of real searches change by less than 0.001 after about 20.
const SWEEPS: usize = 40;

/// Lower bound of variances, so that ratios stay finite.
const MIN_VARIANCE: f64 = 1e-9;

/// One grouping of the cells, with a random effect for each group.
struct Factor {
    /// Group of each value.
    groups: Vec<u32>,
    /// Number of values in each group.
    counts: Vec<f64>,
    effects: Vec<f64>,
    variance: f64,
}

impl Factor {
    fn new(groups: Vec<u32>, size: usize, variance: f64) -> Factor {
        let mut counts = vec![0.0; size];
        groups.iter().for_each(|&group| counts[group as usize] += 1.0);
        Factor { groups, counts, effects: vec![0.0; size], variance }
    }

    /// Refits the effects to the residuals, then the variance. Returns the sum over the values of the posterior
    /// variances of their effects.
    fn refit(&mut self, residuals: &mut [f64], noise: f64) -> f64 {
        let mut sums = vec![0.0; self.effects.len()];
        for (residual, &group) in residuals.iter_mut().zip(&self.groups) {
            *residual += self.effects[group as usize];
            sums[group as usize] += *residual;
        }
        let ratio = noise / self.variance;
        let (mut squares, mut known, mut uncertainty) = (0.0, 0.0, 0.0);
        for ((effect, &count), sum) in self.effects.iter_mut().zip(&self.counts).zip(sums) {
            *effect = sum / (count + ratio);
            if count > 0.0 {
                let variance = noise / (count + ratio);
                squares += *effect * *effect + variance;
                uncertainty += count * variance;
                known += 1.0;
            }
        }
        self.variance = (squares / f64::max(known, 1.0)).max(MIN_VARIANCE);
        for (residual, &group) in residuals.iter_mut().zip(&self.groups) {
            *residual -= self.effects[group as usize];
        }
        uncertainty
    }
}

/// Returns the expected mean of each combination over all datapoints: known values count as they are, the others as
/// the model expects them. `None` for combinations without values.
pub(crate) fn adjusted_means(
    space: &Space,
    value: impl Fn(Cell) -> Option<f64>,
) -> Vec<Option<f64>> {
    let datapoints = space.datapoints();
    let mut values: Vec<(Cell, f64)> = Vec::new();
    for combo in 0..space.combos() {
        let cells = (0..datapoints).map(|datapoint| Cell { combo, datapoint });
        values.extend(cells.filter_map(|cell| Some((cell, value(cell)?))));
    }
    if values.is_empty() {
        return vec![None; space.combos()];
    }
    let model = Model::fit(space, &values);
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, value)| {
            (low.min(*value), high.max(*value))
        });
    let mut rest: Vec<(f64, f64)> = (0..space.combos())
        .map(|combo| (0.0, datapoints as f64 * model.level(space, combo) + model.all_cases))
        .collect();
    let mut counts = vec![0_usize; space.combos()];
    for (cell, value) in &values {
        let (known, expected) = &mut rest[cell.combo];
        *known += value;
        *expected -= model.level(space, cell.combo) + model.case(space, cell.datapoint);
        counts[cell.combo] += 1;
    }
    let mean = |((known, expected), count): ((f64, f64), usize)| match count {
        0 => None,
        count if count == datapoints => Some(known / datapoints as f64),
        _ => Some(((known + expected) / datapoints as f64).clamp(low, high)),
    };
    rest.into_iter().zip(counts).map(mean).collect()
}

/// Fitted effects.
struct Model {
    mean: f64,
    /// Factors of the roles, then that of the combinations.
    parts: Vec<Factor>,
    cases: Factor,
    /// Sum of the case effects over all datapoints.
    all_cases: f64,
}

impl Model {
    fn fit(space: &Space, values: &[(Cell, f64)]) -> Model {
        let count = values.len() as f64;
        let mut mean = values.iter().map(|(_, value)| value).sum::<f64>() / count;
        let mut residuals: Vec<f64> = values.iter().map(|(_, value)| value - mean).collect();
        let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let mut noise = (squares / count).max(MIN_VARIANCE);
        let factor = |group: &dyn Fn(Cell) -> u32, size: usize| {
            Factor::new(values.iter().map(|(cell, _)| group(*cell)).collect(), size, 0.25 * noise)
        };
        let mut parts = Vec::new();
        // With a single role, its candidates are the combinations.
        if space.roles().len() > 1 {
            for (index, role) in space.roles().iter().enumerate() {
                let group = |cell: Cell| space.members(cell.combo)[index];
                parts.push(factor(&group, role.candidates.len()));
            }
        }
        parts.push(factor(&|cell| cell.combo as u32, space.combos()));
        let mut cases = factor(&|cell| space.case(cell.datapoint) as u32, space.cases());
        for _ in 0..SWEEPS {
            let shift = residuals.iter().sum::<f64>() / count;
            mean += shift;
            residuals.iter_mut().for_each(|residual| *residual -= shift);
            let mut uncertainty = cases.refit(&mut residuals, noise);
            for part in &mut parts {
                uncertainty += part.refit(&mut residuals, noise);
            }
            let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
            noise = ((squares + uncertainty) / count).max(MIN_VARIANCE);
        }
        let all_cases =
            (0..space.datapoints()).map(|datapoint| cases.effects[space.case(datapoint)]).sum();
        Model { mean, parts, cases, all_cases }
    }

    /// Expected value of a combination on a case of average difficulty.
    fn level(&self, space: &Space, combo: usize) -> f64 {
        let groups = space.members(combo).iter().map(|&member| member as usize);
        // The factor of the combinations is last, also if there are none of the roles.
        let skipped = space.members(combo).len() + 1 - self.parts.len();
        let groups = groups.skip(skipped).chain([combo]);
        self.mean
            + self.parts.iter().zip(groups).map(|(part, group)| part.effects[group]).sum::<f64>()
    }

    fn case(&self, space: &Space, datapoint: usize) -> f64 {
        self.cases.effects[space.case(datapoint)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{grid, space};

    #[test]
    fn complete_rows_keep_their_mean() {
        let space = space(3, 4);
        let value =
            |cell: Cell| (cell.combo < 2).then_some(f64::from(cell.datapoint < cell.combo + 2));
        assert_eq!(adjusted_means(&space, value), [Some(0.5), Some(0.75), None]);
    }

    #[test]
    fn few_easy_cases_do_not_make_a_combination_the_best() {
        // The first fails on every tenth case; the second is the same, but saw only eight cases that all pass.
        let space = space(2, 80);
        let passes = |datapoint: usize| f64::from(datapoint % 10 != 9);
        let value =
            |cell: Cell| (cell.combo == 0 || cell.datapoint < 8).then(|| passes(cell.datapoint));
        let means = adjusted_means(&space, value);
        let (first, second) = (means[0].unwrap(), means[1].unwrap());
        assert!((first - 0.9).abs() < 1e-9 && (second - first).abs() < 0.02, "{first} {second}");
    }

    #[test]
    fn candidates_of_roles_explain_combinations_with_few_cells() {
        // The solver decides. The last combination saw two cases only, both passed by luck.
        let space = grid(&[3, 3], 60);
        let last = space.combos() - 1;
        let value = |cell: Cell| {
            let share = 0.3 + 0.3 * f64::from(space.members(cell.combo)[1] == 0);
            let mixed = (cell.combo * 31 + cell.datapoint * 17) % 100;
            let passes = f64::from((mixed as f64) < 100.0 * share);
            match cell.combo == last {
                true => (cell.datapoint < 2).then_some(1.0),
                false => Some(passes),
            }
        };
        let mean = adjusted_means(&space, value)[last].unwrap();
        assert!((0.25..0.6).contains(&mean), "{mean}");
    }
}
