//! What the command line says about limits, put together, or which two of its words disagree.

use crate::arguments::LimitArguments;
use bakeoff_pace::{AdaptiveConnections, Connections, LimitOverrides, Strategy};

/// A strategy, and the option that chose it.
struct Choice {
    option: String,
    strategy: Strategy,
    connections: Option<Connections>,
}

/// What is wrong with what the command line says, and what to do.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// What is put in place of the suite's limits.
pub(crate) fn overrides(arguments: &LimitArguments) -> Result<LimitOverrides, Refused> {
    let choices = choices(arguments)?;
    for (number, one) in choices.iter().enumerate() {
        for other in &choices[number + 1..] {
            if one.strategy != other.strategy {
                return Err(disagree(one, &other.option, &format!("is {}", other.strategy)));
            }
        }
        // A limit per minute with a strategy that knows nothing of minutes.
        let uses_rates = matches!(one.strategy, Strategy::Auto | Strategy::Proactive);
        let rates = [("--rpm", arguments.rpm), ("--tpm", arguments.tpm)];
        let given = rates.into_iter().find_map(|(option, rate)| Some((option, rate?)));
        if let (false, Some((option, rate))) = (uses_rates, given) {
            return Err(disagree(one, &format!("{option} {rate}"), "is for auto and proactive"));
        }
    }
    Ok(LimitOverrides {
        strategy: choices.first().map(|choice| choice.strategy),
        connections: choices.iter().find_map(|choice| choice.connections),
        rpm: arguments.rpm,
        tpm: arguments.tpm,
        max_retries: arguments.max_retries,
        timeout: arguments.timeout,
        attempt_timeout: arguments.attempt_timeout,
    })
}

fn disagree(one: &Choice, option: &str, meaning: &str) -> Refused {
    let (first, strategy) = (&one.option, one.strategy);
    Refused {
        message: format!("{first} and {option} disagree: one is {strategy}, the other {meaning}"),
        hint: "leave one of them out",
    }
}

fn choices(arguments: &LimitArguments) -> Result<Vec<Choice>, Refused> {
    let mut choices = Vec::new();
    if let Some(most) = arguments.max_connections {
        choices.push(Choice {
            option: format!("--max-connections {most}"),
            strategy: Strategy::Fixed,
            connections: Some(Connections::Max(most)),
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
                return Err(Refused {
                    message: format!("{option}: {error}"),
                    hint: "true, false, or bounds: MAX, MIN-MAX or MIN-START-MAX, such as 4-20-80",
                });
            }
        };
        choices.push(Choice { option, strategy, connections });
    }
    if let Some(name) = &arguments.rate_strategy {
        let option = format!("--rate-strategy {name}");
        let strategy = name.parse().map_err(|error| Refused {
            message: format!("--rate-strategy: {error}"),
            hint: "`auto` finds out by itself what a provider allows",
        })?;
        choices.push(Choice { option, strategy, connections: None });
    }
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_pace::AdaptiveBounds;

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
        .map_err(|refused| refused.message)
    }

    #[test]
    fn each_option_names_a_strategy() {
        let chosen = |strategy, connections| {
            Ok(LimitOverrides { strategy, connections, ..LimitOverrides::default() })
        };
        let most = Some(Connections::Max(7));
        let between =
            |min, start, max| Some(Connections::Range(AdaptiveBounds { min, start, max }));
        let (fixed, adaptive) = (Some(Strategy::Fixed), Some(Strategy::Adaptive));
        assert_eq!(read(None, None, None, None), chosen(None, None));
        assert_eq!(read(Some(7), None, None, None), chosen(fixed, most));
        assert_eq!(read(Some(7), Some("false"), Some("fixed"), None), chosen(fixed, most));
        assert_eq!(read(None, Some("false"), None, None), chosen(fixed, None));
        assert_eq!(read(None, Some("true"), None, None), chosen(adaptive, between(4, 20, 200)));
        let spec = read(None, Some("4-40-80"), Some("adaptive"), None);
        assert_eq!(spec, chosen(adaptive, between(4, 40, 80)));
        assert_eq!(read(None, None, Some("none"), None), chosen(Some(Strategy::None), None));
    }

    #[test]
    fn two_that_disagree_are_both_named() {
        let error = |max, adaptive, strategy, rpm| read(max, adaptive, strategy, rpm).unwrap_err();
        assert_eq!(
            error(Some(5), Some("true"), None, None),
            "--max-connections 5 and --adaptive-connections true disagree: one is fixed, the other is adaptive"
        );
        assert_eq!(
            error(Some(5), None, Some("auto"), None),
            "--max-connections 5 and --rate-strategy auto disagree: one is fixed, the other is auto"
        );
        assert_eq!(
            error(None, Some("false"), Some("adaptive"), None),
            "--adaptive-connections false and --rate-strategy adaptive disagree: one is fixed, the other is adaptive"
        );
        assert_eq!(
            error(Some(5), None, None, Some(60)),
            "--max-connections 5 and --rpm 60 disagree: one is fixed, the other is for auto and proactive"
        );
        assert_eq!(
            error(None, Some("100-50"), None, None),
            "--adaptive-connections 100-50: max 50 is below min 100"
        );
        let unknown = "quick".parse::<Strategy>().unwrap_err();
        assert_eq!(error(None, None, Some("quick"), None), format!("--rate-strategy: {unknown}"));
    }
}
