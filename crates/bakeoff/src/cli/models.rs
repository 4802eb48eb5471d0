//! Resolution of the models that are named on the command line.

use crate::error::{CliError, UsageError};
use crate::keyless::KeylessEnvironment;
use crate::printer::chain;
use crate::settings;
use bakeoff_llm::{Model, ModelConfig, ModelError, PROVIDERS, Provider};
use bakeoff_pace::LimitOverrides;
use bakeoff_suite::SuiteModels;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// Fails when no price is known for a model: a cost limit could not be enforced.
pub(crate) fn require_price(name: &str, model: &Model) -> Result<(), UsageError> {
    match model.is_priced() {
        true => Ok(()),
        false => Err(UsageError::new(format!("no price known for `{name}`; --max-cost needs one"))
            .hint("set `prices` under [models] of a suite and pass `--suite FILE`")),
    }
}

/// Returns the simulated models of all crates.
pub(crate) fn simulated() -> Vec<Arc<dyn bakeoff_sim::ModelBehaviour>> {
    vec![bakeoff_check::judge::simulated_judge(), bakeoff_map::simulated_models()]
}

/// Model names, and the settings that apply to every resolved model.
#[derive(Debug, Default)]
pub(crate) struct ModelResolver {
    /// Models that the suite defines.
    pub(crate) defined: SuiteModels,
    /// Base URL instead of the model's.
    pub(crate) base_url: Option<String>,
    /// Set if models are resolved for a plan, without calls.
    pub(crate) keyless: Option<RefCell<KeylessEnvironment>>,
    /// Limits instead of the model's.
    pub(crate) limits: LimitOverrides,
}

impl ModelResolver {
    /// Reads the models that a suite defines; none without a suite.
    pub(crate) fn new(suite: Option<&Path>) -> Result<ModelResolver, CliError> {
        let defined = match suite {
            Some(suite) => bakeoff_suite::suite_models(suite, &settings::variable)?,
            None => SuiteModels::default(),
        };
        Ok(ModelResolver { defined, ..ModelResolver::default() })
    }

    /// Returns the configuration of a model: a table under `[models]`, or `provider/model`. Its provider exists.
    pub(crate) fn config(&self, name: &str) -> Result<ModelConfig, UsageError> {
        let config = match (self.defined.models.get(name), name.split_once('/')) {
            (Some(config), _) => config.clone(),
            (None, Some((provider, model))) if !model.is_empty() => {
                ModelConfig::named(provider, model)
            }
            (None, _) => {
                return Err(UsageError::new(format!("unknown model `{name}`")).hint(
                    "write provider/model such as `openai/gpt-4o-mini`, or define it under [models] \
                     of a suite and pass `--suite FILE`",
                ));
            }
        };
        if Provider::find(&config.provider).is_none() {
            return Err(usage_error(&ModelError::UnknownProvider(config.provider)));
        }
        Ok(config)
    }

    /// Returns a model with its API key.
    pub(crate) fn resolve(&self, name: &str) -> Result<Model, UsageError> {
        let mut config = self.config(name)?;
        config.base_url = self.base_url.clone().or(config.base_url);
        let model = self.resolve_config(&config).map_err(|error| usage_error(&error))?;
        if self.limits == LimitOverrides::default() {
            return Ok(model);
        }
        let limits = self.limits.apply(model.limits());
        limits.check().map_err(|error| {
            UsageError::new(format!("limits of `{name}`: {error}"))
                .hint("the command line overrides the suite")
        })?;
        Ok(model.with_limits(limits))
    }
}

impl ModelResolver {
    /// Returns a variable of the environment, or of the file `.env` next to the suite.
    fn variable(&self, name: &str, value: Option<String>) -> Option<String> {
        value.or_else(|| self.defined.env_file.get(name))
    }

    /// Resolves a model; for a plan, with a placeholder for each missing variable.
    fn resolve_config(&self, config: &ModelConfig) -> Result<Model, ModelError> {
        let Some(environment) = &self.keyless else {
            return Model::resolve(config, &|name| self.variable(name, settings::variable(name)));
        };
        let mut environment = environment.borrow_mut();
        loop {
            let lookup = |name: &str| self.variable(name, environment.variable(name));
            match Model::resolve(config, &lookup) {
                Err(ModelError::MissingKey(name) | ModelError::MissingVariable(name)) => {
                    environment.add_missing(name);
                }
                resolved => return resolved,
            }
        }
    }
}

fn usage_error(error: &ModelError) -> UsageError {
    UsageError { message: chain(error), hint: hint(error) }
}

fn hint(error: &ModelError) -> Option<String> {
    match error {
        ModelError::MissingKey(name) => Some(format!(
            "`export {name}=…`, or set it in the file `.env` of a suite and pass `--suite FILE`"
        )),
        ModelError::UnknownProvider(_) => {
            let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
            Some(format!("known providers: {}", names.join(", ")))
        }
        ModelError::MissingBaseUrl(_) => {
            Some("set `base_url` under [models] of a suite and pass `--suite FILE`".to_owned())
        }
        _ => None,
    }
}
