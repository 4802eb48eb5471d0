//! What all trials of a run share: the client with its cache and memory, and who must not be heard.

use crate::attempt;
use crate::code::Python;
use crate::folder::RunFolder;
use crate::limited::asked_models;
use crate::run::{Run, Stopper};
use crate::traffic::Traffic;
use crate::trial::Trials;
use bakeoff_core::{Event, Redactor};
use bakeoff_llm::{Cache, Client, ClientConfig, Memory, Network, PROVIDERS};
use bakeoff_pace::{RetryPolicy, RunTag};
use bakeoff_suite::{CacheScope, TargetKind};
use std::path::Path;
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
            python: Python::new(self.suite.path.parent().unwrap_or(Path::new(""))),
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
        for provider in PROVIDERS {
            if let Ok(key) = std::env::var(provider.key_variable) {
                redactor.add(&key);
            }
        }
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
        let client = Client::new(ClientConfig {
            transport: self.config.transport.clone(),
            simulator: bakeoff_sim::Config {
                seed: self.config.seed,
                models: self.suite.simulated.clone(),
                ..bakeoff_sim::Config::default()
            },
            cache,
            retry: RetryPolicy { timeout: self.suite.settings.timeout, ..RetryPolicy::default() },
            redactor: redactor.clone(),
            on_http: Some(traffic.observer(self.config.on_http.clone())),
            pools: self.config.pools.clone(),
            memory: self
                .config
                .memory
                .as_ref()
                .map_or_else(Memory::default, |path| Memory::read(path, SystemTime::now())),
        });
        (client, redactor, problem)
    }

    /// Keeps what was learned for the next run; a warning when that cannot be.
    pub(crate) fn remember(&self, client: &Client) -> Option<Event> {
        let path = self.config.memory.as_ref()?;
        let error = Memory::save(path, &client.learned(), SystemTime::now()).err()?;
        let code = "MEMORY_UNAVAILABLE".to_owned();
        Some(Event::Warning { code, message: error.to_string() })
    }
}
