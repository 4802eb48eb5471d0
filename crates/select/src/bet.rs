//! A bet on a bounded mean, with values drawn without replacement.

/// Largest share of the wealth that a single bet puts at risk.
const MAX_STAKE: f64 = 0.75;
/// Prior variance of a paired difference, and the number of values it weighs as much as.
const PRIOR_VARIANCE: f64 = 0.05;
const PRIOR_WEIGHT: f64 = 4.0;

/// A bet that the mean of a fixed number of values from 0 to 1 is below one half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bet {
    total: f64,
    observed: f64,
    sum: f64,
    squares: f64,
    /// Logarithm of the wealth.
    log_wealth: f64,
    /// Largest such logarithm so far; infinite once the opposite is impossible.
    max_log_wealth: f64,
    /// Logarithm of the wealth that wins the bet.
    log_target: f64,
}

impl Bet {
    pub(crate) fn new(total: usize, log_target: f64) -> Bet {
        Bet {
            total: total as f64,
            observed: 0.0,
            sum: 0.0,
            squares: 0.0,
            log_wealth: 0.0,
            max_log_wealth: 0.0,
            log_target,
        }
    }

    /// Adds the next value. The stake depends only on the values before it.
    pub(crate) fn observe(&mut self, value: f64) {
        // If the mean of all values is at least one half, the mean of the remaining ones is at least this.
        let mean = (self.total / 2.0 - self.sum) / (self.total - self.observed);
        if mean > 1.0 {
            self.max_log_wealth = f64::INFINITY;
        } else if mean > 0.0 {
            let middle = (self.sum + PRIOR_WEIGHT / 2.0) / (self.observed + PRIOR_WEIGHT);
            let variance =
                (self.squares + PRIOR_WEIGHT * PRIOR_VARIANCE) / (self.observed + PRIOR_WEIGHT);
            let stake = (2.0 * self.log_target / (variance * self.total / 2.0)).sqrt();
            // Not even the worst value, 1, may take all of the wealth.
            let stake = stake.min(MAX_STAKE / (1.0 - mean).max(1e-9));
            self.log_wealth += (stake * (mean - value)).ln_1p();
            self.squares += (value - middle).powi(2);
        }
        self.observed += 1.0;
        self.sum += value;
        let is_certain = self.sum + (self.total - self.observed) < self.total / 2.0 - 1e-9;
        let reached = if is_certain { f64::INFINITY } else { self.log_wealth };
        self.max_log_wealth = self.max_log_wealth.max(reached);
    }

    pub(crate) fn is_won(&self) -> bool {
        self.max_log_wealth >= self.log_target
    }

    /// Upper bound of the probability of so much wealth if the mean is at least one half (Ville's inequality).
    pub(crate) fn error_probability(&self) -> f64 {
        (-self.max_log_wealth).exp()
    }
}
