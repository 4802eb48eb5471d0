//! How much scores spread. Variances never start at zero: when all of the first answers are right,
//! every sample variance is 0, and a rule that believes it stops at once.

/// A variance with the weight that it has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread {
    squares: f64,
    freedom: f64,
}

/// What variances are drawn to before anything is known, and the weights.
const UNKNOWN: f64 = 0.1;
const POOL_WEIGHT: f64 = 8.0;

impl Spread {
    /// Of the values that are there.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Spread {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for value in values.filter(|value| !value.is_nan()) {
            count += 1.0;
            let before = value - mean;
            mean += before / count;
            squares += before * (value - mean);
        }
        Spread { squares, freedom: f64::max(count - 1.0, 0.0) }
    }

    /// Of the noise in scores, from what is left of them when everything else is taken out. The
    /// product has the noise's variance as its mean; the square of what is left has less.
    pub(super) fn of_noise(scores: &[f64], mean: f64, residuals: &[f64]) -> Spread {
        let cells = scores.iter().zip(residuals).filter(|(score, _)| !score.is_nan());
        let (squares, count) = cells.fold((0.0, 0.0_f64), |(sum, count), (score, left)| {
            (sum + (score - mean) * left, count + 1.0)
        });
        Spread { squares: f64::max(squares, 0.0), freedom: (count - 1.0).max(0.0) }
    }

    /// Drawn to what others have.
    pub(super) fn drawn_to(self, reference: f64) -> f64 {
        (self.squares + POOL_WEIGHT * reference) / (self.freedom + POOL_WEIGHT)
    }
}

/// What the variances of many have in common.
pub(super) fn pool<'a>(spreads: impl Iterator<Item = &'a Spread>, unknown: f64) -> f64 {
    let (mut squares, mut freedom, mut weight) = (0.0, 0.0, 0.0);
    for spread in spreads.filter(|spread| spread.freedom > 0.0) {
        squares += spread.squares;
        freedom += spread.freedom;
        weight += spread.freedom * spread.freedom;
    }
    if freedom == 0.0 {
        return UNKNOWN;
    }
    // The mean depth, by depth: all of them saw the same few datapoints, so that they do not count
    // as one sample.
    let depth = weight / freedom;
    (depth * squares / freedom + unknown * UNKNOWN) / (depth + unknown)
}
