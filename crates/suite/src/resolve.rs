//! Resolution of model names.

use super::models::{ModelSpans, NamedModel, provider_hint};
use super::suite::LoadContext;
use super::tree::SourceText;
use crate::problem::{Problems, suggest};
use bakeoff_llm::{Environment, Model, ModelConfig, ModelError};
use std::collections::BTreeMap;

/// Returns the name of a model in results: `provider/model`.
pub(super) fn label(model: &SourceText<'_>, models: &BTreeMap<String, NamedModel>) -> String {
    match models.get(model.value) {
        Some(named) => format!("{}/{}", named.config.provider, named.config.model),
        None => model.value.to_owned(),
    }
}

/// Resolves the model that a target names, with its API key.
pub(super) fn resolve(
    model: SourceText<'_>,
    models: &BTreeMap<String, NamedModel>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Option<Model> {
    resolve_in(model, models, context.environment, problems)
}

/// Like [`resolve`], with a given environment.
pub(super) fn resolve_in(
    model: SourceText<'_>,
    models: &BTreeMap<String, NamedModel>,
    environment: Environment<'_>,
    problems: &mut Problems<'_>,
) -> Option<Model> {
    let (config, spans) = find(model, models, problems)?;
    match Model::resolve(&config, environment) {
        Ok(model) => Some(model),
        Err(error) => {
            report(error, &spans, problems);
            None
        }
    }
}

/// Returns the configuration of a model name without resolving the API key.
pub(super) fn find(
    model: SourceText<'_>,
    models: &BTreeMap<String, NamedModel>,
    problems: &mut Problems<'_>,
) -> Option<(ModelConfig, ModelSpans)> {
    match (models.get(model.value), model.value.split_once('/')) {
        (Some(named), _) => Some((named.config.clone(), named.spans.clone())),
        (None, Some((provider, name))) if !name.is_empty() => {
            Some((ModelConfig::named(provider, name), ModelSpans::all(model.span)))
        }
        (None, _) => {
            let problem = problems.at(model.span, format!("there is no model `{}`", model.value));
            let names = models.keys().map(String::as_str);
            problem.hint = match suggest(model.value, names) {
                Some(hint) if hint.starts_with("did you mean") => Some(hint),
                _ => Some(
                    "use a name under [models], or provider/model such as `openai/gpt-4o-mini`"
                        .to_owned(),
                ),
            };
            None
        }
    }
}

/// Reports why a model cannot be used.
pub(super) fn report(error: ModelError, spans: &ModelSpans, problems: &mut Problems<'_>) {
    let hint = match &error {
        ModelError::UnknownProvider(name) => Some(provider_hint(name)),
        ModelError::MissingVariable(name) => Some(format!(
            "`export {name}=…`, or set it in the file `.env` next to the suite; write `$$` for a literal dollar sign"
        )),
        ModelError::MissingKey(name) => Some(format!(
            "`export {name}=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key"
        )),
        ModelError::MissingBaseUrl(_) => {
            Some("define it under [models] with a `base_url`".to_owned())
        }
        ModelError::InvalidUrl { key, .. } => {
            Some(format!("for example `{key} = \"http://127.0.0.1:8080/v1\"`"))
        }
        _ => None,
    };
    let span = match &error {
        ModelError::InvalidUrl { .. } => &spans.base_url,
        ModelError::MissingKey(_) => &spans.api_key_env,
        ModelError::MissingVariable(_) => &spans.additions,
        _ => &spans.name,
    };
    problems.at(span.clone(), error.to_string()).hint = hint;
}
