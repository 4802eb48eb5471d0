//! How much everything varies: fitted to what was seen, with some weight on what was thought before.
//!
//! Variances never start at zero, and few datapoints cannot bring them there: with all of the first
//! answers right, a rule that believed its own variances would stop at once.

use super::design::Design;
use super::posterior::Posterior;
use super::seen::Seen;
use super::tuning::Tuning;
use nalgebra::DVector;

/// Variances of the model, and where its curve is straightened.
#[derive(Debug, Clone)]
pub(super) struct Scales {
    /// Of a datapoint's difficulty, and of the habits of each role's models.
    pub(super) shared: Vec<f64>,
    /// Of the effects; the first is the overall mean's.
    pub(super) effects: Vec<f64>,
    /// What the next is thought to be before anything is seen.
    pub(super) guess: f64,
    /// Of a combination's own effect: where the curve is steepest, and for each.
    pub(super) typical: f64,
    pub(super) own: Vec<f64>,
    /// Chance that the own effect is from the wide tail.
    pub(super) far: Vec<f64>,
    /// Of a cell's noise; and by which factor each combination's differs.
    pub(super) noise: f64,
    pub(super) grain: Vec<f64>,
    /// Scores end at 0 and 1, and effects flatten out there: `θ = base + slope·effects + own`.
    pub(super) base: Vec<f64>,
    pub(super) slope: Vec<f64>,
    pub(super) tuning: Tuning,
}

/// What variances are thought to be before anything is seen: those of answers that are right or
/// wrong, shared out.
const SHARED: f64 = 0.05;
const NOISE: f64 = 0.1;
pub(super) const EFFECT: f64 = 0.01;

impl Scales {
    pub(super) fn new(design: &Design, arms: usize, tuning: Tuning) -> Scales {
        let mut effects = vec![EFFECT; design.families];
        effects[0] = 1.0;
        // With one role, own effects are those of its models.
        let guess = if design.families > 1 { tuning.own } else { tuning.alone }.powi(2);
        Scales {
            shared: vec![SHARED; design.families],
            effects,
            guess,
            typical: guess,
            own: vec![guess; arms],
            far: vec![tuning.tail.0; arms],
            noise: NOISE,
            grain: vec![1.0; arms],
            base: vec![0.0; arms],
            slope: vec![1.0; arms],
            tuning,
        }
    }

    /// Variance of a cell's noise.
    pub(super) fn noise_of(&self, arm: usize) -> f64 {
        self.noise * self.grain[arm]
    }

    /// One step towards the scales that explain what was seen.
    pub(super) fn improved(&self, seen: &Seen, design: &Design, now: &Posterior<'_>) -> Scales {
        let mut next = self.clone();
        next.fit_datapoints(seen, design, now);
        next.fit_effects(design, now);
        if seen.is_bounded() {
            next.fit_slopes(design, now);
            next.fit_grain(seen, now);
        }
        next.fit_own(now);
        next
    }

    /// Difficulties, habits and noise: squares of what is expected of each, over how many of them
    /// the scores could tell.
    fn fit_datapoints(&mut self, seen: &Seen, design: &Design, now: &Posterior<'_>) {
        let columns = design.columns();
        let mut known = vec![0.0; design.families];
        let mut sums = vec![(0.0, 0.0, 0.0); columns];
        let (mut noise, mut cells) = (0.0, 0.0);
        let front = seen.blocks.last().map_or(1.0, |block| block.to as f64);
        let freedom = (front - 1.0).max(0.5) / front;
        for (number, block) in seen.blocks.iter().enumerate() {
            let covariance = now.datapoint(number);
            for column in 0..columns {
                let family = design.family[column];
                let share = 1.0 - covariance[(column, column)] / self.shared[family];
                known[family] += block.len() * share * freedom;
                cells -= block.len() * share;
            }
            for at in block.from..block.to {
                let mut pull = DVector::<f64>::zeros(columns);
                for &arm in &block.arms {
                    let gap = seen.rows[arm][at] - now.theta[arm];
                    let weight = gap * seen.present[arm] / self.noise_of(arm);
                    design.loads[arm].iter().for_each(|&column| pull[column] += weight);
                }
                let like = covariance * pull;
                for (column, sum) in sums.iter_mut().enumerate() {
                    if covariance[(column, column)] < 0.999 * self.shared[design.family[column]] {
                        sum.0 += 1.0;
                        sum.1 += like[column];
                        sum.2 += like[column] * like[column];
                    }
                }
                for &arm in &block.arms {
                    let told: f64 = design.loads[arm].iter().map(|&column| like[column]).sum();
                    let left = seen.rows[arm][at] - now.theta[arm] - told;
                    noise += left * left / self.grain[arm];
                    cells += seen.present[arm];
                }
            }
        }
        // About their mean: were all of them thought to be easy by mistake, they would seem to vary,
        // and the more they vary the easier it is to believe that all of them were easy.
        let mut squares = vec![0.0; design.families];
        for (column, (count, sum, square)) in sums.into_iter().enumerate() {
            squares[design.family[column]] += (square - sum * sum / f64::max(count, 1.0)).max(0.0);
        }
        // Means were taken out of the noise as well.
        let told = |arm: usize| 1.0 - now.own_variance[arm] / self.own[arm];
        let taken: f64 = (0..now.own.len()).map(told).sum();
        cells = f64::max(cells - taken.max(0.0), 1.0);
        let doubt = self.tuning.doubt;
        for family in 0..design.families {
            let sum = squares[family] + doubt * SHARED;
            self.shared[family] = (sum / (known[family].max(0.0) + doubt)).clamp(1e-4, 1e3);
        }
        self.noise = ((noise + doubt * NOISE) / (cells + doubt)).clamp(1e-4, 1e3);
    }

