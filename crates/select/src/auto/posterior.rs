//! What is believed of all combinations at once, given the scales.
//!
//! `score[i,t] = θ[i] + d[t] + Σ b[role, model, t] + e[i,t]`, where `θ[i] = base[i] + slope[i]·(μ +
//! Σ a[role, model]) + g[i]`. All of them are normal, so that conditioning is exact. What is asked for
//! is the mean over these datapoints: scores that were seen are known, and those that were not follow
//! from θ and from what others scored on the same datapoint.

use super::condition::{Parts, Solved};
use super::design::Design;
use super::scales::Scales;
use super::seen::Seen;
use nalgebra::{DMatrix, DVector};

/// The joint posterior.
pub(super) struct Posterior<'a> {
    /// Expected mean over all datapoints, for each combination.
    pub(super) means: Vec<f64>,
    pub(super) theta: Vec<f64>,
    /// Own effects.
    pub(super) own: Vec<f64>,
    pub(super) own_variance: Vec<f64>,
    pub(super) effects: Vec<f64>,
    pub(super) effect_variance: Vec<f64>,
    parts: Parts<'a>,
    solved: Solved,
    /// Columns whose products are the covariances of means, but for what is not shared.
    roots: DMatrix<f64>,
    /// Weights of θ on what was solved for.
    weights: Vec<Vec<(usize, f64)>>,
    /// Variance of θ that is nobody else's business.
    apart: Vec<f64>,
    /// For each number of blocks seen, the summed covariance of datapoints in the others, over N².
    unseen: Vec<DMatrix<f64>>,
}

/// What the datapoints are like that a combination has not seen, by how many blocks it has.
struct Ahead {
    unseen: Vec<DMatrix<f64>>,
    expected: Vec<DVector<f64>>,
    slopes: Vec<DMatrix<f64>>,
}

impl<'a> Posterior<'a> {
    /// `None` when nothing was seen, or no digits are left.
    pub(super) fn new(
        seen: &'a Seen,
        design: &'a Design,
        scales: &'a Scales,
    ) -> Option<Posterior<'a>> {
        let parts = Parts::new(seen, design, scales);
        let solved = parts.solve()?;
        let (columns, arms) = (design.columns(), seen.rows.len());
        let first = seen.blocks.first()?.len();
        let mut weights: Vec<Vec<(usize, f64)>> = Vec::with_capacity(arms);
        let (mut theta, mut own) = (vec![0.0; arms], vec![0.0; arms]);
        let (mut apart, mut own_variance) = (vec![0.0; arms], vec![0.0; arms]);
        let inverse = solved.factor.inverse();
        for arm in 0..arms {
            let effects = design.loads[arm].iter().map(|&at| (at, scales.slope[arm]));
            let mut weight: Vec<(usize, f64)> = effects.collect();
            theta[arm] = weight.iter().map(|(at, weight)| weight * solved.values[*at]).sum();
            if let Some(place) = parts.place[arm] {
                let place = 2 * columns + place;
                weight.push((place, 1.0));
                own[arm] = solved.values[place];
                own_variance[arm] = inverse.column(place).norm_squared();
            } else {
                let noise = parts.noise[arm] / first;
                let share = scales.own[arm] / (scales.own[arm] + noise);
                let (row, mean) = &solved.rows[arm];
                let told: f64 = row.iter().map(|(at, weight)| weight * solved.values[*at]).sum();
                own[arm] = share * (mean - told);
                weight.extend(row.iter().map(|(at, weight)| (*at, -share * weight)));
                apart[arm] = share * noise;
                own_variance[arm] = apart[arm] + share * share * square(&inverse, row);
            }
            theta[arm] += own[arm] + scales.base[arm];
            weights.push(weight);
        }
        let ahead = Ahead::new(&parts, &solved, &theta);
        let mut roots = DMatrix::<f64>::zeros(solved.values.len(), arms);
        let mut means = vec![0.0; arms];
        let total = seen.total as f64;
        for arm in 0..arms {
            let reach = seen.reach[arm];
            let left = (total - seen.depth(arm) as f64) / total;
            let known = seen.rows[arm].iter().sum::<f64>() / total;
            let hard: f64 = design.loads[arm].iter().map(|&at| ahead.expected[reach][at]).sum();
            means[arm] = known + left * theta[arm] + hard;
            let mut root = roots.column_mut(arm);
            weights[arm].iter().for_each(|(at, weight)| root[*at] += left * weight);
            if reach < seen.blocks.len() {
                parts.answer(&ahead.slopes[reach], arm, |at, value| root[at] -= value);
            }
        }
        solved.factor.divide(&mut roots);
        let effects = solved.values.iter().take(columns).copied().collect();
        let effect_variance = (0..columns).map(|at| inverse.column(at).norm_squared()).collect();
        let unseen = ahead.unseen;
        Some(Posterior {
            means,
            theta,
            own,
            own_variance,
            effects,
            effect_variance,
            parts,
            solved,
            roots,
            weights,
            apart,
            unseen,
        })
    }

    pub(super) fn seen(&self) -> &Seen {
        self.parts.seen
    }

    pub(super) fn scales(&self) -> &Scales {
        self.parts.scales
    }

    /// Covariance of what a datapoint of a block is like, given what was scored on it.
    pub(super) fn datapoint(&self, block: usize) -> &DMatrix<f64> {
        &self.solved.datapoint[block]
    }

    /// Covariance of the means of two.
    pub(super) fn covariance(&self, one: usize, other: usize) -> f64 {
        let (seen, design) = (self.parts.seen, self.parts.design);
        let reach = seen.reach[one].max(seen.reach[other]);
        let mut sum = self.roots.column(one).dot(&self.roots.column(other));
        sum += form(design, &self.unseen[reach], one, other);
        if one == other {
            let total = seen.total as f64;
            let left = total - seen.depth(one) as f64;
            sum += left * self.parts.noise[one] / (total * total);
            sum += self.apart[one] * (left / total).powi(2);
        }
        sum
    }

    /// What the mean of a combination's next scores would tell: its covariance with the means of
    /// `others`, and its variance.
    pub(super) fn outlook(&self, arm: usize, cells: usize, others: &[usize]) -> (Vec<f64>, f64) {
        let (seen, design) = (self.parts.seen, self.parts.design);
        let (block, total) = (seen.reach[arm], seen.total as f64);
        let mut root = DVector::zeros(self.roots.nrows());
        self.weights[arm].iter().for_each(|(at, weight)| root[*at] += weight);
        if let Some(answers) = self.solved.answers.get(block) {
            self.parts.answer(answers, arm, |at, value| root[at] -= value);
        }
        self.solved.factor.divide_one(&mut root);
        let datapoint = &self.solved.datapoint[block];
        let covariance = |&other: &usize| {
            let mut sum = root.dot(&self.roots.column(other));
            if seen.reach[other] <= block {
                sum += form(design, datapoint, arm, other) / total;
            }
            if other == arm {
                let left = total - seen.depth(arm) as f64;
                sum += self.parts.noise[arm] / total + self.apart[arm] * left / total;
            }
            sum
        };
        let covariances = others.iter().map(covariance).collect();
        let fresh = form(design, datapoint, arm, arm) + self.parts.noise[arm];
        (covariances, root.norm_squared() + self.apart[arm] + fresh / cells.max(1) as f64)
    }
}

