//! What is believed of all combinations at once, given the scales.
//!
//! `score[i,t] = θ[i] + λ[i]·(d[t] + Σ b[role, model, t] + e[i,t])`, `θ[i] = μ + Σ a[role, model] + g[i]`.
//! All of them are normal, so that conditioning is exact. The difficulties and habits (`d`, `b`) of
//! each datapoint are integrated out but for the means over the first block, which everybody saw;
//! what is left are those, the effects (`μ`, `a`) and the own effects of those who went further.

use super::scales::Scales;
use super::seen::{Design, Seen};
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// The joint posterior.
#[derive(Debug)]
pub(super) struct Posterior {
    /// Expected mean over all datapoints, for each combination.
    pub(super) means: Vec<f64>,
    /// Expected θ and own effect.
    pub(super) theta: Vec<f64>,
    pub(super) own: Vec<f64>,
    /// Variance of the own effect.
    pub(super) own_variance: Vec<f64>,
    /// Variance of the effects.
    pub(super) effect_variance: Vec<f64>,
    pub(super) effects: Vec<f64>,
    /// Covariance of what a datapoint of each block is like; the last is for those nobody saw.
    pub(super) datapoint: Vec<DMatrix<f64>>,
    /// Rows whose products are the covariances of means, but for what [`Posterior::rest`] adds.
    roots: DMatrix<f64>,
    /// The same for θ.
    theta_roots: DMatrix<f64>,
    /// How what a datapoint of a block is like answers to θ.
    answers: Vec<DMatrix<f64>>,
    factor: Cholesky<f64, Dyn>,
    /// For each number of blocks seen, the summed covariance of those unseen, over N².
    unseen: Vec<DMatrix<f64>>,
    /// Variance of θ that is nobody else's business.
    apart: Vec<f64>,
    noise: Vec<f64>,
    deep: Vec<usize>,
    total: f64,
}

struct Parts<'a> {
    seen: &'a Seen,
    design: &'a Design,
    scales: &'a Scales,
    deep: Vec<usize>,
    place: Vec<Option<usize>>,
    noise: Vec<f64>,
}

impl Posterior {
    pub(super) fn new(seen: &Seen, design: &Design, scales: &Scales) -> Option<Posterior> {
        let arms = seen.rows.len();
        let deep: Vec<usize> = (0..arms).filter(|&arm| seen.reach[arm] > 1).collect();
        let mut place = vec![None; arms];
        deep.iter().enumerate().for_each(|(number, &arm)| place[arm] = Some(number));
        let noise = (0..arms).map(|arm| scales.noise_of(arm) / seen.present[arm]).collect();
        let parts = Parts { seen, design, scales, deep, place, noise };
        parts.condition()
    }

    /// Covariance of the means of two.
    pub(super) fn covariance(
        &self,
        (design, scales, seen): (&Design, &Scales, &Seen),
        one: usize,
        other: usize,
    ) -> f64 {
        let shared = self.roots.column(one).dot(&self.roots.column(other));
        let reach = seen.reach[one].max(seen.reach[other]);
        let rest = form(design, &self.unseen[reach], one, other);
        let mut sum = shared + rest * scales.load[one] * scales.load[other];
        if one == other {
            let left = self.total - seen.depth(one) as f64;
            sum += left * self.noise[one] / self.total.powi(2);
            sum += self.apart[one] * (left / self.total).powi(2);
        }
        sum
    }

    /// What a combination's next scores would tell: their covariance with the means of `others`, and
    /// the variance of their own mean.
    pub(super) fn outlook(
        &self,
        (design, scales, seen): (&Design, &Scales, &Seen),
        arm: usize,
        cells: usize,
        others: &[usize],
    ) -> (Vec<f64>, f64) {
        let block = seen.reach[arm];
        let load = scales.load[arm];
        let mut row = self.theta_roots.column(arm).clone_owned();
        if let Some(answers) = self.answers.get(block) {
            let mut weights = DVector::zeros(row.len());
            let columns = design.columns();
            for (number, &other) in self.deep.iter().enumerate() {
                let answer: f64 =
                    design.loads[arm].iter().map(|&column| answers[(column, number)]).sum();
                weights[2 * columns + number] -= load * answer;
                let slope = scales.slope[other];
                design.loads[other].iter().for_each(|&c| weights[c] -= load * answer * slope);
            }
            self.factor.l_dirty().solve_lower_triangular_mut(&mut weights);
            row += weights;
        }
        let datapoint = &self.datapoint[block];
        let covariances = others.iter().map(|&other| {
            let mut sum = row.dot(&self.roots.column(other));
            if seen.reach[other] <= block {
                sum += load * scales.load[other] * form(design, datapoint, arm, other) / self.total;
            }
            if other == arm {
                let left = self.total - seen.depth(arm) as f64;
                sum += self.noise[arm] / self.total + self.apart[arm] * left / self.total;
            }
            sum
        });
        let covariances = covariances.collect();
        let fresh = load * load * form(design, datapoint, arm, arm) + self.noise[arm];
        (covariances, row.norm_squared() + self.apart[arm] + fresh / cells as f64)
    }
}

