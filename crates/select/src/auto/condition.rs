//! Linear system for the unknowns that all combinations share.
//!
//! The latent values of each datapoint (its difficulty, and one value per candidate) are integrated out,
//! except for their means over the first block, which all combinations saw. The remaining unknowns are
//! these means, the effects, and the own effects of the deep combinations, which were evaluated beyond
//! the first block. The own effects of the others follow from these.

use super::data::ModelData;
use super::design::Design;
use super::factor::Factor;
use super::scales::Scales;
use nalgebra::{DMatrix, DVector};

/// The model, the data it is conditioned on, and derived quantities.
pub(super) struct LinearModel<'a> {
    pub(super) data: &'a ModelData,
    pub(super) design: &'a Design,
    pub(super) scales: &'a Scales,
    /// Combinations evaluated beyond the first block.
    pub(super) deep: Vec<usize>,
    /// Index in `deep` of each combination.
    pub(super) deep_index: Vec<Option<usize>>,
    /// Noise variance of a cell, for each combination.
    pub(super) noise: Vec<f64>,
}

/// A combination in the first block: its weights on the unknowns, and its mean above the base.
pub(super) type BlockRow = (Vec<(usize, f64)>, f64);

/// Solution for the effects, the latent means of the first block, and the own effects of deep
/// combinations.
pub(super) struct Solution {
    pub(super) factor: Factor,
    pub(super) values: DVector<f64>,
    /// Covariance of the latent values of a datapoint in each block; the last is for unseen datapoints.
    pub(super) datapoint: Vec<DMatrix<f64>>,
    /// Response of the latent values of a block's datapoint to the scores of deep combinations.
    pub(super) responses: Vec<DMatrix<f64>>,
    pub(super) rows: Vec<BlockRow>,
}

/// Information of the later blocks about deep combinations: a precision and its right-hand side.
struct LaterBlocks {
    precision: DMatrix<f64>,
    target: DVector<f64>,
}

