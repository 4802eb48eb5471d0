//! Checks of what an attempt took: time, money, tokens.

use crate::info::{COUNT, KindInfo, ParameterType, optional, required};
use crate::parameters::{Parameters, missing};
use crate::{CannotSay, Error, Finding};
use bakeoff_core::{Attempt, NanoDollars};

/// What an attempt may take at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// Turns of an agent.
    Turns(u64),
    /// Milliseconds of work, without waiting for permits and retries.
    Milliseconds(u64),
    /// Money for the target's own calls.
    Cost(NanoDollars),
    /// Tokens of the target's own calls.
    Tokens {
        /// All.
        total: Option<u64>,
        /// Those of prompts.
        input: Option<u64>,
        /// Those of answers.
        output: Option<u64>,
    },
}

pub(crate) const MAX_TURNS: KindInfo = KindInfo::new(
    "max_turns",
    "The agent's model spoke at most so often.",
    &[required("max", COUNT, "The most.")],
    "kind = \"max_turns\"\nmax = 5",
);

pub(crate) const LATENCY: KindInfo = KindInfo::new(
    "latency",
    "The work took at most so long; waiting for permits and retries does not count.",
    &[required("max_ms", COUNT, "Milliseconds.")],
    "kind = \"latency\"\nmax_ms = 2000",
);

pub(crate) const COST: KindInfo = KindInfo::new(
    "cost",
    "The target's calls cost at most so much; judges do not count.",
    &[required("max_usd", ParameterType::Number { least: 0.0, most: 1e9 }, "US dollars.")],
    "kind = \"cost\"\nmax_usd = 0.01",
);

pub(crate) const TOKENS: KindInfo = KindInfo::new(
    "tokens",
    "The target's calls took at most so many tokens; at least one bound is needed.",
    &[
        optional("max", COUNT, "Tokens of prompts and answers."),
        optional("max_input", COUNT, "Tokens of prompts."),
        optional("max_output", COUNT, "Tokens of answers, thinking included."),
    ],
    "kind = \"tokens\"\nmax_output = 100",
);

impl Limit {
    pub(crate) fn build(name: &str, parameters: Parameters<'_>) -> Result<Option<Limit>, Error> {
        Ok(Some(match name {
            "max_turns" => Limit::Turns(parameters.needed_count("max")?),
            "latency" => Limit::Milliseconds(parameters.needed_count("max_ms")?),
            "cost" => {
                let dollars = parameters.number("max_usd").ok_or_else(|| missing("max_usd"))?;
                Limit::Cost(NanoDollars((dollars * 1e9).round() as i64))
            }
            "tokens" => {
                let count = |name| parameters.count(name);
                let (total, input, output) =
                    (count("max"), count("max_input"), count("max_output"));
                if total.or(input).or(output).is_none() {
                    let message = "the check needs `max`, `max_input` or `max_output`";
                    return Err(Error::new("kind", message));
                }
                Limit::Tokens { total, input, output }
            }
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<Finding, CannotSay> {
        let unknown = |what: &str| CannotSay(what.to_owned());
        Ok(match self {
            Limit::Turns(most) => {
                // A model that was asked once spoke once.
                let asked = attempt.finish.is_some().then_some(1);
                let turns = attempt.turns.or(asked).map(u64::from);
                let turns = turns.ok_or_else(|| unknown("the number of turns is not known"))?;
                Finding::new(turns <= *most, format!("{turns} turns, wanted at most {most}"))
            }
            Limit::Milliseconds(most) => {
                let took = attempt.timing.latency_ms;
                Finding::new(took <= *most, format!("took {took} ms, wanted at most {most}"))
            }
            Limit::Cost(most) => {
                let cost = attempt.cost.ok_or_else(|| unknown("the cost is not known"))?;
                Finding::new(cost <= *most, format!("cost {cost}, wanted at most {most}"))
            }
            Limit::Tokens { total, input, output } => {
                let usage = attempt.usage.ok_or_else(|| unknown("the tokens are not known"))?;
                let parts = [
                    (usage.total(), total, "tokens"),
                    (usage.prompt(), input, "tokens of the prompt"),
                    (usage.output, output, "tokens of the answer"),
                ];
                let bounded =
                    || parts.iter().filter_map(|(n, most, what)| Some((n, most.as_ref()?, what)));
                let over = bounded().find(|(count, most, _)| count > most);
                match over.or(bounded().next()) {
                    Some((count, most, what)) => Finding::new(
                        over.is_none(),
                        format!("{count} {what}, wanted at most {most}"),
                    ),
                    None => Finding::new(true, "no bound"),
                }
            }
        })
    }
}
