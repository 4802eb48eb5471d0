//! The client of a run: its cache, its learned limits, and the secrets that must not be written.

use crate::config::RunConfig;
use crate::folder::RunFolder;
use crate::limit_overrides::called_models;
use crate::traffic_log::TrafficLog;
use bakeoff_core::{Event, Redactor};
use bakeoff_llm::{Cache, Client, ClientConfig, LimitHistory, Provider};
use bakeoff_pace::{RetryPolicy, SharedBudget};
use bakeoff_suite::{CacheScope, Suite, TargetKind};
use std::time::SystemTime;
use tokio::time::Instant;

/// The client of a run.
pub(crate) struct RunClient {
    pub(crate) client: Client,
    pub(crate) redactor: Redactor,
    /// Why the cache could not be opened.
    pub(crate) cache_error: Option<String>,
}

/// Limits of all calls of a run.
#[derive(Default)]
pub(crate) struct RunLimits {
    /// End of the run.
    pub(crate) deadline: Option<Instant>,
    pub(crate) budget: Option<SharedBudget>,
}

/// Builds the client of a run.
pub(crate) fn build_client(
    suite: &Suite,
    config: &RunConfig,
    folder: &RunFolder,
    traffic: &TrafficLog,
    limits: RunLimits,
) -> RunClient {
    let redactor = redactor(suite);
    let scope = match suite.settings.cache {
        CacheScope::Run => Some(folder.id.as_str()),
        CacheScope::Shared => Some("shared"),
        CacheScope::None => None,
    };
    let opened = config.cache.as_ref().zip(scope).map(|(path, scope)| Cache::open(path, scope));
    let (cache, cache_error) = match opened {
        Some(Ok(cache)) => (Some(cache), None),
        Some(Err(error)) => (None, Some(format!("responses are not cached: {error}"))),
        None => (None, None),
    };
    let simulator =
        bakeoff_sim::Config::default().seed(config.seed).models(suite.simulated.clone());
    let retry = RetryPolicy::default().timeout(suite.settings.timeout);
    let mut client = ClientConfig::default()
        .simulator(simulator)
        .simulated_models([bakeoff_check::judge::simulated_judge()])
        .simulated_models(config.simulated_models.iter().cloned())
        .retry(retry)
        .redactor(redactor.clone())
        .on_http(traffic.observer(config.on_http.clone()));
    client.transport.clone_from(&config.transport);
    client.cache = cache;
    client.deadline = limits.deadline;
    client.budget = limits.budget;
    client.pools.clone_from(&config.pools);
    if let Some(path) = &config.memory {
        client.limit_history = LimitHistory::read(path, SystemTime::now());
    }
    RunClient { client: Client::new(client), redactor, cache_error }
}

/// Returns a redactor for the secrets of all models and services of a suite.
fn redactor(suite: &Suite) -> Redactor {
    let mut redactor = Redactor::default();
    for (_, model) in called_models(&suite.targets) {
        model.model.add_secrets(&mut redactor);
    }
    for target in &suite.targets {
        if let TargetKind::Service(service) = &target.kind {
            service.service.add_secrets(&mut redactor);
        }
        for server in target.agent().iter().flat_map(|agent| &agent.mcp) {
            server.add_secrets(&mut redactor);
        }
    }
    let proposer = suite.select.as_ref().and_then(|plan| plan.proposer.as_ref());
    if let Some((_, model)) = proposer {
        model.add_secrets(&mut redactor);
    }
    for judge in suite.judges.values() {
        judge.add_secrets(&mut redactor);
    }
    // Programs receive the whole environment and the file `.env`, and may print them.
    suite.env_file.add_secrets(&mut redactor);
    Provider::add_secrets(&|name| std::env::var(name).ok(), &mut redactor);
    redactor
}

/// Saves the learned limits for later runs; returns a warning when that fails.
pub(crate) fn save_limits(config: &RunConfig, client: &Client) -> Option<Event> {
    let path = config.memory.as_ref()?;
    let error = LimitHistory::save(path, &client.learned(), SystemTime::now()).err()?;
    let code = "MEMORY_UNAVAILABLE".to_owned();
    Some(Event::Warning { code, message: error.to_string() })
}