impl<'a> LinearModel<'a> {
    pub(super) fn new(
        data: &'a ModelData,
        design: &'a Design,
        scales: &'a Scales,
    ) -> LinearModel<'a> {
        let arms = data.rows.len();
        let deep: Vec<usize> = (0..arms).filter(|&arm| data.reach[arm] > 1).collect();
        let mut deep_index = vec![None; arms];
        deep.iter().enumerate().for_each(|(index, &arm)| deep_index[arm] = Some(index));
        let noise = (0..arms).map(|arm| scales.noise_of(arm) / data.present[arm]).collect();
        LinearModel { data, design, scales, deep, deep_index, noise }
    }

    /// Precision of the latent values of a datapoint, given the scores of `arms` on it.
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

    /// Sums of the scores of a block above the base, for each of its combinations.
    pub(super) fn sums(&self, block: usize) -> Vec<f64> {
        let block = &self.data.blocks[block];
        let sum = |&arm: &usize| {
            let scores = self.data.rows[arm][block.from..block.to].iter();
            scores.sum::<f64>() - block.len() * self.scales.base[arm]
        };
        block.arms.iter().map(sum).collect()
    }

    /// Solves the system; `None` without data, or if the matrix is numerically singular.
    pub(super) fn solve(&self) -> Option<Solution> {
        let mut datapoint = Vec::new();
        for block in &self.data.blocks {
            datapoint.push(self.precision(&block.arms).cholesky()?.inverse());
        }
        datapoint.push(self.prior_of_datapoint());
        let responses: Vec<DMatrix<f64>> =
            (0..self.data.blocks.len()).map(|block| self.responses(block, &datapoint)).collect();
        let later = self.later(&responses);
        let (mut precision, mut target, rows) = self.first_block()?;
        self.join(later, &mut precision, &mut target);
        let factor = Factor::new(precision)?;
        let values = factor.solve(&target);
        Some(Solution { factor, values, datapoint, responses, rows })
    }

    fn responses(&self, number: usize, datapoint: &[DMatrix<f64>]) -> DMatrix<f64> {
        let mut responses = DMatrix::zeros(self.design.columns(), self.deep.len());
        for &arm in &self.data.blocks[number].arms {
            let Some(index) = self.deep_index[arm] else { continue };
            for &column in &self.design.loads[arm] {
                let covariance = datapoint[number].column(column);
                responses.column_mut(index).axpy(1.0 / self.noise[arm], &covariance, 1.0);
            }
        }
        responses
    }

    /// Weighted loads of the deep combinations, one row each.
    fn loads(&self, weight: impl Fn(usize) -> f64) -> DMatrix<f64> {
        let mut loads = DMatrix::zeros(self.deep.len(), self.design.columns());
        for (index, &arm) in self.deep.iter().enumerate() {
            for &column in &self.design.loads[arm] {
                loads[(index, column)] += weight(arm);
            }
        }
        loads
    }

    fn later(&self, responses: &[DMatrix<f64>]) -> LaterBlocks {
        let mut precision = DMatrix::<f64>::zeros(self.deep.len(), self.deep.len());
        let mut target = DVector::<f64>::zeros(self.deep.len());
        for (number, block) in self.data.blocks.iter().enumerate().skip(1) {
            let mut sums = DVector::<f64>::zeros(self.deep.len());
            for (&arm, sum) in block.arms.iter().zip(self.sums(number)) {
                let Some(index) = self.deep_index[arm] else { continue };
                precision[(index, index)] += block.len() / self.noise[arm];
                target[index] += sum / self.noise[arm];
                sums[index] = sum;
            }
            let is_in = |arm: usize| self.data.reach[arm] > number;
            let loads = self.loads(|arm| if is_in(arm) { 1.0 / self.noise[arm] } else { 0.0 });
            precision.gemm(-block.len(), &loads, &responses[number], 1.0);
            target.gemv(-1.0, &loads, &(&responses[number] * sums), 1.0);
        }
        LaterBlocks { precision, target }
    }

    fn first_block(&self) -> Option<(DMatrix<f64>, DVector<f64>, Vec<BlockRow>)> {
        let (design, scales) = (self.design, self.scales);
        let columns = design.columns();
        let size = 2 * columns + self.deep.len();
        let first = self.data.blocks.first()?.len();
        let mut precision = DMatrix::<f64>::zeros(size, size);
        let mut target = DVector::<f64>::zeros(size);
        for column in 0..columns {
            let family = design.family[column];
            precision[(column, column)] += 1.0 / scales.effects[family];
            precision[(columns + column, columns + column)] += first / scales.shared[family];
        }
        target[0] += PRIOR_LEVEL / scales.effects[0];
        let mut rows = Vec::with_capacity(self.data.rows.len());
        for (&arm, sum) in self.data.blocks[0].arms.iter().zip(self.sums(0)) {
            let loads = || design.loads[arm].iter();
            let mut row: Vec<(usize, f64)> = loads().map(|&at| (at, scales.slope[arm])).collect();
            row.extend(loads().map(|&at| (columns + at, 1.0)));
            let mut variance = self.noise[arm] / first;
            match self.deep_index[arm] {
                Some(index) => row.push((2 * columns + index, 1.0)),
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

    /// Adds the later blocks, whose scores depend on effects and own effects.
    fn join(&self, later: LaterBlocks, precision: &mut DMatrix<f64>, target: &mut DVector<f64>) {
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
        let mut corner = precision.view_mut((own, own), (deep, deep));
        corner += later.precision;
        for (number, &arm) in self.deep.iter().enumerate() {
            precision[(own + number, own + number)] += 1.0 / self.scales.own[arm];
        }
        let mut effects = target.rows_mut(0, columns);
        effects += loads.tr_mul(&later.target);
        let mut own_effects = target.rows_mut(own, deep);
        own_effects += later.target;
    }
}

/// Prior mean of the overall level; its variance is so large that it hardly matters.
const PRIOR_LEVEL: f64 = 0.5;
