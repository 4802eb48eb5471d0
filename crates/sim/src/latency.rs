//! How long an answer takes.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::Deserialize;
use std::time::Duration;

/// How long answers take: `{ kind = "fixed", ms = 500 }` or
/// `{ kind = "lognormal", median_ms = 800, sigma = 0.4 }`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Latency {
    /// Always the same.
    Fixed {
        /// Milliseconds.
        ms: f64,
    },
    /// Mostly near the median, sometimes much longer.
    Lognormal {
        /// Half of the answers are faster than this many milliseconds.
        median_ms: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Latency {
    /// One latency.
    pub(crate) fn sample(&self, rng: &mut ChaCha8Rng) -> Duration {
        let ms = match *self {
            Latency::Fixed { ms } => ms,
            Latency::Lognormal { median_ms, sigma } => lognormal(median_ms, sigma, rng),
        };
        delay(ms / 1e3)
    }
}

/// No answer takes longer, so that times can be added without a thought.
const LONGEST_DELAY: Duration = Duration::from_secs(1_000_000_000);

/// How long an answer takes, from seconds.
pub(crate) fn delay(seconds: f64) -> Duration {
    self::seconds(seconds).min(LONGEST_DELAY)
}

/// A duration from seconds: what is negative or not a number is zero, what is too long is the
/// longest there is.
pub(crate) fn seconds(seconds: f64) -> Duration {
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    } else {
        Duration::ZERO
    }
}

/// One draw from a log-normal distribution.
pub(crate) fn lognormal(median: f64, sigma: f64, rng: &mut ChaCha8Rng) -> f64 {
    median * (sigma * normal(rng)).exp()
}

/// One draw from the standard normal distribution.
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    // Box and Muller's method; `1 - u` keeps the logarithm away from zero.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// What stands in a file. A tagged enum would lose the place of a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: Kind,
    ms: Option<f64>,
    median_ms: Option<f64>,
    sigma: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Fixed,
    Lognormal,
}

impl TryFrom<Written> for Latency {
    type Error = String;

    fn try_from(written: Written) -> Result<Latency, String> {
        let good = |name: &str, value: f64| {
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(format!("`{name} = {value}` is not zero or a positive number"))
            }
        };
        match written {
            Written { kind: Kind::Fixed, ms: Some(ms), median_ms: None, sigma: None } => {
                Ok(Latency::Fixed { ms: good("ms", ms)? })
            }
            Written {
                kind: Kind::Lognormal,
                ms: None,
                median_ms: Some(median_ms),
                sigma: Some(sigma),
            } => Ok(Latency::Lognormal {
                median_ms: good("median_ms", median_ms)?,
                sigma: good("sigma", sigma)?,
            }),
            Written { kind: Kind::Fixed, .. } => {
                Err("a fixed latency has `ms` and nothing else".into())
            }
            Written { kind: Kind::Lognormal, .. } => {
                Err("a lognormal latency has `median_ms` and `sigma` and nothing else".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn lognormal_has_its_median_and_spread() {
        let latency = Latency::Lognormal { median_ms: 800.0, sigma: 0.4 };
        let mut rng = Key::event(7, 0).rng("latency");
        let mut ms: Vec<f64> =
            (0..4001).map(|_| latency.sample(&mut rng).as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        assert!((ms[2000] / 800.0 - 1.0).abs() < 0.03, "median {}", ms[2000]);
        // One standard deviation up is the 84.13th percentile: 800 · e^0.4 = 1193.5.
        assert!((ms[3365] / 1193.5 - 1.0).abs() < 0.04, "upper {}", ms[3365]);
    }

    #[test]
    fn nonsense_is_no_wait_and_forever_is_bounded() {
        assert_eq!(seconds(f64::NAN), Duration::ZERO);
        assert_eq!(seconds(-1.0), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::MAX);
        assert_eq!(seconds(0.25), Duration::from_millis(250));
        let mut rng = Key::event(7, 0).rng("latency");
        for endless in [
            Latency::Fixed { ms: 1e300 },
            Latency::Lognormal { median_ms: 1e300, sigma: 0.0 },
            Latency::Lognormal { median_ms: 1.0, sigma: f64::MAX },
        ] {
            for _ in 0..20 {
                assert!(endless.sample(&mut rng) <= LONGEST_DELAY, "{endless:?}");
            }
        }
    }
}