    /// Scores near the ends of their range vary less, as those of right and wrong answers do; but
    /// nobody is so near that the next answer cannot be wrong.
    fn fit_grain(&mut self, seen: &Seen, now: &Posterior<'_>) {
        let shape = |mean: f64| (mean * (1.0 - mean)).max(self.tuning.least);
        let shapes: Vec<f64> = now.means.iter().map(|mean| shape(mean.clamp(0.0, 1.0))).collect();
        let weights: Vec<f64> = seen.rows.iter().map(|row| row.len() as f64).collect();
        let sum: f64 = shapes.iter().zip(&weights).map(|(shape, weight)| shape * weight).sum();
        let pooled = sum / weights.iter().sum::<f64>().max(1.0);
        self.grain = shapes.iter().map(|shape| shape / pooled.max(1e-9)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::grid;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn fitted(rows: Vec<Vec<f64>>, steps: usize) -> Scales {
        let (count, total) = (rows.len(), 200);
        let design = Design::new(&grid(&[count], total));
        let seen = Seen::of(total, rows, vec![1.0; count]);
        let mut scales = Scales::new(&design, count, Tuning::default());
        for _ in 0..steps {
            let now = Posterior::new(&seen, &design, &scales).unwrap();
            scales = scales.improved(&seen, &design, &now);
        }
        scales
    }

    #[test]
    fn six_right_answers_do_not_make_anybody_sure() {
        let scales = fitted(vec![vec![1.0; 6]; 3], 30);
        // Next to nothing was seen to vary: what was thought before, with the weight of 4 beside some
        // 6 datapoints and some 15 cells.
        assert!(scales.shared[0] > 0.015, "{:?}", scales.shared);
        assert!(scales.noise_of(0) > 0.01, "{}", scales.noise);
    }

    #[test]
    fn difficulty_and_noise_are_told_apart() {
        // Difficulties of ±0.3 and noise of ±0.1, by chance: variances of 0.09 and 0.01.
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut sign = || if random.random::<bool>() { 1.0 } else { -1.0 };
        let hard: Vec<f64> = (0..60).map(|_| 0.5 + 0.3 * sign()).collect();
        let mut row = || hard.iter().map(|hard| hard + 0.1 * sign()).collect();
        let rows = (0..8).map(|_| row()).collect();
        let scales = fitted(rows, 30);
        assert!((scales.shared[0] - 0.09).abs() < 0.02, "{:?}", scales.shared);
        assert!((scales.noise - 0.0117).abs() < 0.001, "{}", scales.noise);
    }

    #[test]
    fn who_is_near_the_end_varies_less_but_never_too_little() {
        let design = Design::new(&grid(&[2], 4));
        let rows = vec![vec![1.0; 4], vec![1.0, 0.0, 1.0, 0.0]];
        let seen = Seen::of(4, rows, vec![1.0; 2]);
        let before = Scales::new(&design, 2, Tuning::default());
        let mut scales = before.clone();
        let now = Posterior::new(&seen, &design, &before).unwrap();
        scales.fit_grain(&seen, &now);
        // Complete rows have the means 1 and 0.5: variances 0.03, the least, and 0.25; 0.14 on average.
        assert!((scales.grain[0] - 0.03 / 0.14).abs() < 1e-9, "{:?}", scales.grain);
        assert!((scales.grain[1] - 0.25 / 0.14).abs() < 1e-9, "{:?}", scales.grain);
    }
}
