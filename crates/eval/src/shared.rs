//! What all trials of a run share: the client with its cache and memory, and who must not be heard.

use crate::attempt;
use crate::folder::RunFolder;
use crate::limited::asked_models;
use crate::run::{Run, Stopper};
use crate::suite::{CacheScope, TargetKind};
use crate::traffic::Traffic;
use crate::trial::Trials;
use bakeoff_core::{Event, Redactor};
use bakeoff_llm::{Cache, Client, ClientConfig, LimitHistory, Network, Provider};
use bakeoff_pace::{RetryPolicy, RunTag};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use tokio::sync::mpsc;

/// Runs of this process so far: those that share a pool take turns.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Events of trials that may wait to be written or shown.
const EVENTS_WAITING: usize = 256;

impl Run {
    /// What all trials share, what they tell, and why there is no cache although there should be.
    pub(crate) fn trials(
        &self,
        folder: &RunFolder,
        traffic: &Traffic,
        stopper: &Stopper,
    ) -> (Arc<Trials>, mpsc::Receiver<Event>, Option<String>) {
        let (client, redactor, cache_problem) = self.client(folder, traffic);
        let (events, told) = mpsc::channel(EVENTS_WAITING);
        let trials = Trials {
            suite: Arc::clone(&self.suite),
            run: RunTag(RUNS.fetch_add(1, Ordering::Relaxed)),
            client: Arc::new(client),
            transport: self
                .config
                .transport
                .clone()
                .unwrap_or_else(|| Arc::new(Network::default())),
            redactor,
            folder: folder.clone(),
            stop: stopper.stop.clone(),
            abort: stopper.abort.clone(),
            keep: self.config.keep,
            workers: attempt::workers(&self.suite, folder),
            events,
        };
        (Arc::new(trials), told, cache_problem)
    }

    /// The client, and why it has no cache although it should.
    fn client(&self, folder: &RunFolder, traffic: &Traffic) -> (Client, Redactor, Option<String>) {
        let mut redactor = Redactor::default();
        for (_, model) in asked_models(&self.suite.targets) {
            model.model.add_secrets(&mut redactor);
        }
        for target in &self.suite.targets {
            if let TargetKind::Service(service) = &target.kind {
                service.service.add_secrets(&mut redactor);
            }
        }
        if let Some((_, proposer)) =
            self.suite.select.as_ref().and_then(|plan| plan.proposer.as_ref())
        {
            proposer.add_secrets(&mut redactor);
        }
        let proposer = self.suite.select.as_ref().and_then(|plan| plan.proposer.as_ref());
        if let Some((_, model)) = proposer {
            model.add_secrets(&mut redactor);
        }
        for judge in self.suite.judges.values() {
            judge.add_secrets(&mut redactor);
        }
        // Programs see the whole environment and may print it.
        Provider::add_secrets(&|name| std::env::var(name).ok(), &mut redactor);
        let scope = match self.suite.settings.cache {
            CacheScope::Run => Some(folder.id.as_str()),
            CacheScope::Shared => Some("shared"),
            CacheScope::None => None,
        };
        let opened =
            self.config.cache.as_ref().zip(scope).map(|(path, scope)| Cache::open(path, scope));
        let (cache, problem) = match opened {
            Some(Ok(cache)) => (Some(cache), None),
            Some(Err(error)) => (None, Some(format!("answers are not cached: {error}"))),
            None => (None, None),
        };
        let simulator = bakeoff_sim::Config {
            seed: self.config.seed,
            models: self.suite.simulated.clone(),
            ..bakeoff_sim::Config::default()
        };
        let retry = RetryPolicy { timeout: self.suite.settings.timeout, ..RetryPolicy::default() };
        let mut config = ClientConfig::default()
            .simulator(simulator)
            .simulated_models([bakeoff_check::judge::simulated_judge()])
            .simulated_models(self.config.simulated_models.iter().cloned())
            .retry(retry)
            .redactor(redactor.clone())
            .on_http(traffic.observer(self.config.on_http.clone()));
        config.transport.clone_from(&self.config.transport);
        config.cache = cache;
        config.pools.clone_from(&self.config.pools);
        if let Some(path) = &self.config.memory {
            config.limit_history = LimitHistory::read(path, SystemTime::now());
        }
        (Client::new(config), redactor, problem)
    }

    /// Keeps what was learned for the next run; a warning when that cannot be.
    pub(crate) fn remember(&self, client: &Client) -> Option<Event> {
        let path = self.config.memory.as_ref()?;
        let error = LimitHistory::save(path, &client.learned(), SystemTime::now()).err()?;
        let code = "MEMORY_UNAVAILABLE".to_owned();
        Some(Event::Warning { code, message: error.to_string() })
    }
}
