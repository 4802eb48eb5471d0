//! Who competes.

use super::cubic::Cubic;
use bakeoff_pace::{
    AdaptiveBounds, AdaptiveConfig, AdaptivePolicy, AutoConfig, AutoPolicy, FixedPolicy, Policy,
    ProactiveConfig, ProactivePolicy, ReactivePolicy, RetryAfter,
};
use bakeoff_sim::{Profile, Rate};
use std::fmt;
use std::str::FromStr;

/// A scheduler in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contender {
    /// Ours.
    Auto,
    /// Ours, with leave to test whether announced waits are needed.
    AutoTest,
    /// A window that adapts.
    Adaptive,
    /// Waits a minute after a rejection.
    Reactive,
    /// Told the truth about the limits.
    Proactive,
    /// A window of that size.
    Fixed(u32),
    /// A send rate along a cubic.
    Cubic,
}

impl Contender {
    /// Those of the table.
    pub const ALL: [Contender; 8] = [
        Contender::Auto,
        Contender::AutoTest,
        Contender::Adaptive,
        Contender::Reactive,
        Contender::Proactive,
        Contender::Fixed(10),
        Contender::Fixed(100),
        Contender::Cubic,
    ];

    pub(super) fn policy(self, profile: &Profile, ceiling: u32) -> Box<dyn Policy> {
        let auto = |retry_after| {
            Box::new(AutoPolicy::new(AutoConfig {
                connections: ceiling,
                retry_after,
                ..AutoConfig::default()
            }))
        };
        match self {
            Contender::Auto => auto(RetryAfter::Strict),
            Contender::AutoTest => auto(RetryAfter::Test),
            Contender::Adaptive => Box::new(AdaptivePolicy::new(AdaptiveConfig {
                bounds: AdaptiveBounds { max: ceiling.min(200), ..AdaptiveBounds::default() },
                ..AdaptiveConfig::default()
            })),
            Contender::Reactive => Box::new(ReactivePolicy::new(Some(ceiling))),
            Contender::Proactive => Box::new(ProactivePolicy::new(truth(profile, ceiling))),
            Contender::Fixed(connections) => Box::new(FixedPolicy::new(connections.min(ceiling))),
            Contender::Cubic => Box::new(Cubic::new(ceiling)),
        }
    }
}

/// What somebody would know who has read the provider's price list.
fn truth(profile: &Profile, ceiling: u32) -> ProactiveConfig {
    // A cast from float to integer stays within the integer's bounds.
    let per_minute = |rate: f64| ((rate * 60.0).floor() as u64).max(1);
    let limit = |rate: Option<Rate>| rate.map(|rate| per_minute(rate.rate_per_s));
    let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
    let bucket = profile.requests.map(|rate| rate.rate_per_s);
    let window = profile.window.map(|window| window.requests as f64 / window.seconds);
    let requests = [bucket, window].into_iter().flatten().reduce(f64::min);
    let places = [profile.concurrency, profile.knee.map(|knee| knee.k)];
    let places = places.into_iter().flatten().min().and_then(|places| u32::try_from(places).ok());
    ProactiveConfig {
        rpm: requests.map(|rate| per_minute(rate - foreign)),
        tpm: limit(profile.tokens),
        itpm: limit(profile.input_tokens_limit),
        otpm: limit(profile.output_tokens_limit),
        connections: Some(places.unwrap_or(ceiling).min(ceiling)),
        ..ProactiveConfig::default()
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contender::Auto => f.pad("auto"),
            Contender::AutoTest => f.pad("auto-test"),
            Contender::Adaptive => f.pad("adaptive"),
            Contender::Reactive => f.pad("reactive"),
            Contender::Proactive => f.pad("proactive"),
            Contender::Fixed(connections) => f.pad(&format!("fixed-{connections}")),
            Contender::Cubic => f.pad("cubic"),
        }
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Contender, String> {
        if let Some(contender) = Contender::ALL.into_iter().find(|one| one.to_string() == text) {
            return Ok(contender);
        }
        let number = text.strip_prefix("fixed-").and_then(|number| number.parse().ok());
        match number.filter(|number| *number > 0) {
            Some(number) => Ok(Contender::Fixed(number)),
            None => {
                let names: Vec<_> = Contender::ALL.iter().map(Contender::to_string).collect();
                Err(format!("`{text}` is not one of {}, or fixed-N", names.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_others_are_refused() {
        for contender in Contender::ALL {
            assert_eq!(contender.to_string().parse(), Ok(contender));
        }
        assert_eq!("fixed-7".parse(), Ok(Contender::Fixed(7)));
        let error = "fixed-0".parse::<Contender>().unwrap_err();
        assert!(error.starts_with("`fixed-0` is not one of auto, auto-test, "), "{error}");
    }

    #[test]
    fn the_truth_is_the_tightest_of_all_limits() {
        let profile = Profile::parse_file_text(
            "[[profile]]\nrequests = { rate_per_s = 5, burst = 5 }\nconcurrency = 30\n\
             window = { requests = 100, seconds = 10 }\nforeign = { requests_per_s = 2 }\n\
             tokens = { rate_per_s = 100, burst = 1000 }",
        )
        .unwrap()
        .remove(0);
        let truth = truth(&profile, 400);
        assert_eq!((truth.rpm, truth.tpm, truth.connections), (Some(180), Some(6000), Some(30)));
    }
}
