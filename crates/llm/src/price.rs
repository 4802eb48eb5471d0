//! Prices of models and costs of calls.

use bakeoff_core::{NanoDollars, Prices, Usage};
use genai_prices::{PriceRequest, UsageKey};

/// Source of the prices of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceSource {
    /// Prices set by the user.
    Configured(Prices),
    /// The built-in catalogue, which covers tiers and long contexts.
    Catalogue {
        /// Id of the provider in the catalogue.
        provider: &'static str,
        /// Name of the model.
        model: String,
    },
    /// No price known.
    Unknown,
}

impl PriceSource {
    /// Returns the catalogue as source if it has a price for the model, else [`PriceSource::Unknown`].
    pub fn look_up(provider: &'static str, model: &str) -> PriceSource {
        let source = PriceSource::Catalogue { provider, model: model.to_owned() };
        match source.cost(&Usage { input: 1, output: 1, ..Usage::default() }) {
            Some(_) => source,
            None => PriceSource::Unknown,
        }
    }

    /// Returns the cost of a usage, or `None` if no price is known.
    pub fn cost(&self, usage: &Usage) -> Option<NanoDollars> {
        match self {
            PriceSource::Configured(prices) => Some(prices.cost(usage)),
            PriceSource::Catalogue { provider, model } => catalogue_cost(provider, model, usage),
            PriceSource::Unknown => None,
        }
    }
}

fn catalogue_cost(provider: &str, model: &str, usage: &Usage) -> Option<NanoDollars> {
    // The catalogue counts cached tokens as part of the input.
    let counts = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, usage.prompt() as f64),
        (UsageKey::CACHE_READ_TOKENS, usage.cache_read as f64),
        (UsageKey::CACHE_WRITE_TOKENS, usage.cache_write as f64),
        (UsageKey::OUTPUT_TOKENS, usage.output as f64),
    ]);
    let request = PriceRequest::new(model, &counts).with_provider_id(provider);
    let price = genai_prices::calculate(&request).ok()?;
    let nanos = (price.total_price * 1e9).round();
    // The cast saturates at 9.2 billion dollars.
    (nanos >= 0.0).then_some(NanoDollars(nanos as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_charges_each_kind_of_token_once() {
        let source = PriceSource::look_up("openai", "gpt-4o-mini");
        let usage = Usage { input: 1_000, output: 1_000, cache_read: 1_000, ..Usage::default() };
        // $0.15, $0.60 and $0.075 per million.
        assert_eq!(source.cost(&usage), Some(NanoDollars(150_000 + 600_000 + 75_000)));
    }

    #[test]
    fn catalogue_has_prices_under_our_provider_ids() {
        for (provider, model) in [
            ("anthropic", "claude-haiku-4-5"),
            ("google", "gemini-2.5-flash"),
            ("groq", "llama-3.3-70b-versatile"),
            ("mistral", "mistral-large-latest"),
            ("openrouter", "openai/gpt-4o-mini"),
        ] {
            assert_ne!(PriceSource::look_up(provider, model), PriceSource::Unknown, "{provider}");
        }
    }

    #[test]
    fn unknown_model_has_no_cost() {
        let source = PriceSource::look_up("openai", "no-such-model");
        assert_eq!(source, PriceSource::Unknown);
        assert_eq!(source.cost(&Usage::default()), None);
    }
}