fn form(design: &Design, matrix: &DMatrix<f64>, one: usize, other: usize) -> f64 {
    let rows = design.loads[one].iter();
    rows.map(|&row| design.loads[other].iter().map(|&c| matrix[(row, c)]).sum::<f64>()).sum()
}

impl Parts<'_> {
    /// Precision of what a datapoint is like, given the scores of `arms` on it.
    fn precision(&self, arms: &[usize]) -> DMatrix<f64> {
        let columns = self.design.columns();
        let mut precision = DMatrix::from_fn(columns, columns, |row, column| {
            if row == column { 1.0 / self.scales.shared[self.design.family[row]] } else { 0.0 }
        });
        for &arm in arms {
            let weight = self.scales.load[arm].powi(2) / self.noise[arm];
            for &row in &self.design.loads[arm] {
                for &column in &self.design.loads[arm] {
                    precision[(row, column)] += weight;
                }
            }
        }
        precision
    }

    /// Sums over a block of the scores of its arms, above their bases.
    fn sums(&self, block: usize) -> Vec<f64> {
        let block = &self.seen.blocks[block];
        let sum = |&arm: &usize| {
            let scores = self.seen.rows[arm][block.from..block.to].iter();
            scores.sum::<f64>() - block.len() * self.scales.base[arm]
        };
        block.arms.iter().map(sum).collect()
    }

    fn condition(self) -> Option<Posterior> {
        let (columns, deep) = (self.design.columns(), self.deep.len());
        let size = 2 * columns + deep;
        let (design, scales, seen) = (self.design, self.scales, self.seen);
        let first = seen.blocks.first()?.len();
        let mut datapoint = Vec::new();
        for block in &seen.blocks {
            datapoint.push(self.precision(&block.arms).cholesky()?.inverse());
        }
        datapoint.push(DMatrix::from_fn(columns, columns, |row, column| {
            if row == column { scales.shared[design.family[row]] } else { 0.0 }
        }));
        // The blocks that only some saw: precision of θ of those who did, and what it is applied to.
        let mut inner = DMatrix::<f64>::zeros(deep, deep);
        let mut outer = DVector::<f64>::zeros(deep);
        let mut answers = vec![DMatrix::zeros(columns, deep)];
        for (number, block) in seen.blocks.iter().enumerate().skip(1) {
            let mut answer = DMatrix::<f64>::zeros(columns, deep);
            for &arm in &block.arms {
                let Some(place) = self.place[arm] else { continue };
                let weight = scales.load[arm] / self.noise[arm];
                for &column in &design.loads[arm] {
                    let mut target = answer.column_mut(place);
                    target.axpy(weight, &datapoint[number].column(column), 1.0);
                }
            }
            let sums = self.sums(number);
            for (&arm, sum) in block.arms.iter().zip(&sums) {
                let Some(place) = self.place[arm] else { continue };
                inner[(place, place)] += block.len() / self.noise[arm];
                outer[place] += sum / self.noise[arm];
                let weight = scales.load[arm] / self.noise[arm];
                for (&other, sum) in block.arms.iter().zip(&sums) {
                    let Some(theirs) = self.place[other] else { continue };
                    let told: f64 = design.loads[arm].iter().map(|&c| answer[(c, theirs)]).sum();
                    inner[(place, theirs)] -= block.len() * weight * told;
                    outer[place] -= weight * told * sum;
                }
            }
            answers.push(answer);
        }
        // All of it.
        let mut precision = DMatrix::<f64>::zeros(size, size);
        let mut target = DVector::<f64>::zeros(size);
        for column in 0..columns {
            let family = design.family[column];
            precision[(column, column)] += 1.0 / scales.effects[family];
            precision[(columns + column, columns + column)] += first / scales.shared[family];
        }
        target[0] += scales.centre / scales.effects[0];
        let mut rows: Vec<(Vec<(usize, f64)>, f64)> = Vec::with_capacity(seen.rows.len());
        let sums = self.sums(0);
        for (&arm, sum) in seen.blocks[0].arms.iter().zip(&sums) {
            let mut row: Vec<(usize, f64)> = design.loads[arm].iter().map(|&c| (c, scales.slope[arm])).collect();
            row.extend(design.loads[arm].iter().map(|&c| (columns + c, scales.load[arm])));
            let mut variance = self.noise[arm] / first;
            match self.place[arm] {
                Some(place) => row.push((2 * columns + place, 1.0)),
                None => variance += scales.own[arm],
            }
            for &(one, left) in &row {
                for &(other, right) in &row {
                    precision[(one, other)] += left * right / variance;
                }
                target[one] += left * sum / first / variance;
            }
            rows.push((row, sum / first));
        }
        for (number, &arm) in self.deep.iter().enumerate() {
            precision[(2 * columns + number, 2 * columns + number)] += 1.0 / scales.own[arm];
            target[2 * columns + number] += outer[number];
            let slope = scales.slope[arm];
            design.loads[arm].iter().for_each(|&c| target[c] += slope * outer[number]);
            for (theirs, &other) in self.deep.iter().enumerate() {
                let value = inner[(number, theirs)];
                precision[(2 * columns + number, 2 * columns + theirs)] += value;
                for &row in &design.loads[arm] {
                    precision[(row, 2 * columns + theirs)] += slope * value;
                    precision[(2 * columns + theirs, row)] += slope * value;
                    for &column in &design.loads[other] {
                        precision[(row, column)] += slope * scales.slope[other] * value;
                    }
                }
            }
        }
        let factor = precision.cholesky()?;
        let solved = factor.solve(&target);
        self.conclude(factor, solved, datapoint, answers, rows)
    }

    fn conclude(
        self,
        factor: Cholesky<f64, Dyn>,
        solved: DVector<f64>,
        datapoint: Vec<DMatrix<f64>>,
        answers: Vec<DMatrix<f64>>,
        rows: Vec<(Vec<(usize, f64)>, f64)>,
    ) -> Option<Posterior> {
        let (design, scales, seen) = (self.design, self.scales, self.seen);
        let (columns, arms) = (design.columns(), seen.rows.len());
        let size = solved.len();
        let total = seen.total as f64;
        let first = seen.blocks[0].len();
        let mut theta_roots = DMatrix::<f64>::zeros(size, arms);
        let mut own_roots = DMatrix::<f64>::zeros(size, arms);
        let mut apart = vec![0.0; arms];
        let (mut theta, mut own) = (vec![0.0; arms], vec![0.0; arms]);
        for arm in 0..arms {
            for &c in &design.loads[arm] {
                theta_roots[(c, arm)] += scales.slope[arm];
                theta[arm] += scales.slope[arm] * solved[c];
            }
            if let Some(place) = self.place[arm] {
                theta_roots[(2 * columns + place, arm)] = 1.0;
                own_roots[(2 * columns + place, arm)] = 1.0;
                own[arm] = solved[2 * columns + place];
            } else {
                let noise = self.noise[arm] / first;
                let share = scales.own[arm] / (scales.own[arm] + noise);
                let (row, mean) = &rows[arm];
                own[arm] = share
                    * (mean - row.iter().map(|(at, weight)| weight * solved[*at]).sum::<f64>());
                for (at, weight) in row {
                    theta_roots[(*at, arm)] -= share * weight;
                    own_roots[(*at, arm)] -= share * weight;
                }
                apart[arm] = share * noise;
            }
            theta[arm] += own[arm] + scales.base[arm];
        }
        // What the datapoints are like that some did not see, from those who did.
        let blocks = seen.blocks.len();
        let mut unseen = vec![DMatrix::zeros(columns, columns); blocks + 1];
        let mut expected = vec![DVector::<f64>::zeros(columns); blocks + 1];
        let mut slopes = vec![DMatrix::<f64>::zeros(columns, self.deep.len()); blocks + 1];
        let front = seen.blocks[blocks - 1].to;
        unseen[blocks] = &datapoint[blocks] * ((seen.total - front) as f64 / total.powi(2));
        for block in (1..blocks).rev() {
            let len = seen.blocks[block].len();
            unseen[block] = &unseen[block + 1] + &datapoint[block] * (len / total.powi(2));
            slopes[block] = &slopes[block + 1] + &answers[block] * (len / total);
            let mut gap = DVector::<f64>::zeros(self.deep.len());
            for (&arm, sum) in seen.blocks[block].arms.iter().zip(self.sums(block)) {
                if let Some(place) = self.place[arm] {
                    gap[place] = sum - len * (theta[arm] - scales.base[arm]);
                }
            }
            expected[block] = &expected[block + 1] + &answers[block] * gap / total;
        }
        let mut roots = DMatrix::<f64>::zeros(size, arms);
        let mut means = vec![0.0; arms];
        for arm in 0..arms {
            let reach = seen.reach[arm];
            let left = (total - seen.depth(arm) as f64) / total;
            let known = seen.rows[arm].iter().sum::<f64>() / total;
            let load = scales.load[arm];
            let hard: f64 = design.loads[arm].iter().map(|&c| expected[reach][c]).sum();
            means[arm] = known + left * theta[arm] + load * hard;
            let mut root = theta_roots.column(arm) * left;
            if reach < blocks {
                for (number, &other) in self.deep.iter().enumerate() {
                    let slope: f64 =
                        design.loads[arm].iter().map(|&c| slopes[reach][(c, number)]).sum();
                    root[2 * columns + number] -= load * slope;
                    let theirs = load * slope * scales.slope[other];
                    design.loads[other].iter().for_each(|&c| root[c] -= theirs);
                }
            }
            roots.set_column(arm, &root);
        }
        let lower = factor.l_dirty();
        lower.solve_lower_triangular_mut(&mut roots);
        lower.solve_lower_triangular_mut(&mut theta_roots);
        lower.solve_lower_triangular_mut(&mut own_roots);
        let own_variance =
            (0..arms).map(|arm| own_roots.column(arm).norm_squared() + apart[arm]).collect();
        let mut unit = DMatrix::<f64>::zeros(size, columns);
        (0..columns).for_each(|c| unit[(c, c)] = 1.0);
        lower.solve_lower_triangular_mut(&mut unit);
        let effect_variance = (0..columns).map(|c| unit.column(c).norm_squared()).collect();
        let effects = solved.iter().take(columns).copied().collect();
        Some(Posterior {
            means,
            theta,
            own,
            own_variance,
            effect_variance,
            effects,
            datapoint,
            roots,
            theta_roots,
            answers,
            factor,
            unseen,
            apart,
            noise: self.noise,
            deep: self.deep,
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::tuning::Tuning;
    use crate::testing::grid;

    fn small() -> (Seen, Design, Scales) {
        let design = Design::new(&grid(&[2, 2], 6));
        let rows = vec![
            vec![1.0, 0.0, 1.0],
            vec![0.0, 0.0, 1.0],
            vec![1.0, 1.0, 1.0, 0.0, 1.0],
            vec![1.0, 0.5, 1.0, 0.0],
        ];
        let seen = Seen::of(6, rows, vec![1.0; 4]);
        let mut scales = Scales::new(&design, 4, Tuning::default());
        scales.shared = vec![0.05, 0.03, 0.02];
        scales.effects = vec![1.0, 0.01, 0.02];
        scales.own = vec![0.004, 0.01, 0.004, 0.006];
        scales.noise = 0.1;
        scales.load = vec![1.0, 0.8, 1.2, 0.9];
        scales.slope = vec![1.0, 0.7, 0.9, 0.6];
        scales.base = vec![0.0, 0.1, 0.05, 0.2];
        (seen, design, scales)
    }

    #[test]
    fn it_is_what_conditioning_all_cells_at_once_gives() {
        let (seen, design, scales) = small();
        let now = Posterior::new(&seen, &design, &scales).unwrap();
        println!("{:?}\n{:?}\n{:?} {:?}", now.means, now.theta, now.own, now.own_variance);
        let context = (&design, &scales, &seen);
        for one in 0..4 {
            println!("{:?}", (0..4).map(|o| now.covariance(context, one, o)).collect::<Vec<_>>());
        }
        println!("{:?}", now.outlook(context, 3, 1, &[0, 1, 2, 3]));
        println!("{:?}", now.outlook(context, 2, 1, &[0, 1, 2, 3]));
        panic!();
    }
}
