//! One bet, without replacement.

/// Wealth that is put at risk at most, as a share.
const MOST: f64 = 0.75;
/// Before anything is seen: the variance of a paired difference, and its weight.
const UNKNOWN: f64 = 0.05;
const UNKNOWN_WEIGHT: f64 = 4.0;

/// A bet that the mean of N values from 0 to 1 is below a half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bet {
    total: f64,
    seen: f64,
    sum: f64,
    squares: f64,
    /// Logarithms of the wealth and of what wins.
    wealth: f64,
    needed: f64,
    won: bool,
}

impl Bet {
    pub(crate) fn new(total: usize, needed: f64) -> Bet {
        let total = total as f64;
        Bet { total, seen: 0.0, sum: 0.0, squares: 0.0, wealth: 0.0, needed, won: false }
    }

    /// Sees the next value. What is bet on it depends on the values before it alone.
    pub(crate) fn see(&mut self, value: f64) {
        // If the mean of all is a half or more, that of those that are left is this or more.
        let mean = (self.total / 2.0 - self.sum) / (self.total - self.seen);
        if mean > 1.0 {
            self.won = true;
        } else if mean > 0.0 {
            let middle = (self.sum + UNKNOWN_WEIGHT / 2.0) / (self.seen + UNKNOWN_WEIGHT);
            let variance = (self.squares + UNKNOWN_WEIGHT * UNKNOWN) / (self.seen + UNKNOWN_WEIGHT);
            let stake = (2.0 * self.needed / (variance * self.total / 2.0)).sqrt();
            // No value may lose all: the worst is 1.
            let stake = stake.min(MOST / (1.0 - mean).max(1e-9));
            self.wealth += (stake * (mean - value)).ln_1p();
            self.squares += (value - middle).powi(2);
        }
        self.seen += 1.0;
        self.sum += value;
        let cannot = self.sum + (self.total - self.seen) < self.total / 2.0 - 1e-9;
        self.won |= cannot || self.wealth >= self.needed;
    }

    pub(crate) fn is_won(&self) -> bool {
        self.won
    }
}
