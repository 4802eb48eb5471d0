//! Models that are named on the command line.

use crate::printer::{Printer, chain};
use crate::{problems, settings};
use bakeoff_core::ExitCode;
use bakeoff_eval::SuiteModels;
use bakeoff_llm::{Model, ModelConfig, ModelError, PROVIDERS};
use std::path::Path;
use std::sync::Arc;

/// Returns the simulated models of all crates.
pub(crate) fn simulated() -> Vec<Arc<dyn bakeoff_sim::ModelBehaviour>> {
    vec![bakeoff_check::judge::simulated_judge(), bakeoff_map::simulated_models()]
}

/// Something that cannot be, and what to do about it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>, hint: &str) -> Refused {
        Refused { message: message.into(), hint: Some(hint.to_owned()) }
    }

    /// Tells it; the exit code of a usage error.
    pub(crate) fn show(&self, printer: &Printer) -> ExitCode {
        printer.error(&self.message, self.hint.as_deref());
        ExitCode::Usage
    }
}

/// The models that a suite defines; none without a suite.
pub(crate) fn known(suite: Option<&Path>, printer: &Printer) -> Result<SuiteModels, ExitCode> {
    let Some(suite) = suite else { return Ok(SuiteModels::default()) };
    bakeoff_eval::suite_models(suite).map_err(|found| {
        problems::show(&found, printer);
        ExitCode::Usage
    })
}

/// The model that was named, with its key: a table under `[models]`, or `provider/model`.
pub(crate) fn resolve(
    name: &str,
    known: &SuiteModels,
    base_url: Option<&str>,
) -> Result<Model, Refused> {
    let mut config = match (known.models.get(name), name.split_once('/')) {
        (Some(config), _) => config.clone(),
        (None, Some((provider, model))) if !model.is_empty() => ModelConfig::named(provider, model),
        (None, _) => {
            return Err(Refused::new(
                format!("there is no model `{name}`"),
                "write provider/model such as `openai/gpt-4o-mini`, or `--suite FILE` for a \
                 table under its [models]",
            ));
        }
    };
    config.base_url = base_url.map(str::to_owned).or(config.base_url);
    Model::resolve(&config, &settings::variable).map_err(|error| {
        let hint = match &error {
            ModelError::MissingKey(name) => Some(format!("`export {name}=…`")),
            ModelError::UnknownProvider(_) => {
                let known: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
                Some(format!("known here: {}", known.join(", ")))
            }
            ModelError::MissingBaseUrl(_) => {
                Some("give its `base_url` under [models] of a suite, and `--suite FILE`".to_owned())
            }
            _ => None,
        };
        Refused { message: chain(&error), hint }
    })
}
