//! Solving for what everything has in common.
//!
//! The difficulties and habits of each datapoint are integrated out but for their means over the
//! first block, which everybody saw. What is left to solve for are those, the effects, and the own
//! effects of those who went further; the own effects of the others follow from these.

use super::design::Design;
use super::factor::Factor;
use super::scales::Scales;
use super::seen::Seen;
use nalgebra::{DMatrix, DVector};

/// What is conditioned on what.
pub(super) struct Parts<'a> {
    pub(super) seen: &'a Seen,
    pub(super) design: &'a Design,
    pub(super) scales: &'a Scales,
    /// Who went further than the first block, and at which place each is.
    pub(super) deep: Vec<usize>,
    pub(super) place: Vec<Option<usize>>,
    /// Variance of a cell's noise.
    pub(super) noise: Vec<f64>,
}

/// A row of the first block: where it has which weights, and its mean above the base.
pub(super) type Row = (Vec<(usize, f64)>, f64);

/// The solution: effects, what the first block was like, and own effects of those who are deep.
pub(super) struct Solved {
    pub(super) factor: Factor,
    pub(super) values: DVector<f64>,
    /// Covariance of what a datapoint of each block is like; the last is for those nobody saw.
    pub(super) datapoint: Vec<DMatrix<f64>>,
    /// How what a datapoint of a block is like answers to the scores of those who are deep.
    pub(super) answers: Vec<DMatrix<f64>>,
    pub(super) rows: Vec<Row>,
}

