//! Checks of an attempt's turns, time, cost and tokens.

use crate::info::{COUNT, KindInfo, ParameterType, optional, required};
use crate::parameters::{Parameters, missing};
use crate::{CheckFinding, Error, Inconclusive};
use bakeoff_core::{Attempt, NanoDollars};

/// An upper limit on a figure of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitCheck {
    /// Turns of an agent.
    Turns(u64),
    /// Latency in milliseconds, without waiting for permits and retries.
    Milliseconds(u64),
    /// Cost of the target's own calls.
    Cost(NanoDollars),
    /// Tokens of the target's own calls.
    Tokens {
        /// All tokens.
        total: Option<u64>,
        /// Prompt tokens.
        input: Option<u64>,
        /// Output tokens.
        output: Option<u64>,
    },
}

pub(crate) const MAX_TURNS: KindInfo = KindInfo::new(
    "max_turns",
    "The agent took at most `max` turns.",
    &[required("max", COUNT, "Maximum number of turns.")],
    "kind = \"max_turns\"\nmax = 5",
);

pub(crate) const LATENCY: KindInfo = KindInfo::new(
    "latency",
    "The latency is at most `max_ms`; waiting for permits, retries and connections does not count.",
    &[required("max_ms", COUNT, "Milliseconds.")],
    "kind = \"latency\"\nmax_ms = 2000",
);

pub(crate) const COST: KindInfo = KindInfo::new(
    "cost",
    "The target's calls cost at most `max_usd`; judges do not count.",
    &[required("max_usd", ParameterType::Number { min: 0.0, max: 1e9 }, "US dollars.")],
    "kind = \"cost\"\nmax_usd = 0.01",
);

pub(crate) const TOKENS: KindInfo = KindInfo::new(
    "tokens",
    "The target's calls used at most this many tokens; at least one limit is required.",
    &[
        optional("max", COUNT, "Prompt and output tokens."),
        optional("max_input", COUNT, "Prompt tokens."),
        optional("max_output", COUNT, "Output tokens, including thinking."),
    ],
    "kind = \"tokens\"\nmax_output = 100",
);

impl LimitCheck {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<LimitCheck>, Error> {
        Ok(Some(match name {
            "max_turns" => LimitCheck::Turns(parameters.required_count("max")?),
            "latency" => LimitCheck::Milliseconds(parameters.required_count("max_ms")?),
            "cost" => {
                let dollars = parameters.number("max_usd").ok_or_else(|| missing("max_usd"))?;
                LimitCheck::Cost(NanoDollars((dollars * 1e9).round() as i64))
            }
            "tokens" => {
                let count = |name| parameters.count(name);
                let (total, input, output) =
                    (count("max"), count("max_input"), count("max_output"));
                if total.or(input).or(output).is_none() {
                    let message = "the check needs `max`, `max_input` or `max_output`";
                    return Err(Error::new("kind", message));
                }
                LimitCheck::Tokens { total, input, output }
            }
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<CheckFinding, Inconclusive> {
        let unknown = |message: &str| Inconclusive(message.to_owned());
        Ok(match self {
            LimitCheck::Turns(max) => {
                // A single call is one turn.
                let single_call = attempt.finish.is_some().then_some(1);
                let turns = attempt.turns.or(single_call).map(u64::from);
                let turns = turns.ok_or_else(|| unknown("number of turns unknown"))?;
                CheckFinding::new(turns <= *max, format!("{turns} turns, expected at most {max}"))
            }
            LimitCheck::Milliseconds(max) => {
                let took = attempt.timing.latency_ms;
                CheckFinding::new(took <= *max, format!("took {took} ms, expected at most {max}"))
            }
            LimitCheck::Cost(max) => {
                let cost = attempt.cost.ok_or_else(|| unknown("cost unknown"))?;
                CheckFinding::new(cost <= *max, format!("cost {cost}, expected at most {max}"))
            }
            LimitCheck::Tokens { total, input, output } => {
                let usage = attempt.usage.ok_or_else(|| unknown("number of tokens unknown"))?;
                let parts = [
                    (usage.total(), total, "tokens"),
                    (usage.prompt(), input, "prompt tokens"),
                    (usage.output, output, "output tokens"),
                ];
                let bounded =
                    || parts.iter().filter_map(|(n, max, what)| Some((n, max.as_ref()?, what)));
                let over = bounded().find(|(count, max, _)| count > max);
                match over.or(bounded().next()) {
                    Some((count, max, what)) => CheckFinding::new(
                        over.is_none(),
                        format!("{count} {what}, expected at most {max}"),
                    ),
                    None => CheckFinding::new(true, "no limit"),
                }
            }
        })
    }
}
