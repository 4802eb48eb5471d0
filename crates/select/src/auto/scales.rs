//! How much everything varies: fitted to what was seen, and never to less than was thought before.

use super::posterior::Posterior;
use super::seen::{Design, Seen};
use super::tuning::Tuning;

/// Variances of the model.
#[derive(Debug, Clone)]
pub(super) struct Scales {
    /// Of a datapoint's difficulty, and of the habits of each role's models.
    pub(super) shared: Vec<f64>,
    /// Of the effects; the first is the overall mean's.
    pub(super) effects: Vec<f64>,
    /// Where the overall mean is thought to be.
    pub(super) centre: f64,
    /// Of a combination's own effect: typically, and for each.
    pub(super) typical: f64,
    pub(super) own: Vec<f64>,
    /// Chance that the own effect is from the wide tail.
    pub(super) far: Vec<f64>,
    /// Of a cell's noise, for a combination of load 1.
    pub(super) noise: f64,
    /// How strongly datapoints and noise tell on each combination; about 1.
    pub(super) load: Vec<f64>,
    pub(super) grain: Vec<f64>,
    /// Scores end at 0 and 1, and effects flatten out there: `θ = base + slope·effects + own`.
    pub(super) base: Vec<f64>,
    pub(super) slope: Vec<f64>,
    tuning: Tuning,
}

/// What variances are thought to be before anything is seen: those of answers that are right or
/// wrong, shared out evenly.
const SHARED: f64 = 0.05;
const NOISE: f64 = 0.1;
const EFFECT: f64 = 0.01;

impl Scales {
    pub(super) fn new(design: &Design, arms: usize, tuning: Tuning) -> Scales {
        let mut effects = vec![EFFECT; design.families];
        effects[0] = 1.0;
        Scales {
            shared: vec![SHARED; design.families],
            effects,
            centre: 0.5,
            typical: tuning.own_guess.powi(2),
            own: vec![tuning.own_guess.powi(2); arms],
            far: vec![tuning.tail.0; arms],
            noise: NOISE,
            load: vec![1.0; arms],
            grain: vec![1.0; arms],
            base: vec![0.0; arms],
            slope: vec![1.0; arms],
            tuning,
        }
    }

    pub(super) fn noise_of(&self, arm: usize) -> f64 {
        self.noise * self.grain[arm].powi(2)
    }

    /// One step towards the scales that explain what was seen.
    pub(super) fn improve(&mut self, seen: &Seen, design: &Design, now: &Posterior) {
        self.fit_datapoints(seen, design, now);
        self.fit_effects(design, now);
        if self.tuning.link > 0.0 {
            self.fit_slopes(seen, design, now);
        }
        self.fit_own(now);
        self.fit_loads(seen, now);
    }

    fn fit_datapoints(&mut self, seen: &Seen, design: &Design, now: &Posterior) {
        let columns = design.columns();
        // About their mean: were all of them thought to be easy by mistake, they would seem to vary,
        // and the more they vary the easier it is to believe that all of them were easy.
        let mut sums = vec![(0.0, 0.0, 0.0); columns];
        let mut known = vec![0.0; design.families];
        let (mut noise, mut cells) = (0.0, 0.0);
        let front = seen.blocks.last().map_or(1.0, |block| block.to as f64);
        // A mean was taken out of what the datapoints are like.
        let freedom = (front - 1.0).max(0.5) / front;
        for (number, block) in seen.blocks.iter().enumerate() {
            let covariance = &now.datapoint[number];
            for column in 0..columns {
                let family = design.family[column];
                let share = 1.0 - covariance[(column, column)] / self.shared[family];
                known[family] += block.len() * share * freedom;
                cells -= block.len() * share;
            }
            for at in block.from..block.to {
                let mut pull = nalgebra::DVector::<f64>::zeros(columns);
                for &arm in &block.arms {
                    let gap = seen.rows[arm][at] - now.theta[arm];
                    let weight = self.load[arm] * gap * seen.present[arm] / self.noise_of(arm);
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
                    let left = seen.rows[arm][at] - now.theta[arm] - self.load[arm] * told;
                    noise += left * left / self.grain[arm].powi(2);
                    cells += seen.present[arm];
                }
            }
        }
        let mut squares = vec![0.0; design.families];
        for (column, (count, sum, square)) in sums.into_iter().enumerate() {
            squares[design.family[column]] += (square - sum * sum / f64::max(count, 1.0)).max(0.0);
        }
        // Means were taken out of the noise as well.
        let taken: f64 = (0..now.own.len()).map(|arm| 1.0 - now.own_variance[arm] / self.own[arm]).sum();
        cells = (cells - taken.max(0.0)).max(1.0);
        let weight = self.tuning.doubt;
        for family in 0..design.families {
            let seen = squares[family] + weight * SHARED;
            self.shared[family] = (seen / (known[family].max(0.0) + weight)).clamp(1e-4, 1e6);
        }
        self.noise = ((noise + weight * NOISE) / (cells + weight)).clamp(1e-5, 1e6);
    }

