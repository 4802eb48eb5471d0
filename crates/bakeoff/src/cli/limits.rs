//! Combination of the limit arguments into overrides, and detection of contradictions.

use crate::arguments::LimitArguments;
use crate::error::UsageError;
use bakeoff_pace::{AdaptiveConnections, Connections, LimitOverrides, Strategy};

/// A strategy with the option that selects it.
struct StrategyOption {
    option: String,
    strategy: Strategy,
    connections: Option<Connections>,
}

/// Returns the limits that replace those of the suite.
pub(crate) fn overrides(arguments: &LimitArguments) -> Result<LimitOverrides, UsageError> {
    let options = strategy_options(arguments)?;
    for (index, one) in options.iter().enumerate() {
        for other in &options[index + 1..] {
            if one.strategy != other.strategy {
                return Err(contradiction(one, &other.option, &format!("is {}", other.strategy)));
            }
        }
        // Only these strategies use limits per minute.
        let uses_rates = matches!(one.strategy, Strategy::Auto | Strategy::Proactive);
        let rates = [("--rpm", arguments.rpm), ("--tpm", arguments.tpm)];
        let given = rates.into_iter().find_map(|(option, rate)| Some((option, rate?)));
        if let (false, Some((option, rate))) = (uses_rates, given) {
            return Err(contradiction(
                one,
                &format!("{option} {rate}"),
                "is for auto and proactive",
            ));
        }
    }
    let is_auto = options.first().is_none_or(|option| option.strategy == Strategy::Auto);
    if let (Some(_), false, Some(one)) = (arguments.retry_after, is_auto, options.first()) {
        return Err(contradiction(one, "--retry-after", "is for auto"));
    }
    let mut overrides = LimitOverrides::default();
    overrides.retry_after = arguments.retry_after.map(Into::into);
    overrides.strategy = options.first().map(|option| option.strategy);
    overrides.connections = options.iter().find_map(|option| option.connections);
    overrides.rpm = arguments.rpm;
    overrides.tpm = arguments.tpm;
    overrides.max_retries = arguments.max_retries;
    overrides.timeout = arguments.timeout;
    overrides.attempt_timeout = arguments.attempt_timeout;
    Ok(overrides)
}

fn contradiction(one: &StrategyOption, option: &str, meaning: &str) -> UsageError {
    let (first, strategy) = (&one.option, one.strategy);
    UsageError::new(format!("{first} contradicts {option}: one is {strategy}, the other {meaning}"))
        .hint("omit one of them")
}

