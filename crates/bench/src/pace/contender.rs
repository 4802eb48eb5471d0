//! Schedulers of the comparison.

use super::cubic::Cubic;
use bakeoff_pace::{
    AdaptiveConfig, AdaptivePolicy, AutoConfig, AutoPolicy, FixedPolicy, Policy, ProactiveConfig,
    ProactivePolicy, ReactivePolicy, RetryAfter,
};
use bakeoff_sim::{Profile, Rate};
use std::fmt;
use std::str::FromStr;

/// A scheduler in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contender {
    /// The default strategy.
    Auto,
    /// The default strategy without tests of whether announced waits are necessary.
    AutoStrict,
    /// Adaptive concurrency limit.
    Adaptive,
    /// Waits one minute after a rejection.
    Reactive,
    /// Configured with the true limits.
    Proactive,
    /// Fixed concurrency limit.
    Fixed(u32),
    /// Send rate with CUBIC.
    Cubic,
}

impl Contender {
    /// Schedulers of the table.
    pub const ALL: [Contender; 8] = [
        Contender::Auto,
        Contender::AutoStrict,
        Contender::Adaptive,
        Contender::Reactive,
        Contender::Proactive,
        Contender::Fixed(10),
        Contender::Fixed(100),
        Contender::Cubic,
    ];

    pub(super) fn policy(self, profile: &Profile, ceiling: u32) -> Box<dyn Policy> {
        let auto = |retry_after| {
            Box::new(AutoPolicy::new(
                AutoConfig::default().connections(ceiling).retry_after(retry_after),
            ))
        };
        match self {
            Contender::Auto => auto(RetryAfter::Test),
            Contender::AutoStrict => auto(RetryAfter::Strict),
            Contender::Adaptive => {
                let mut config = AdaptiveConfig::default();
                config.bounds.max = ceiling.min(200);
                Box::new(AdaptivePolicy::new(config))
            }
            Contender::Reactive => Box::new(ReactivePolicy::new(Some(ceiling))),
            Contender::Proactive => Box::new(ProactivePolicy::new(true_limits(profile, ceiling))),
            Contender::Fixed(connections) => Box::new(FixedPolicy::new(connections.min(ceiling))),
            Contender::Cubic => Box::new(Cubic::new(ceiling)),
        }
    }
}

/// Returns the limits as the provider would document them.
fn true_limits(profile: &Profile, ceiling: u32) -> ProactiveConfig {
    // A cast from float to integer saturates.
    let per_minute = |rate: f64| ((rate * 60.0).floor() as u64).max(1);
    let limit = |rate: Option<Rate>| rate.map(|rate| per_minute(rate.rate_per_s));
    let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
    let bucket = profile.requests.map(|rate| rate.rate_per_s);
    let window = profile.window.map(|window| window.requests as f64 / window.seconds);
    let requests = [bucket, window].into_iter().flatten().reduce(f64::min);
    let limits = [profile.concurrency, profile.knee.map(|knee| knee.k)];
    let limit_in_flight =
        limits.into_iter().flatten().min().and_then(|limit| u32::try_from(limit).ok());
    let mut config = ProactiveConfig::default();
    config.rpm = requests.map(|rate| per_minute(rate - foreign));
    config.tpm = limit(profile.tokens);
    config.itpm = limit(profile.input_tokens_limit);
    config.otpm = limit(profile.output_tokens_limit);
    config.connections = Some(limit_in_flight.unwrap_or(ceiling).min(ceiling));
    config
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contender::Auto => f.pad("auto"),
            Contender::AutoStrict => f.pad("auto-strict"),
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
    fn known_names_parse_and_others_are_rejected() {
        for contender in Contender::ALL {
            assert_eq!(contender.to_string().parse(), Ok(contender));
        }
        assert_eq!("fixed-7".parse(), Ok(Contender::Fixed(7)));
        let error = "fixed-0".parse::<Contender>().unwrap_err();
        assert!(error.starts_with("`fixed-0` is not one of auto, auto-strict, "), "{error}");
    }

    #[test]
    fn true_limits_are_the_strictest_ones() {
        let profile = Profile::parse_file_text(
            "[[profile]]\nrequests = { rate_per_s = 5, burst = 5 }\nconcurrency = 30\n\
             window = { requests = 100, seconds = 10 }\nforeign = { requests_per_s = 2 }\n\
             tokens = { rate_per_s = 100, burst = 1000 }",
        )
        .unwrap()
        .remove(0);
        let limits = true_limits(&profile, 400);
        assert_eq!((limits.rpm, limits.tpm, limits.connections), (Some(180), Some(6000), Some(30)));
    }
}
