//! Cost of the trials of programs and services, which make their calls themselves.

use super::models::NamedModel;
use super::resolve;
use super::tree::Node;
use crate::problem::Problems;
use bakeoff_core::{NanoDollars, Usage};
use bakeoff_llm::PriceSource;
use std::collections::BTreeMap;

/// How the cost of a trial follows from what a program or service reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPricing {
    /// Prices of reported tokens.
    pub(crate) tokens: PriceSource,
    /// Whether `priced_as` sets these prices, and not a role.
    is_explicit: bool,
    /// Cost of every trial.
    fixed: Option<NanoDollars>,
}

impl Default for TrialPricing {
    fn default() -> TrialPricing {
        TrialPricing { tokens: PriceSource::Unknown, is_explicit: false, fixed: None }
    }
}

impl TrialPricing {
    /// Reads `priced_as` and `trial_cost_usd`. Without them, the model of the only role has the prices.
    pub(super) fn read(
        node: &Node<'_, '_>,
        role_models: &[(String, String)],
        models: &BTreeMap<String, NamedModel>,
        problems: &mut Problems<'_>,
    ) -> TrialPricing {
        let fixed = node.number("trial_cost_usd");
        let fixed = fixed.map(|dollars| NanoDollars((dollars * 1e9).round() as i64));
        if let Some(name) = node.text("priced_as") {
            let (span, label) = (name.span.clone(), name.value.to_owned());
            let tokens = match resolve::find(name, models, problems) {
                Some((config, _)) => config.price_source(),
                None => return TrialPricing::default(),
            };
            if tokens == PriceSource::Unknown {
                problems.at(span, format!("no price known for `{label}`")).with_hint(PRICES_HINT);
            }
            return TrialPricing { tokens, is_explicit: true, fixed };
        }
        let tokens = match role_models {
            [(_, model)] => model_prices(model, models),
            // Agents have their own model names, which may be defined under [models].
            _ => match node.text("agent").and(node.text("model")) {
                Some(model) => model_prices(model.value, models),
                None => PriceSource::Unknown,
            },
        };
        TrialPricing { tokens, is_explicit: false, fixed }
    }

    /// Returns the pricing with another model in the only role.
    pub(super) fn with_candidate(&self, prices: &PriceSource) -> TrialPricing {
        match self.is_explicit {
            true => self.clone(),
            false => TrialPricing { tokens: prices.clone(), ..self.clone() },
        }
    }

    /// Whether reported tokens have a price.
    pub fn has_token_prices(&self) -> bool {
        self.tokens != PriceSource::Unknown
    }

    /// Whether every trial has the same, known cost.
    pub fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// Returns the cost of a trial with this usage; `None` if it is unknown.
    pub fn cost(&self, usage: Option<&Usage>) -> Option<NanoDollars> {
        self.fixed.or_else(|| self.tokens.cost(usage?))
    }
}

/// Hint for a missing price.
pub const PRICES_HINT: &str = "give its table under [models] `prices = { input = …, output = … }` in dollars per million tokens";

/// Returns the prices of a name under [models] or of `provider/model`.
pub(super) fn model_prices(name: &str, models: &BTreeMap<String, NamedModel>) -> PriceSource {
    match (models.get(name), name.split_once('/')) {
        (Some(named), _) => named.config.price_source(),
        (None, Some((provider, model))) => {
            bakeoff_llm::ModelConfig::named(provider, model).price_source()
        }
        (None, None) => PriceSource::Unknown,
    }
}
