//! From the name of a model to the model.

use super::models::{NamedModel, Spans};
use super::suite::Refining;
use super::tree::At;
use crate::problem::{Problems, suggest};
use bakeoff_llm::{Environment, Model, ModelConfig, ModelError, PROVIDERS, Provider};
use std::collections::BTreeMap;

/// A model as results show it: `provider/model`.
pub(super) fn label(model: &At<&str>, models: &BTreeMap<String, NamedModel>) -> String {
    match models.get(model.value) {
        Some(named) => format!("{}/{}", named.config.provider, named.config.model),
        None => model.value.to_owned(),
    }
}

/// Finds the model that a target names, with its key.
pub(super) fn resolve(
    model: At<&str>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Option<Model> {
    resolve_in(model, models, refining.environment, problems)
}

/// [`resolve`], in an environment of its own.
pub(super) fn resolve_in(
    model: At<&str>,
    models: &BTreeMap<String, NamedModel>,
    environment: Environment<'_>,
    problems: &mut Problems<'_>,
) -> Option<Model> {
    let (config, spans) = find(model, models, problems)?;
    match Model::resolve(&config, environment) {
        Ok(model) => Some(model),
        Err(error) => {
            explain(error, &spans, problems);
            None
        }
    }
}

/// Finds the model that is meant by a name, with or without its key.
pub(super) fn find(
    model: At<&str>,
    models: &BTreeMap<String, NamedModel>,
    problems: &mut Problems<'_>,
) -> Option<(ModelConfig, Spans)> {
    match (models.get(model.value), model.value.split_once('/')) {
        (Some(named), _) => Some((named.config.clone(), named.spans.clone())),
        (None, Some((provider, name))) if !name.is_empty() => {
            Some((ModelConfig::named(provider, name), Spans::all(model.span)))
        }
        (None, _) => {
            let problem = problems.at(model.span, format!("there is no model `{}`", model.value));
            let names = models.keys().map(String::as_str);
            problem.hint = match suggest(model.value, names) {
                Some(hint) if hint.starts_with("did you mean") => Some(hint),
                _ => Some("name a table under [models], or write provider/model such as `openai/gpt-4o-mini`".to_owned()),
            };
            None
        }
    }
}

/// Says in its place why a model cannot be used.
pub(super) fn explain(error: ModelError, spans: &Spans, problems: &mut Problems<'_>) {
    let hint = match &error {
        ModelError::UnknownProvider(name) => {
            suggest(name, PROVIDERS.iter().map(|provider: &Provider| provider.name))
        }
        ModelError::MissingVariable(name) => {
            Some(format!("`export {name}=…`; a dollar sign itself is written `$$`"))
        }
        ModelError::MissingKey(name) => Some(format!(
            "`export {name}=…`, or name another variable with `api_key_env` under [models]; `sim/…` models need no key"
        )),
        ModelError::MissingBaseUrl(_) => {
            Some("define it under [models] with a `base_url`".to_owned())
        }
        ModelError::InvalidUrl { key, .. } => {
            Some(format!("such as `{key} = \"http://127.0.0.1:8080/v1\"`"))
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
