//! Latency of answers.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::Deserialize;
use std::time::Duration;

/// Latency distribution of answers: `{ kind = "fixed", ms = 500 }`,
/// `{ kind = "uniform", min_ms = 1200, max_ms = 2800 }` or
/// `{ kind = "lognormal", median_ms = 800, sigma = 0.4 }`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "LatencyFields")]
pub enum Latency {
    /// Constant latency.
    Fixed {
        /// Milliseconds.
        ms: f64,
    },
    /// Latency between two bounds, all values equally likely.
    Uniform {
        /// Minimum in milliseconds.
        min_ms: f64,
        /// Maximum in milliseconds.
        max_ms: f64,
    },
    /// Log-normal latency: mostly near the median, sometimes much longer.
    Lognormal {
        /// Median in milliseconds.
        median_ms: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Latency {
    /// Draws a latency.
    pub(crate) fn sample(&self, rng: &mut ChaCha8Rng) -> Duration {
        let ms = match *self {
            Latency::Fixed { ms } => ms,
            Latency::Uniform { min_ms, max_ms } => min_ms + (max_ms - min_ms) * rng.random::<f64>(),
            Latency::Lognormal { median_ms, sigma } => lognormal(median_ms, sigma, rng),
        };
        delay(ms / 1e3)
    }
}

/// Upper bound of a delay, so that sums of times do not overflow.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(1_000_000_000);

/// Converts seconds to a delay, limited to [`MAX_DELAY`].
pub(crate) fn delay(seconds: f64) -> Duration {
    self::seconds(seconds).min(MAX_DELAY)
}

/// Converts seconds to a duration. Negative numbers and NaN give zero; numbers out of range give
/// [`Duration::MAX`].
pub(crate) fn seconds(seconds: f64) -> Duration {
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    } else {
        Duration::ZERO
    }
}

/// Draws from a log-normal distribution.
pub(crate) fn lognormal(median: f64, sigma: f64, rng: &mut ChaCha8Rng) -> f64 {
    median * (sigma * standard_normal(rng)).exp()
}

/// Draws from the standard normal distribution.
pub fn standard_normal(rng: &mut ChaCha8Rng) -> f64 {
    // Box–Muller transform; `1 - u` keeps the logarithm away from zero.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Fields of a latency in a file. A tagged enum would lose the position of an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LatencyFields {
    kind: LatencyKind,
    ms: Option<f64>,
    min_ms: Option<f64>,
    max_ms: Option<f64>,
    median_ms: Option<f64>,
    sigma: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LatencyKind {
    Fixed,
    Uniform,
    Lognormal,
}

impl TryFrom<LatencyFields> for Latency {
    type Error = String;

    fn try_from(written: LatencyFields) -> Result<Latency, String> {
        let checked = |name: &str, value: f64| {
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(format!("`{name} = {value}` is not zero or a positive number"))
            }
        };
        let LatencyFields { kind, ms, min_ms, max_ms, median_ms, sigma } = written;
        match (kind, ms, min_ms, max_ms, median_ms, sigma) {
            (LatencyKind::Fixed, Some(ms), None, None, None, None) => {
                Ok(Latency::Fixed { ms: checked("ms", ms)? })
            }
            (LatencyKind::Uniform, None, Some(min_ms), Some(max_ms), None, None) => {
                let (min_ms, max_ms) = (checked("min_ms", min_ms)?, checked("max_ms", max_ms)?);
                if min_ms > max_ms {
                    return Err(format!("`min_ms = {min_ms}` is above `max_ms = {max_ms}`"));
                }
                Ok(Latency::Uniform { min_ms, max_ms })
            }
            (LatencyKind::Lognormal, None, None, None, Some(median_ms), Some(sigma)) => {
                Ok(Latency::Lognormal {
                    median_ms: checked("median_ms", median_ms)?,
                    sigma: checked("sigma", sigma)?,
                })
            }
            (LatencyKind::Fixed, ..) => Err("a fixed latency takes only `ms`".into()),
            (LatencyKind::Uniform, ..) => {
                Err("a uniform latency takes only `min_ms` and `max_ms`".into())
            }
            (LatencyKind::Lognormal, ..) => {
                Err("a lognormal latency takes only `median_ms` and `sigma`".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SeedKey;

    #[test]
    fn lognormal_draws_have_the_given_median_and_spread() {
        let latency = Latency::Lognormal { median_ms: 800.0, sigma: 0.4 };
        let mut rng = SeedKey::event(7, 0).rng("latency");
        let mut ms: Vec<f64> =
            (0..4001).map(|_| latency.sample(&mut rng).as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        assert!((ms[2000] / 800.0 - 1.0).abs() < 0.03, "median {}", ms[2000]);
        // One standard deviation up is the 84.13th percentile: 800 · e^0.4 = 1193.5.
        assert!((ms[3365] / 1193.5 - 1.0).abs() < 0.04, "upper {}", ms[3365]);
    }

    #[test]
    fn uniform_draws_fill_the_range() {
        let latency = Latency::Uniform { min_ms: 1200.0, max_ms: 2800.0 };
        let mut rng = SeedKey::event(7, 0).rng("latency");
        let ms: Vec<f64> =
            (0..4000).map(|_| latency.sample(&mut rng).as_secs_f64() * 1e3).collect();
        let mean = ms.iter().sum::<f64>() / ms.len() as f64;
        assert!((mean - 2000.0).abs() < 30.0, "mean {mean}");
        let below = ms.iter().filter(|ms| **ms < 1600.0).count();
        assert!((900..1100).contains(&below), "{below} of the lowest quarter");
        assert!(ms.iter().all(|ms| (1200.0..=2800.0).contains(ms)));
    }

    #[test]
    fn invalid_seconds_are_zero_and_delays_are_bounded() {
        assert_eq!(seconds(f64::NAN), Duration::ZERO);
        assert_eq!(seconds(-1.0), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::MAX);
        assert_eq!(seconds(0.25), Duration::from_millis(250));
        let mut rng = SeedKey::event(7, 0).rng("latency");
        for latency in [
            Latency::Fixed { ms: 1e300 },
            Latency::Lognormal { median_ms: 1e300, sigma: 0.0 },
            Latency::Lognormal { median_ms: 1.0, sigma: f64::MAX },
        ] {
            for _ in 0..20 {
                assert!(latency.sample(&mut rng) <= MAX_DELAY, "{latency:?}");
            }
        }
    }
}
