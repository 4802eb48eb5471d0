//! Joint posterior of all combinations, given the scales.
//!
//! `score[i,t] = θ[i] + d[t] + Σ b[role, model, t] + e[i,t]`, where `θ[i] = base[i] + slope[i]·(μ +
//! Σ a[role, model]) + g[i]`. All terms are normal, so conditioning is exact. The target is the mean
//! over these datapoints: observed scores are known, and the others follow from θ and from the scores of
//! other combinations on the same datapoint.

use super::condition::{LinearModel, Solution};
use super::data::ModelData;
use super::design::Design;
use super::scales::Scales;
use nalgebra::{DMatrix, DVector};

/// The joint posterior.
pub(super) struct Posterior<'a> {
    /// Expected mean over all datapoints, for each combination.
    pub(super) means: Vec<f64>,
    /// θ of each combination.
    pub(super) theta: Vec<f64>,
    /// Own effects g.
    pub(super) own: Vec<f64>,
    pub(super) own_variance: Vec<f64>,
    pub(super) effects: Vec<f64>,
    pub(super) effect_variance: Vec<f64>,
    model: LinearModel<'a>,
    solution: Solution,
    /// Columns whose products are the shared part of the covariances of the means.
    roots: DMatrix<f64>,
    /// Weights of θ on the unknowns.
    weights: Vec<Vec<(usize, f64)>>,
    /// Variance of θ that is not shared with any other combination.
    unshared: Vec<f64>,
    /// For each number of seen blocks, the summed covariance of the datapoints in the others, over N².
    unseen: Vec<DMatrix<f64>>,
}

/// Latent values of the datapoints that a combination has not seen, by its number of seen blocks.
struct UnseenDatapoints {
    covariance: Vec<DMatrix<f64>>,
    expected: Vec<DVector<f64>>,
    responses: Vec<DMatrix<f64>>,
}

impl<'a> Posterior<'a> {
    /// Conditions the model on the data; `None` without data, or if the system cannot be solved.
    pub(super) fn new(
        data: &'a ModelData,
        design: &'a Design,
        scales: &'a Scales,
    ) -> Option<Posterior<'a>> {
        let model = LinearModel::new(data, design, scales);
        let solution = model.solve()?;
        let (columns, arms) = (design.columns(), data.rows.len());
        let first = data.blocks.first()?.len();
        let mut weights: Vec<Vec<(usize, f64)>> = Vec::with_capacity(arms);
        let (mut theta, mut own) = (vec![0.0; arms], vec![0.0; arms]);
        let (mut unshared, mut own_variance) = (vec![0.0; arms], vec![0.0; arms]);
        let inverse = solution.factor.inverse();
        for arm in 0..arms {
            let effects = design.loads[arm].iter().map(|&at| (at, scales.slope[arm]));
            let mut weight: Vec<(usize, f64)> = effects.collect();
            theta[arm] = weight.iter().map(|(at, weight)| weight * solution.values[*at]).sum();
            if let Some(index) = model.deep_index[arm] {
                let unknown = 2 * columns + index;
                weight.push((unknown, 1.0));
                own[arm] = solution.values[unknown];
                own_variance[arm] = inverse.column(unknown).norm_squared();
            } else {
                let noise = model.noise[arm] / first;
                let share = scales.own[arm] / (scales.own[arm] + noise);
                let (row, mean) = &solution.rows[arm];
                let explained: f64 =
                    row.iter().map(|(at, weight)| weight * solution.values[*at]).sum();
                own[arm] = share * (mean - explained);
                weight.extend(row.iter().map(|(at, weight)| (*at, -share * weight)));
                unshared[arm] = share * noise;
                own_variance[arm] =
                    unshared[arm] + share * share * weighted_variance(&inverse, row);
            }
            theta[arm] += own[arm] + scales.base[arm];
            weights.push(weight);
        }
        let unseen_datapoints = UnseenDatapoints::new(&model, &solution, &theta);
        let mut roots = DMatrix::<f64>::zeros(solution.values.len(), arms);
        let mut means = vec![0.0; arms];
        let total = data.total as f64;
        for arm in 0..arms {
            let reach = data.reach[arm];
            let unseen_share = (total - data.depth(arm) as f64) / total;
            let known = data.rows[arm].iter().sum::<f64>() / total;
            let latent: f64 =
                design.loads[arm].iter().map(|&at| unseen_datapoints.expected[reach][at]).sum();
            means[arm] = known + unseen_share * theta[arm] + latent;
            let mut root = roots.column_mut(arm);
            weights[arm].iter().for_each(|(at, weight)| root[*at] += unseen_share * weight);
            if reach < data.blocks.len() {
                model.respond(&unseen_datapoints.responses[reach], arm, |at, value| {
                    root[at] -= value
                });
            }
        }
        solution.factor.solve_lower(&mut roots);
        let effects = solution.values.iter().take(columns).copied().collect();
        let effect_variance = (0..columns).map(|at| inverse.column(at).norm_squared()).collect();
        let unseen = unseen_datapoints.covariance;
        Some(Posterior {
            means,
            theta,
            own,
            own_variance,
            effects,
            effect_variance,
            model,
            solution,
            roots,
            weights,
            unshared,
            unseen,
        })
    }

    pub(super) fn data(&self) -> &ModelData {
        self.model.data
    }

    pub(super) fn scales(&self) -> &Scales {
        self.model.scales
    }

    /// Returns the covariance of the latent values of a block's datapoint, given its scores.
    pub(super) fn datapoint_covariance(&self, block: usize) -> &DMatrix<f64> {
        &self.solution.datapoint[block]
    }

    /// Returns the covariance of the means of two combinations.
    pub(super) fn covariance(&self, one: usize, other: usize) -> f64 {
        let (data, design) = (self.model.data, self.model.design);
        let reach = data.reach[one].max(data.reach[other]);
        let mut sum = self.roots.column(one).dot(&self.roots.column(other));
        sum += sum_over_loads(design, &self.unseen[reach], one, other);
        if one == other {
            let total = data.total as f64;
            let unseen = total - data.depth(one) as f64;
            sum += unseen * self.model.noise[one] / (total * total);
            sum += self.unshared[one] * (unseen / total).powi(2);
        }
        sum
    }

    /// Returns the covariances of the mean of a combination's next scores with the means of `others`, and
    /// its variance.
    pub(super) fn outlook(&self, arm: usize, cells: usize, others: &[usize]) -> (Vec<f64>, f64) {
        let (data, design) = (self.model.data, self.model.design);
        let (block, total) = (data.reach[arm], data.total as f64);
        let mut root = DVector::zeros(self.roots.nrows());
        self.weights[arm].iter().for_each(|(at, weight)| root[*at] += weight);
        if let Some(responses) = self.solution.responses.get(block) {
            self.model.respond(responses, arm, |at, value| root[at] -= value);
        }
        self.solution.factor.solve_lower_one(&mut root);
        let datapoint = &self.solution.datapoint[block];
        let covariance = |&other: &usize| {
            let mut sum = root.dot(&self.roots.column(other));
            if data.reach[other] <= block {
                sum += sum_over_loads(design, datapoint, arm, other) / total;
            }
            if other == arm {
                let unseen = total - data.depth(arm) as f64;
                sum += self.model.noise[arm] / total + self.unshared[arm] * unseen / total;
            }
            sum
        };
        let covariances = others.iter().map(covariance).collect();
        let fresh = sum_over_loads(design, datapoint, arm, arm) + self.model.noise[arm];
        (covariances, root.norm_squared() + self.unshared[arm] + fresh / cells.max(1) as f64)
    }
}

