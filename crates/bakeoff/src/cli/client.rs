//! Construction of the model client that `race`, `map` and `probe` use.
//!
//! `run`, `select` and `score` pass the same files to the trial engine, which owns its client.

use crate::printer::Printer;
use crate::{models, settings};
use bakeoff_core::{NanoDollars, Redactor};
use bakeoff_llm::{Cache, Client, ClientConfig, LimitHistory, Model, Provider};
use bakeoff_pace::{Expense, ExpenseLimit, SharedBudget};
use bakeoff_suite::SuiteModels;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Inputs of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientOptions {
    /// Seed of the simulated provider.
    pub(crate) seed: u64,
    /// Path and scope of the response cache.
    pub(crate) cache: Option<(PathBuf, &'static str)>,
    /// Path of the limit history.
    pub(crate) history: Option<PathBuf>,
    /// Maximum cost of all calls.
    pub(crate) max_cost: Option<NanoDollars>,
    /// Secrets that are not those of models.
    pub(crate) redactor: Redactor,
}

/// A client and its files.
pub(crate) struct ModelClient {
    pub(crate) client: Arc<Client>,
    /// API keys of all models and of the environment.
    pub(crate) redactor: Redactor,
    history: Option<PathBuf>,
}

impl ModelClient {
    /// Builds the client for these models.
    pub(crate) fn new<'a>(
        models: impl IntoIterator<Item = &'a Model>,
        defined: SuiteModels,
        options: ClientOptions,
        printer: &Printer,
    ) -> ModelClient {
        let mut redactor = options.redactor;
        models.into_iter().for_each(|model| model.add_secrets(&mut redactor));
        // Tools and servers may repeat keys of the environment that no model uses.
        Provider::add_secrets(&settings::variable, &mut redactor);
        defined.env_file.add_secrets(&mut redactor);
        let cache = options.cache.and_then(|(path, scope)| {
            Cache::open(&path, scope)
                .map_err(|error| {
                    let message = format!("responses are not cached: {error}");
                    printer.warning_with_code("CACHE_UNAVAILABLE", &message);
                })
                .ok()
        });
        let simulator = bakeoff_sim::Config::default().seed(options.seed).models(defined.simulated);
        let mut config = ClientConfig::default()
            .simulator(simulator)
            .simulated_models(models::simulated())
            .redactor(redactor.clone());
        config.cache = cache;
        config.budget = options.max_cost.map(|cost| {
            let limit = ExpenseLimit { cost: Some(cost), tokens: None };
            SharedBudget::new(limit, Expense::default())
        });
        config.limit_history = read_history(options.history.as_ref());
        ModelClient { client: Arc::new(Client::new(config)), redactor, history: options.history }
    }

    /// Records the limits that the client has learned.
    pub(crate) fn save_history(&self) {
        if let Some(path) = &self.history {
            // The history only saves time; the next command works without it.
            let _ = LimitHistory::save(path, &self.client.learned(), SystemTime::now());
        }
    }
}

/// Reads the limit history; an absent file is an empty history.
pub(crate) fn read_history(path: Option<&PathBuf>) -> LimitHistory {
    path.map_or_else(LimitHistory::default, |path| LimitHistory::read(path, SystemTime::now()))
}
