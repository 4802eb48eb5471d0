//! `bakeoff prices`: prints the price of a model and its source.

use crate::arguments::PricesArguments;
use crate::error::{CliError, UsageError};
use crate::models::ModelResolver;
use crate::outcome::Outcome;
use crate::printer::Printer;
use bakeoff_core::{NanoDollars, Usage};
use bakeoff_llm::{ModelConfig, PriceSource};

/// Tokens that are priced: few enough for the lowest tier of a catalogue price.
const SAMPLE_TOKENS: u64 = 1000;

/// Samples in a million tokens.
const SAMPLES: i64 = 1000;

pub(super) fn run(arguments: &PricesArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let resolver = ModelResolver::new(arguments.suite.as_deref())?;
    let name = &arguments.model;
    let config = resolver.config(name)?;
    let source = config.price_source();
    let is_defined = resolver.defined.models.contains_key(name);
    if source == PriceSource::Unknown && !is_defined {
        return Err(UsageError::new(format!("no price known for `{name}`"))
            .hint(
                "check the name, or set `prices` under [models] of a suite and pass `--suite FILE`",
            )
            .into());
    }
    let kinds = [
        ("input", Usage { input: SAMPLE_TOKENS, ..Usage::default() }),
        ("output", Usage { output: SAMPLE_TOKENS, ..Usage::default() }),
        ("cache_read", Usage { cache_read: SAMPLE_TOKENS, ..Usage::default() }),
        ("cache_write", Usage { cache_write: SAMPLE_TOKENS, ..Usage::default() }),
    ];
    let label = describe(&config, &source);
    let mut outcome = Outcome::passed().with("model", name).with("source", label);
    printer.data(format!("{name}: {}", explain(label)));
    for (kind, usage) in kinds {
        let price = source.cost(&usage).map(|cost| NanoDollars(cost.0.saturating_mul(SAMPLES)));
        let shown = price.map_or_else(|| "–".to_owned(), |price| price.to_string());
        printer.data(format!("  {:<12}{shown} per million tokens", kind.replace('_', " ")));
        outcome = outcome.with(&format!("{kind}_nanodollars_per_million_tokens"), price);
    }
    Ok(outcome)
}

/// Returns the name of the source.
fn describe(config: &ModelConfig, source: &PriceSource) -> &'static str {
    match source {
        // Simulated models are free unless the suite sets a price.
        PriceSource::Configured(_) if config.prices.is_none() => "simulated",
        PriceSource::Configured(_) => "configured",
        PriceSource::Catalogue { .. } => "catalogue",
        PriceSource::Unknown => "unknown",
    }
}

fn explain(source: &str) -> &'static str {
    match source {
        "simulated" => "simulated model, free",
        "configured" => "price configured under [models]",
        "catalogue" => "price of the built-in catalogue; long prompts may cost more",
        _ => "price unknown; set `prices` under [models]",
    }
}