impl UnseenDatapoints {
    fn new(model: &LinearModel<'_>, solution: &Solution, theta: &[f64]) -> UnseenDatapoints {
        let (data, columns) = (model.data, model.design.columns());
        let (blocks, total) = (data.blocks.len(), data.total as f64);
        let front = data.blocks.last().map_or(0, |block| block.to);
        let mut unseen_datapoints = UnseenDatapoints {
            covariance: vec![DMatrix::zeros(columns, columns); blocks + 1],
            expected: vec![DVector::zeros(columns); blocks + 1],
            responses: vec![DMatrix::zeros(columns, model.deep.len()); blocks + 1],
        };
        unseen_datapoints.covariance[blocks] =
            &solution.datapoint[blocks] * ((data.total - front) as f64 / (total * total));
        for block in (1..blocks).rev() {
            let len = data.blocks[block].len();
            unseen_datapoints.covariance[block] = &unseen_datapoints.covariance[block + 1]
                + &solution.datapoint[block] * (len / (total * total));
            unseen_datapoints.responses[block] = &unseen_datapoints.responses[block + 1]
                + &solution.responses[block] * (len / total);
            let mut gaps = DVector::<f64>::zeros(model.deep.len());
            for (&arm, sum) in data.blocks[block].arms.iter().zip(model.sums(block)) {
                if let Some(index) = model.deep_index[arm] {
                    gaps[index] = sum - len * (theta[arm] - model.scales.base[arm]);
                }
            }
            unseen_datapoints.expected[block] =
                &unseen_datapoints.expected[block + 1] + &solution.responses[block] * gaps / total;
        }
        unseen_datapoints
    }
}

impl LinearModel<'_> {
    /// Adds the response of a combination's latent values to the unknowns.
    fn respond(&self, responses: &DMatrix<f64>, arm: usize, mut add: impl FnMut(usize, f64)) {
        for (number, &other) in self.deep.iter().enumerate() {
            let columns = self.design.loads[arm].iter();
            let response: f64 = columns.map(|&column| responses[(column, number)]).sum();
            add(2 * self.design.columns() + number, response);
            for &at in &self.design.loads[other] {
                add(at, response * self.scales.slope[other]);
            }
        }
    }
}

/// Returns the sum of a matrix over the columns of two combinations.
fn sum_over_loads(design: &Design, matrix: &DMatrix<f64>, one: usize, other: usize) -> f64 {
    let rows = design.loads[one].iter();
    rows.map(|&row| design.loads[other].iter().map(|&at| matrix[(row, at)]).sum::<f64>()).sum()
}

/// Returns the variance of a weighted sum of the unknowns.
fn weighted_variance(inverse: &DMatrix<f64>, row: &[(usize, f64)]) -> f64 {
    let mut sum = DVector::<f64>::zeros(inverse.nrows());
    row.iter().for_each(|(at, weight)| sum.axpy(*weight, &inverse.column(*at), 1.0));
    sum.norm_squared()
}

#[cfg(test)]
pub(super) mod tests;