    fn fit_effects(&mut self, design: &Design, now: &Posterior) {
        for family in 1..design.families {
            let (mut squares, mut known) = (0.0, 0.0_f64);
            for column in (0..design.columns()).filter(|&c| design.family[c] == family) {
                squares += now.effects[column].powi(2) + now.effect_variance[column];
                known += 1.0;
            }
            let weight = self.tuning.doubt_effects;
            let seen = squares + weight * EFFECT;
            self.effects[family] = (seen / (known.max(0.0) + weight)).max(1e-5);
        }
    }

    /// The tangent of a logistic curve, of slope 1 in the middle, at where the effects lead.
    fn fit_slopes(&mut self, seen: &Seen, design: &Design, now: &Posterior) {
        if !seen.rows.iter().flatten().all(|value| (0.0..=1.0).contains(value)) {
            return;
        }
        for arm in 0..self.slope.len() {
            let sum: f64 = design.loads[arm].iter().map(|&column| now.effects[column]).sum();
            let at = sum.clamp(0.5 - self.tuning.link, 0.5 + self.tuning.link);
            let height = 1.0 / (1.0 + (-4.0 * (at - 0.5)).exp());
            self.slope[arm] = 4.0 * height * (1.0 - height);
            self.base[arm] = height - self.slope[arm] * at;
        }
    }

    fn width(&self, arm: usize) -> f64 {
        self.slope[arm].max(self.tuning.width)
    }

    /// The own effects have a heavy tail: each is a typical one, or one of a wide kind.
    fn fit_own(&mut self, now: &Posterior) {
        let (weight, wide) = (self.tuning.tail.0, self.tuning.tail.1.powi(2));
        let (mut squares, mut known) = (0.0, 0.0);
        for arm in 0..now.own.len() {
            let near = 1.0 - self.far[arm];
            squares +=
                near * (now.own[arm].powi(2) + now.own_variance[arm]) / self.width(arm).powi(2);
            known += near;
        }
        let doubt = self.tuning.doubt_own;
        let least = self.tuning.own.powi(2);
        self.typical = ((squares + doubt * self.tuning.own_guess.powi(2)) / (known + doubt)).max(least);
        for arm in 0..now.own.len() {
            // What the scores alone say of it: the belief without what was believed before.
            let told = (1.0 / now.own_variance[arm] - 1.0 / self.own[arm]).max(1e-9);
            let mean = now.own[arm] / now.own_variance[arm] / told;
            let density = |variance: f64| (-0.5 * mean * mean / variance).exp() / variance.sqrt();
            let typical = self.typical_of(arm);
            let near = (1.0 - weight) * density(typical + 1.0 / told);
            let far = weight * density(typical + wide + 1.0 / told);
            self.far[arm] = far / (near + far).max(1e-300);
            let precision = (1.0 - self.far[arm]) / typical + self.far[arm] / (typical + wide);
            self.own[arm] = 1.0 / precision;
        }
    }

    /// Variance of an own effect that is not from the tail.
    pub(super) fn typical_of(&self, arm: usize) -> f64 {
        self.typical * self.width(arm).powi(2)
    }

    /// Scores near the ends of their range vary less.
    fn fit_loads(&mut self, seen: &Seen, now: &Posterior) {
        let inside = seen.rows.iter().flatten().all(|value| (0.0..=1.0).contains(value));
        if !inside || self.tuning.loads == 0.0 {
            return;
        }
        let shape = |arm: usize| {
            let mean = now.means[arm].clamp(0.0, 1.0);
            (mean * (1.0 - mean)).max(self.tuning.floor)
        };
        let spread = |row: &[f64]| {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            row.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        let squares: Vec<f64> = seen.rows.iter().map(|row| spread(row)).collect();
        let freedom = |arm: usize| seen.depth(arm) as f64 - 1.0;
        let arms = seen.rows.len();
        let (mut sum, mut shapes, mut count) = (1.0, 4.0 * 0.25, 4.0);
        for arm in 0..arms {
            sum += squares[arm];
            shapes += freedom(arm) * shape(arm);
            count += freedom(arm);
        }
        let (scale, pooled) = (sum / shapes, sum / count);
        for arm in 0..arms {
            let weight = self.tuning.loads;
            let variance =
                (squares[arm] + weight * scale * shape(arm)) / (freedom(arm) + weight);
            self.grain[arm] = (variance / pooled).max(1e-3).sqrt();
            self.load[arm] = self.grain[arm].powf(self.tuning.lam);
        }
    }
}