impl Ahead {
    fn new(parts: &Parts<'_>, solved: &Solved, theta: &[f64]) -> Ahead {
        let (seen, columns) = (parts.seen, parts.design.columns());
        let (blocks, total) = (seen.blocks.len(), seen.total as f64);
        let front = seen.blocks.last().map_or(0, |block| block.to);
        let mut ahead = Ahead {
            unseen: vec![DMatrix::zeros(columns, columns); blocks + 1],
            expected: vec![DVector::zeros(columns); blocks + 1],
            slopes: vec![DMatrix::zeros(columns, parts.deep.len()); blocks + 1],
        };
        ahead.unseen[blocks] =
            &solved.datapoint[blocks] * ((seen.total - front) as f64 / (total * total));
        for block in (1..blocks).rev() {
            let len = seen.blocks[block].len();
            ahead.unseen[block] =
                &ahead.unseen[block + 1] + &solved.datapoint[block] * (len / (total * total));
            ahead.slopes[block] = &ahead.slopes[block + 1] + &solved.answers[block] * (len / total);
            let mut gaps = DVector::<f64>::zeros(parts.deep.len());
            for (&arm, sum) in seen.blocks[block].arms.iter().zip(parts.sums(block)) {
                if let Some(place) = parts.place[arm] {
                    gaps[place] = sum - len * (theta[arm] - parts.scales.base[arm]);
                }
            }
            ahead.expected[block] =
                &ahead.expected[block + 1] + &solved.answers[block] * gaps / total;
        }
        ahead
    }
}

impl Parts<'_> {
    /// How what a combination is up against answers to what was solved for.
    fn answer(&self, answers: &DMatrix<f64>, arm: usize, mut add: impl FnMut(usize, f64)) {
        for (number, &other) in self.deep.iter().enumerate() {
            let columns = self.design.loads[arm].iter();
            let answer: f64 = columns.map(|&column| answers[(column, number)]).sum();
            add(2 * self.design.columns() + number, answer);
            for &at in &self.design.loads[other] {
                add(at, answer * self.scales.slope[other]);
            }
        }
    }
}

/// The sum of a matrix over the columns of two combinations.
fn form(design: &Design, matrix: &DMatrix<f64>, one: usize, other: usize) -> f64 {
    let rows = design.loads[one].iter();
    rows.map(|&row| design.loads[other].iter().map(|&at| matrix[(row, at)]).sum::<f64>()).sum()
}

/// The variance of a weighted sum of what was solved for.
fn square(inverse: &DMatrix<f64>, row: &[(usize, f64)]) -> f64 {
    let mut sum = DVector::<f64>::zeros(inverse.nrows());
    row.iter().for_each(|(at, weight)| sum.axpy(*weight, &inverse.column(*at), 1.0));
    sum.norm_squared()
}

#[cfg(test)]
pub(super) mod tests;