fn strategy_options(arguments: &LimitArguments) -> Result<Vec<StrategyOption>, UsageError> {
    let mut options = Vec::new();
    let named = match &arguments.rate_strategy {
        None => None,
        Some(name) => Some(name.parse::<Strategy>().map_err(|error| {
            UsageError::new(format!("--rate-strategy: {error}"))
                .hint("`auto` learns the limits of the provider")
        })?),
    };
    if let Some(limit) = arguments.max_connections {
        options.push(StrategyOption {
            option: format!("--max-connections {limit}"),
            // With a named strategy, it is the upper bound.
            strategy: named.unwrap_or(Strategy::Fixed),
            connections: Some(Connections::Max(limit)),
        });
    }
    if let Some(text) = &arguments.adaptive_connections {
        let option = format!("--adaptive-connections {text}");
        let (strategy, connections) = match text.parse() {
            Ok(AdaptiveConnections::On(bounds)) => {
                (Strategy::Adaptive, Some(Connections::Range(bounds)))
            }
            Ok(AdaptiveConnections::Off) => (Strategy::Fixed, None),
            Err(error) => {
                return Err(UsageError::new(format!("{option}: {error}")).hint(
                    "valid values: true, false, MAX, MIN-MAX or MIN-START-MAX, such as 4-20-80",
                ));
            }
        };
        options.push(StrategyOption { option, strategy, connections });
    }
    if let Some(strategy) = named {
        let option = format!("--rate-strategy {strategy}");
        options.push(StrategyOption { option, strategy, connections: None });
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_pace::{AdaptiveBounds, RetryAfter};
    use clap::{Args, FromArgMatches};

    fn read(
        max_connections: Option<u32>,
        adaptive: Option<&str>,
        strategy: Option<&str>,
        rpm: Option<u64>,
    ) -> Result<LimitOverrides, String> {
        overrides(&LimitArguments {
            max_connections,
            adaptive_connections: adaptive.map(str::to_owned),
            rate_strategy: strategy.map(str::to_owned),
            rpm,
            ..LimitArguments::default()
        })
        .map_err(|error| error.message)
    }

    #[test]
    fn each_option_selects_a_strategy() {
        let chosen = |strategy, connections| {
            let mut overrides = LimitOverrides::default();
            overrides.strategy = strategy;
            overrides.connections = connections;
            Ok(overrides)
        };
        let limit = Some(Connections::Max(7));
        let between =
            |min, start, max| Some(Connections::Range(AdaptiveBounds { min, start, max }));
        let (fixed, adaptive) = (Some(Strategy::Fixed), Some(Strategy::Adaptive));
        assert_eq!(read(None, None, None, None), chosen(None, None));
        assert_eq!(read(Some(7), None, None, None), chosen(fixed, limit));
        assert_eq!(read(Some(7), Some("false"), Some("fixed"), None), chosen(fixed, limit));
        assert_eq!(read(None, Some("false"), None, None), chosen(fixed, None));
        assert_eq!(read(None, Some("true"), None, None), chosen(adaptive, between(4, 20, 200)));
        let spec = read(None, Some("4-40-80"), Some("adaptive"), None);
        assert_eq!(spec, chosen(adaptive, between(4, 40, 80)));
        assert_eq!(read(None, None, Some("none"), None), chosen(Some(Strategy::None), None));
        assert_eq!(read(Some(7), None, Some("AUTO"), None), chosen(Some(Strategy::Auto), limit));
    }

    #[test]
    fn contradicting_options_are_both_named() {
        let error = |max, adaptive, strategy, rpm| read(max, adaptive, strategy, rpm).unwrap_err();
        assert_eq!(
            error(Some(5), Some("true"), None, None),
            "--max-connections 5 contradicts --adaptive-connections true: one is fixed, the other is adaptive"
        );
        assert_eq!(
            error(None, Some("false"), Some("adaptive"), None),
            "--adaptive-connections false contradicts --rate-strategy adaptive: one is fixed, the other is adaptive"
        );
        assert_eq!(
            error(Some(5), None, None, Some(60)),
            "--max-connections 5 contradicts --rpm 60: one is fixed, the other is for auto and proactive"
        );
        assert_eq!(
            error(None, Some("100-50"), None, None),
            "--adaptive-connections 100-50: max 50 is below min 100"
        );
        let unknown = "quick".parse::<Strategy>().unwrap_err();
        assert_eq!(error(None, None, Some("quick"), None), format!("--rate-strategy: {unknown}"));
    }

    /// Parses the words as arguments.
    fn parse(words: &[&str]) -> Result<LimitOverrides, String> {
        let parser = LimitArguments::augment_args(clap::Command::new("bakeoff"));
        let matches = parser.no_binary_name(true).try_get_matches_from(words).unwrap();
        overrides(&LimitArguments::from_arg_matches(&matches).unwrap())
            .map_err(|error| error.message)
    }

    #[test]
    fn retry_after_ignores_case() {
        let read = |mode: &str| parse(&["--retry-after", mode]).unwrap().retry_after;
        for (word, mode) in [("strict", RetryAfter::Strict), ("test", RetryAfter::Test)] {
            assert_eq!(read(word), Some(mode));
            assert_eq!(read(&word.to_uppercase()), Some(mode), "{word}");
        }
    }

    #[test]
    fn retry_after_is_for_auto() {
        let read = |strategy| parse(&["--retry-after", "test", "--rate-strategy", strategy]);
        assert_eq!(read("auto").unwrap().retry_after, Some(RetryAfter::Test));
        assert_eq!(
            read("fixed").unwrap_err(),
            "--rate-strategy fixed contradicts --retry-after: one is fixed, the other is for auto"
        );
    }
}
