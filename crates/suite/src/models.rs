//! Reading of `[models.*]` and `[sim.*]`.

use super::limits;
use super::targets::check_exclusive_keys;
use super::tree::Node;
use crate::problem::Problems;
use bakeoff_core::{NanoDollars, Prices, Thinking};
use bakeoff_llm::{ModelConfig, ModelSettings, PROVIDERS, Provider};
use bakeoff_sim::{CannedAnswer, Latency, PlannedCall, SimModel, TokenCount};
use std::collections::BTreeMap;
use std::ops::Range;

/// Model with a user-defined name.
pub(super) struct NamedModel {
    pub(super) config: ModelConfig,
    pub(super) spans: ModelSpans,
}

/// Positions of the parts of a model, for problems.
#[derive(Debug, Clone)]
pub(super) struct ModelSpans {
    pub(super) name: Range<usize>,
    pub(super) base_url: Range<usize>,
    pub(super) api_key_env: Range<usize>,
    /// Position of `headers` or `query`.
    pub(super) additions: Range<usize>,
}

impl ModelSpans {
    /// Uses one position for all parts.
    pub(super) fn all(span: Range<usize>) -> ModelSpans {
        ModelSpans {
            name: span.clone(),
            base_url: span.clone(),
            api_key_env: span.clone(),
            additions: span,
        }
    }
}

/// Reads `[models.*]`.
pub(super) fn read_named(
    root: &Node<'_, '_>,
    problems: &mut Problems<'_>,
) -> BTreeMap<String, NamedModel> {
    root.named("models")
        .into_iter()
        .filter_map(|(name, node)| {
            let provider = node.text("provider")?;
            if Provider::find(provider.value).is_none() {
                let message = format!("unknown provider `{}`", provider.value);
                problems.at(provider.span, message).hint = Some(provider_hint(provider.value));
                return None;
            }
            let mut config = ModelConfig::named(provider.value, node.text("model")?.value)
                .limits(limits::read(&node, problems))
                .stream(node.boolean("stream").unwrap_or(false));
            config.base_url = node.text("base_url").map(|url| url.value.to_owned());
            config.api_key_env = node.text("api_key_env").map(|name| name.value.to_owned());
            config.headers = node.text_map("headers");
            config.query = node.text_map("query");
            config.prices = prices(&node, problems);
            check_exclusive_keys(&node, "a model", problems)?;
            config.settings = settings(&node);
            let span = |key| node.get(key).map_or(name.span.clone(), |value| value.span());
            let spans = ModelSpans {
                name: name.span.clone(),
                base_url: span("base_url"),
                api_key_env: span("api_key_env"),
                additions: node
                    .get("headers")
                    .or(node.get("query"))
                    .map_or(name.span.clone(), |v| v.span()),
            };
            Some((name.value.to_owned(), NamedModel { config, spans }))
        })
        .collect()
}

/// Reads the settings of requests.
pub(super) fn settings(node: &Node<'_, '_>) -> ModelSettings {
    let count = |name| node.integer(name).and_then(|number| u64::try_from(number).ok());
    let effort = node.text("thinking").map(|effort| Thinking::Effort(effort.value.to_owned()));
    let stop = node.texts("stop").unwrap_or_default();
    ModelSettings {
        temperature: node.number("temperature"),
        top_p: node.number("top_p"),
        max_tokens: count("max_tokens"),
        stop: stop.into_iter().map(|text| text.value.to_owned()).collect(),
        thinking: effort.or_else(|| count("thinking_tokens").map(Thinking::Budget)),
        extra: node.table("extra").map(|extra| extra.to_json()).unwrap_or_default(),
    }
}

/// Returns a hint about an unknown provider: a name that differs by a typing error, or all names.
///
/// Provider names are short, so [`crate::suggest`] would also offer names that are not similar.
pub(super) fn provider_hint(name: &str) -> String {
    const MAX_EDITS: usize = 2;
    let names = || PROVIDERS.iter().map(|provider| provider.name);
    let nearest = names()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min_by_key(|(edits, _)| *edits);
    match nearest {
        Some((edits, known)) if edits <= MAX_EDITS => format!("did you mean `{known}`?"),
        _ => format!("known providers: {}", names().collect::<Vec<_>>().join(", ")),
    }
}

/// Adds the names under `[sim]` as `sim/<name>`; names under `[models]` have precedence.
pub(super) fn add_simulated(root: &Node<'_, '_>, models: &mut BTreeMap<String, NamedModel>) {
    for (name, _) in root.named("sim") {
        let (config, spans) = (ModelConfig::named("sim", name.value), ModelSpans::all(name.span));
        models.entry(name.value.to_owned()).or_insert(NamedModel { config, spans });
    }
}

fn prices(node: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Prices> {
    let table = node.table("prices")?;
    let mut price = |name| {
        let decimal = table.decimal(name)?;
        let price = decimal.value.parse::<NanoDollars>();
        // The validation has reported negative prices.
        if let Err(error) = &price
            && !decimal.value.starts_with('-')
        {
            problems.at(decimal.span, error.to_string());
        }
        price.ok()
    };
    Some(Prices {
        input: price("input")?,
        output: price("output")?,
        cache_read: price("cache_read"),
        cache_write: price("cache_write"),
    })
}

/// Reads `[sim.*]`.
pub(super) fn read_simulated(root: &Node<'_, '_>) -> BTreeMap<String, SimModel> {
    root.named("sim")
        .into_iter()
        .map(|(name, node)| {
            let canned = |node: Node<'_, '_>| {
                Some(CannedAnswer {
                    when: node.text("when")?.value.to_owned(),
                    answer: node.text("answer")?.value.to_owned(),
                    pass: node.number("pass"),
                })
            };
            let planned = |node: Node<'_, '_>| {
                Some(PlannedCall {
                    tool: node.text("tool")?.value.to_owned(),
                    arguments: node
                        .table("arguments")
                        .map(|table| table.to_json())
                        .unwrap_or_default(),
                })
            };
            let text = |name| node.text(name).map(|text| text.value.to_owned());
            let model = SimModel {
                answers: node.tables("answers").into_iter().filter_map(canned).collect(),
                default: text("default"),
                calls: node.tables("calls").into_iter().filter_map(planned).collect(),
                pass: node.number("pass"),
                wrong: text("wrong"),
                latency: latency(&node),
                output_tokens: node
                    .integer("output_tokens")
                    .and_then(|tokens| u64::try_from(tokens).ok())
                    .map(TokenCount::Fixed),
                bias: node.number("bias"),
                noise: node.number("noise"),
                ..SimModel::default()
            };
            (name.value.to_owned(), model)
        })
        .collect()
}

fn latency(node: &Node<'_, '_>) -> Option<Latency> {
    let ms = node.number("latency_ms")?;
    Some(match node.number("latency_sigma") {
        Some(sigma) if sigma > 0.0 => Latency::Lognormal { median_ms: ms, sigma },
        _ => Latency::Fixed { ms },
    })
}