/// What the later blocks say of those who are deep: a precision, and what it is applied to.
struct Later {
    precision: DMatrix<f64>,
    target: DVector<f64>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(seen: &'a Seen, design: &'a Design, scales: &'a Scales) -> Parts<'a> {
        let arms = seen.rows.len();
        let deep: Vec<usize> = (0..arms).filter(|&arm| seen.reach[arm] > 1).collect();
        let mut place = vec![None; arms];
        deep.iter().enumerate().for_each(|(number, &arm)| place[arm] = Some(number));
        let noise = (0..arms).map(|arm| scales.noise_of(arm) / seen.present[arm]).collect();
        Parts { seen, design, scales, deep, place, noise }
    }

    /// Precision of what a datapoint is like, given the scores of `arms` on it.
    fn precision(&self, arms: &[usize]) -> DMatrix<f64> {
        let mut precision = self.prior_of_datapoint();
        precision.iter_mut().filter(|value| **value > 0.0).for_each(|value| *value = 1.0 / *value);
        for &arm in arms {
            for &row in &self.design.loads[arm] {
                for &column in &self.design.loads[arm] {
                    precision[(row, column)] += 1.0 / self.noise[arm];
                }
            }
        }
        precision
    }

    fn prior_of_datapoint(&self) -> DMatrix<f64> {
        let families = self.design.family.iter();
        let variances = families.map(|&family| self.scales.shared[family]);
        DMatrix::from_diagonal(&DVector::from_iterator(self.design.columns(), variances))
    }

    /// Sums over a block of the scores of its arms, above their bases.
    pub(super) fn sums(&self, block: usize) -> Vec<f64> {
        let block = &self.seen.blocks[block];
        let sum = |&arm: &usize| {
            let scores = self.seen.rows[arm][block.from..block.to].iter();
            scores.sum::<f64>() - block.len() * self.scales.base[arm]
        };
        block.arms.iter().map(sum).collect()
    }

    /// `None` when there is nothing to solve, or no digits are left to solve it with.
    pub(super) fn solve(&self) -> Option<Solved> {
        let mut datapoint = Vec::new();
        for block in &self.seen.blocks {
            datapoint.push(self.precision(&block.arms).cholesky()?.inverse());
        }
        datapoint.push(self.prior_of_datapoint());
        let answers: Vec<DMatrix<f64>> =
            (0..self.seen.blocks.len()).map(|block| self.answers(block, &datapoint)).collect();
        let later = self.later(&answers);
        let (mut precision, mut target, rows) = self.first_block()?;
        self.join(later, &mut precision, &mut target);
        let factor = Factor::new(precision)?;
        let values = factor.solve(&target);
        Some(Solved { factor, values, datapoint, answers, rows })
    }

    fn answers(&self, number: usize, datapoint: &[DMatrix<f64>]) -> DMatrix<f64> {
        let mut answers = DMatrix::zeros(self.design.columns(), self.deep.len());
        for &arm in &self.seen.blocks[number].arms {
            let Some(place) = self.place[arm] else { continue };
            for &column in &self.design.loads[arm] {
                let told = datapoint[number].column(column);
                answers.column_mut(place).axpy(1.0 / self.noise[arm], &told, 1.0);
            }
        }
        answers
    }

    /// The loads of those who are deep, each times its own weight; a row for each.
    fn loads(&self, weight: impl Fn(usize) -> f64) -> DMatrix<f64> {
        let mut loads = DMatrix::zeros(self.deep.len(), self.design.columns());
        for (place, &arm) in self.deep.iter().enumerate() {
            for &column in &self.design.loads[arm] {
                loads[(place, column)] += weight(arm);
            }
        }
        loads
    }

    fn later(&self, answers: &[DMatrix<f64>]) -> Later {
        let mut precision = DMatrix::<f64>::zeros(self.deep.len(), self.deep.len());
        let mut target = DVector::<f64>::zeros(self.deep.len());
        for (number, block) in self.seen.blocks.iter().enumerate().skip(1) {
            let mut sums = DVector::<f64>::zeros(self.deep.len());
            for (&arm, sum) in block.arms.iter().zip(self.sums(number)) {
                let Some(place) = self.place[arm] else { continue };
                precision[(place, place)] += block.len() / self.noise[arm];
                target[place] += sum / self.noise[arm];
                sums[place] = sum;
            }
            let is_in = |arm: usize| self.seen.reach[arm] > number;
            let loads = self.loads(|arm| if is_in(arm) { 1.0 / self.noise[arm] } else { 0.0 });
            precision.gemm(-block.len(), &loads, &answers[number], 1.0);
            target.gemv(-1.0, &loads, &(&answers[number] * sums), 1.0);
        }
        Later { precision, target }
    }

    fn first_block(&self) -> Option<(DMatrix<f64>, DVector<f64>, Vec<Row>)> {
        let (design, scales) = (self.design, self.scales);
        let columns = design.columns();
        let size = 2 * columns + self.deep.len();
        let first = self.seen.blocks.first()?.len();
        let mut precision = DMatrix::<f64>::zeros(size, size);
        let mut target = DVector::<f64>::zeros(size);
        for column in 0..columns {
            let family = design.family[column];
            precision[(column, column)] += 1.0 / scales.effects[family];
            precision[(columns + column, columns + column)] += first / scales.shared[family];
        }
        target[0] += CENTRE / scales.effects[0];
        let mut rows = Vec::with_capacity(self.seen.rows.len());
        for (&arm, sum) in self.seen.blocks[0].arms.iter().zip(self.sums(0)) {
            let loads = || design.loads[arm].iter();
            let mut row: Vec<(usize, f64)> = loads().map(|&at| (at, scales.slope[arm])).collect();
            row.extend(loads().map(|&at| (columns + at, 1.0)));
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
        Some((precision, target, rows))
    }

    /// Adds the later blocks, whose scores are made of effects and own effects.
    fn join(&self, later: Later, precision: &mut DMatrix<f64>, target: &mut DVector<f64>) {
        let (columns, deep) = (self.design.columns(), self.deep.len());
        let own = 2 * columns;
        let loads = self.loads(|arm| self.scales.slope[arm]);
        let crossed = loads.tr_mul(&later.precision);
        let mut corner = precision.view_mut((0, 0), (columns, columns));
        corner += &crossed * &loads;
        let mut side = precision.view_mut((0, own), (columns, deep));
        side += &crossed;
        let mut side = precision.view_mut((own, 0), (deep, columns));
        side += crossed.transpose();
        let mut apart = precision.view_mut((own, own), (deep, deep));
        apart += later.precision;
        for (number, &arm) in self.deep.iter().enumerate() {
            precision[(own + number, own + number)] += 1.0 / self.scales.own[arm];
        }
        let mut effects = target.rows_mut(0, columns);
        effects += loads.tr_mul(&later.target);
        let mut apart = target.rows_mut(own, deep);
        apart += later.target;
    }
}

/// Where the overall mean is thought to be; its variance is such that it hardly matters.
const CENTRE: f64 = 0.5;
