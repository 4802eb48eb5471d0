//! Interval for the mean of bounded values.
//!
//! Scores pile up near 0 and 1, where Student's t interval leaves the range and the percentile bootstrap
//! is too narrow. Betting makes no assumption about their distribution.

use crate::rate::Interval;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Capital that rejects a mean on one side: 2/0.05, because each side has half of the error.
const REJECTING_CAPITAL: f64 = 40.0;

/// Share of the capital that a bet may lose. Of 0.5, 0.75 and 0.9, it gives the narrowest intervals over
/// uniform, skewed and binary scores of 10 to 50 cases.
const MAX_LOSS: f64 = 0.75;

/// Orders of the values over which the capital is averaged. With 20, the ends of an interval of 50 cases
/// differ by about 0.001 between seeds; with one, by up to 0.005.
const MAX_ORDERS: usize = 20;

/// Values in all orders together, above which there are fewer orders: the order matters less the more
/// values there are.
const MAX_ORDERED_VALUES: usize = 20_000;

/// Distance from the exact ends.
const PRECISION: f64 = 1e-9;

/// Factors that are multiplied before a logarithm is taken. A factor is at most 1/`PRECISION`, so their
/// product is finite.
const FACTORS_PER_LOGARITHM: usize = 8;

/// Returns the 95 % interval of the mean of values between 0 and 1: the hedged betting interval of
/// Waudby-Smith & Ramdas (2024), with the bets of their section 4.3.
///
/// A mean is rejected if bets against it would have multiplied their capital by 40. Bets depend on the
/// values before, so the order matters; the capital is averaged over seeded orders of the sorted values,
/// which is as valid and depends on the values alone.
pub(crate) fn interval(values: &[f64]) -> Interval {
    let mut values: Vec<f64> = values.iter().map(|value| value.clamp(0.0, 1.0)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let orders = (MAX_ORDERED_VALUES / values.len().max(1)).clamp(1, MAX_ORDERS);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let games: Vec<Game> = (0..orders)
        .map(|_| {
            values.shuffle(&mut rng);
            Game::new(&values)
        })
        .collect();
    ends(&games)
}

/// Returns the interval of all means that the average capital of the games does not reject.
fn ends(games: &[Game]) -> Interval {
    let mirrored: Vec<Game> = games.iter().map(Game::mirrored).collect();
    Interval { low: lower_end(games), high: 1.0 - lower_end(&mirrored) }
}

/// Returns the largest mean that is rejected as too low; 0 if there is none.
fn lower_end(games: &[Game]) -> f64 {
    let is_rejected = |mean: f64| {
        let capitals: Vec<f64> = games.iter().map(|game| game.ln_capital(mean)).collect();
        let largest = capitals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = capitals.iter().map(|capital| (capital - largest).exp()).sum();
        largest + (sum / games.len() as f64).ln() >= REJECTING_CAPITAL.ln()
    };
    // The capital falls as the mean rises, and the mean of the values themselves is not rejected.
    let (mut rejected, mut accepted) = (0.0, games.first().map_or(0.0, Game::mean));
    while accepted - rejected > PRECISION {
        let middle = 0.5 * (rejected + accepted);
        if is_rejected(middle) {
            rejected = middle;
        } else {
            accepted = middle;
        }
    }
    rejected
}

/// Values in one order, with the bet before each of them.
struct Game {
    rounds: Vec<Round>,
}

struct Round {
    value: f64,
    /// Share of the capital per unit of difference, before it is limited by [`MAX_LOSS`].
    bet: f64,
}

impl Game {
    /// Bets are optimal for the variance of the values before; one imaginary value with mean 1/2 and
    /// variance 1/4 starts the estimates.
    fn new(values: &[f64]) -> Game {
        let scale = 2.0 * REJECTING_CAPITAL.ln() / values.len() as f64;
        let (mut sum, mut squares, mut seen) = (0.5, 0.25, 1.0);
        let rounds = values
            .iter()
            .map(|&value| {
                let bet = (scale * seen / squares).sqrt();
                seen += 1.0;
                sum += value;
                let distance: f64 = value - sum / seen;
                squares += distance * distance;
                Round { value, bet }
            })
            .collect();
        Game { rounds }
    }

    /// Returns the game with each value subtracted from 1; the bets are the same.
    fn mirrored(&self) -> Game {
        let mirrored = |round: &Round| Round { value: 1.0 - round.value, bet: round.bet };
        Game { rounds: self.rounds.iter().map(mirrored).collect() }
    }

    fn mean(&self) -> f64 {
        self.rounds.iter().map(|round| round.value).sum::<f64>() / self.rounds.len() as f64
    }

    /// Returns the logarithm of the capital after bets that the values exceed `mean`.
    fn ln_capital(&self, mean: f64) -> f64 {
        let largest_bet = MAX_LOSS / mean;
        let factor = |round: &Round| 1.0 + round.bet.min(largest_bet) * (round.value - mean);
        let product = |rounds: &[Round]| rounds.iter().map(factor).product::<f64>().ln();
        self.rounds.chunks(FACTORS_PER_LOGARITHM).map(product).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIX: [f64; 6] = [0.9, 0.4, 0.75, 1.0, 0.6, 0.85];
    const TWELVE: [f64; 12] = [0.2, 0.9, 0.55, 0.7, 0.95, 0.8, 0.35, 1.0, 0.6, 0.75, 0.85, 0.5];

    /// Reference values: confseq 0.0.11, `betting_cs` with `lambda_predmix_eb(alpha=0.025, fixed_n=n)`,
    /// `trunc_scale=0.75`, `m_trunc=True`, on a grid of 1e-5; a bisection in NumPy gave the other digits.
    #[test]
    fn one_order_agrees_with_confseq() {
        let alternating: Vec<f64> = (0..30).map(|number| f64::from((number + 1) % 2)).collect();
        let spread: Vec<f64> =
            (0..60).map(|number| (f64::from(number * 37 % 60) + 0.5) / 60.0).collect();
        let table: [(&[f64], f64, f64); 7] = [
            (&SIX, 0.339311, 1.0),
            (&TWELVE, 0.433831, 0.874850),
            (&[0.7; 2], 0.0, 1.0),
            (&[0.7; 10], 0.438917, 0.827206),
            (&[1.0; 10], 0.627024, 1.0),
            (&alternating, 0.261835, 0.730779),
            (&spread, 0.403019, 0.604865),
        ];
        for (values, low, high) in table {
            let found = ends(&[Game::new(values)]);
            crate::testing::near(found.low, low);
            crate::testing::near(found.high, high);
        }
    }

    #[test]
    fn order_of_the_values_does_not_matter() {
        let mut reversed = TWELVE;
        reversed.reverse();
        assert_eq!(interval(&TWELVE), interval(&reversed));
        let one_order = ends(&[Game::new(&TWELVE)]);
        let averaged = interval(&TWELVE);
        assert!((averaged.low - one_order.low).abs() < 0.02, "{averaged:?}");
        assert!((averaged.high - one_order.high).abs() < 0.02, "{averaged:?}");
    }

    #[test]
    fn equal_values_have_an_interval_with_a_width() {
        assert_eq!(interval(&[0.7; 2]), Interval::UNIT);
        let ten = interval(&[0.7; 10]);
        assert!(ten.low < 0.5 && ten.high > 0.8, "{ten:?}");
        assert_eq!(interval(&[0.0; 10]).low, 0.0);
        assert_eq!(interval(&[1.0; 10]).high, 1.0);
    }

    /// 100 000 cases; a slow algorithm would be noticeable even in a debug build.
    #[test]
    fn large_runs_have_narrow_intervals() {
        let values: Vec<f64> = (0..100_000).map(|number| f64::from(number % 101) / 100.0).collect();
        let found = interval(&values);
        // Close to the asymptotic half width 0.2915·sqrt(2·ln 40)/sqrt(100 000) = 0.0025.
        assert!(found.contains(0.5), "{found:?}");
        assert!((found.high - found.low - 0.005).abs() < 5e-4, "{found:?}");
    }

    proptest! {
        #[test]
        fn interval_is_in_range_and_contains_the_mean(
            values in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0_f64..=1.0], 1..60),
        ) {
            let found = interval(&values);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!(0.0 <= found.low && found.high <= 1.0, "{found:?}");
            prop_assert!(found.low <= mean + 1e-9 && mean - 1e-9 <= found.high, "{found:?}");
            prop_assert!(found.high - found.low > 0.01, "{found:?}");
            let failures: Vec<f64> = values.iter().map(|value| 1.0 - value).collect();
            let mirrored = interval(&failures);
            // The orders differ, because the values are sorted the other way.
            prop_assert!((mirrored.low + found.high - 1.0).abs() < 0.05, "{mirrored:?} {found:?}");
        }
    }
}
