//! A suite and a command line, put together and carried out.

use crate::Error;
use crate::aggregate::Measure;
use crate::dispatch::Dispatcher;
use crate::folder::RunFolder;
use crate::lane::Filter;
use crate::limited::{different_limits, limited};
use crate::problem::suggest;
use crate::record::{Record, describe};
use crate::suite::{CacheScope, MOST_TRIALS, Suite, TargetKind};
use crate::traffic::{LiveHttp, Traffic};
use crate::trial::Trials;
use bakeoff_core::{
    CaseIds, Event, ExitCode, Redactor, RunPlan, RunStats, SCHEMA_VERSION, Summary, TargetName,
    TrialKey, Verdict,
};
use bakeoff_llm::{Cache, Client, ClientConfig, Memory, PROVIDERS, Transport};
use bakeoff_pace::{LimitOverrides, Pools, RetryPolicy, RunTag};
use bakeoff_stats::Threshold;
use jiff::Timestamp;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Runs of this process so far: those that share a pool take turns.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// How often pools are looked at.
const WATCH: Duration = Duration::from_secs(1);

/// Retries that may wait to be shown.
const RETRIES_SHOWN: usize = 256;

/// What the command line adds to a suite.
#[derive(Debug, Default)]
pub struct RunConfig {
    /// The folder of all runs.
    pub out: PathBuf,
    /// Instead of the suite's trials.
    pub trials: Option<u32>,
    /// Instead of the suite's threshold.
    pub threshold: Option<Threshold>,
    /// Share of a target's cases that must pass.
    pub suite_threshold: Option<Threshold>,
    /// Gate by the share of cases that pass.
    pub ci: bool,
    /// Instead of the suite's bound on trials at once.
    pub parallel: Option<u32>,
    /// Only these targets.
    pub targets: Vec<String>,
    /// Only these cases.
    pub cases: Vec<String>,
    /// Only cases with one of these tags.
    pub tags: Vec<String>,
    /// For the simulated provider.
    pub seed: u64,
    /// The cache's file; nothing is cached when absent.
    pub cache: Option<PathBuf>,
    /// Instead of what the suite says about every model's limits.
    pub limits: LimitOverrides,
    /// Pools that other runs of this process use too; own ones when absent.
    pub pools: Option<Arc<Pools>>,
    /// The file of what runs have learned about limits; nothing is learned when absent.
    pub memory: Option<PathBuf>,
    /// Told of every attempt of a call.
    pub on_http: Option<LiveHttp>,
    /// How requests travel; the real network when absent.
    pub transport: Option<Arc<dyn Transport>>,
    /// The command line, for the record.
    pub arguments: Vec<String>,
}

/// Stops a run, gently or at once.
#[derive(Debug, Clone, Default)]
pub struct Stopper {
    stop: CancellationToken,
    abort: CancellationToken,
}

impl Stopper {
    /// Start nothing new; finish what has begun.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// End what has begun, too.
    pub fn abort(&self) {
        self.stop.cancel();
        self.abort.cancel();
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    /// Its folder.
    pub folder: RunFolder,
    /// What is said of it.
    pub summary: Summary,
    /// What the shell is told.
    pub exit_code: ExitCode,
}

/// A run that is about to begin.
#[derive(Debug)]
pub struct Run {
    suite: Arc<Suite>,
    config: RunConfig,
    measure: Measure,
    filter: Arc<Filter>,
}

impl Run {
    /// Puts a suite and the command line together. Makes no call and writes nothing.
    pub fn new(mut suite: Suite, config: RunConfig) -> Result<Run, Error> {
        let usage = |code, message, hint| Error::Usage { code, message, hint };
        if let Some(trials) = config.trials {
            if !(1..=MOST_TRIALS).contains(&trials) {
                return Err(usage(
                    Some("EVAL_INVALID_TRIALS_CONFIG"),
                    format!("--trials must be from 1 to {MOST_TRIALS}, not {trials}"),
                    None,
                ));
            }
            suite.settings.trials = trials;
        }
        suite.settings.threshold = config.threshold.unwrap_or(suite.settings.threshold);
        suite.settings.parallel = config.parallel.or(suite.settings.parallel);
        for name in &config.targets {
            let names = suite.target_names.iter().map(String::as_str);
            if !names.clone().any(|known| known == name) {
                let hint = suggest(name, names);
                return Err(usage(None, format!("there is no target `{name}`"), hint));
            }
        }
        if !config.targets.is_empty() {
            let wanted = |name: &TargetName| config.targets.iter().any(|one| name == one.as_str());
            suite.targets.retain(|target| wanted(&target.name));
        }
        suite.settings.timeout = config.limits.timeout.unwrap_or(suite.settings.timeout);
        let limited = |target| limited(target, &config.limits);
        suite.targets = suite.targets.into_iter().map(limited).collect::<Result<_, Error>>()?;
        let filter = Filter {
            ids: config.cases.iter().cloned().collect(),
            tags: config.tags.iter().cloned().collect(),
        };
        let cases = chosen(&suite, &filter)?;
        let gate = config.suite_threshold.or(config.ci.then_some(suite.settings.threshold));
        let measure = Measure {
            targets: suite
                .targets
                .iter()
                .map(|target| (target.name.clone(), target.gate))
                .collect(),
            cases,
            trials: suite.settings.trials,
            threshold: suite.settings.threshold,
            suite_threshold: gate,
        };
        Ok(Run { suite: Arc::new(suite), config, measure, filter: Arc::new(filter) })
    }

    /// What will be done.
    pub fn plan(&self) -> RunPlan {
        let cases = self.measure.cases.len() as u64;
        let targets: Vec<TargetName> =
            self.measure.targets.iter().map(|(name, _)| name.clone()).collect();
        RunPlan {
            suite: self.suite.name.clone(),
            cases,
            trials: self.measure.trials,
            total: cases * u64::from(self.measure.trials) * targets.len() as u64,
            seed: self.config.seed,
            targets,
        }
    }

    /// Makes all trials. Everything that happens is told to `listen`, in order.
    ///
    /// # Errors
    ///
    /// When results cannot be written; what had been written stays.
    pub async fn execute(
        self,
        stopper: &Stopper,
        listen: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<Finished, Error> {
        let now = Timestamp::now();
        let started = Instant::now();
        let flat = self.suite.targets.len() == 1;
        let folder = RunFolder::create(&self.config.out, &self.suite.name, now, flat)?;
        folder.write_run(&describe(&self.suite, &self.config, &self.measure, &folder, now))?;
        let mut record = Record::new(&folder, self.measure.clone(), listen)?;
        record.event(&Event::RunStarted {
            schema_version: SCHEMA_VERSION,
            run_id: folder.id.clone(),
            plan: self.plan(),
        })?;
        let mut traffic = Traffic::create(&folder)?;
        let (client, redactor, cache_problem) = self.client(&folder, &traffic);
        if let Some(message) = cache_problem {
            record.event(&Event::Warning { code: "CACHE_UNAVAILABLE".to_owned(), message })?;
        }
        for message in different_limits(&self.suite.targets) {
            record.event(&Event::Warning { code: "PACE_LIMITS_DIFFER".to_owned(), message })?;
        }
        let (retries, mut told_retries) = mpsc::channel(RETRIES_SHOWN);
        let trials = Arc::new(Trials {
            suite: Arc::clone(&self.suite),
            run: RunTag(RUNS.fetch_add(1, Ordering::Relaxed)),
            client,
            redactor,
            folder: folder.clone(),
            stop: stopper.stop.clone(),
            abort: stopper.abort.clone(),
            retries,
        });
        let mut dispatcher = Dispatcher::new(&self.suite, &self.filter, Arc::clone(&trials))
            .map_err(Error::Cases)?;
        let client = &trials.client;
        let mut watch = tokio::time::interval_at(started + WATCH, WATCH);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // After the first problem nothing starts, but what is under way is paid for and kept.
        let mut problem = Ok(());
        loop {
            if problem.is_ok() && !stopper.stop.is_cancelled() {
                let started =
                    |key: &TrialKey| record.tell(&Event::TrialStarted { key: key.clone() });
                problem = dispatcher.start_what_fits(started).map_err(Error::Cases);
            }
            if dispatcher.is_idle() {
                break;
            }
            tokio::select! {
                ended = dispatcher.ended() => problem = problem.and(record.trials(ended)),
                Some(retry) = told_retries.recv() => record.tell(&retry),
                _ = watch.tick() => {
                    traffic.changes(client).iter().for_each(|event| record.tell(event));
                    Traffic::pools(client).iter().for_each(|event| record.tell(event));
                    traffic.flush();
                }
            }
        }
        while let Ok(retry) = told_retries.try_recv() {
            record.tell(&retry);
        }
        traffic.changes(client).iter().for_each(|event| record.tell(event));
        let (connection_limit_history, warnings) = traffic.finish();
        warnings.iter().chain(&self.remember(client)).for_each(|event| record.tell(event));
        // Connections and buffers go first: the summary of a large suite needs their room.
        drop((dispatcher, trials));
        let aggregate = record.finish();
        // An empty folder is all that is ever left of it.
        let _ = std::fs::remove_dir_all(folder.work());
        // Without all its results a run has no verdict, and so no summary.
        problem?;
        let aggregate = aggregate?;
        let stats = RunStats {
            started_at: now.to_string(),
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection_limit_history,
            ..RunStats::default()
        };
        let summary = aggregate.summary(&folder.id, &self.suite.name, stats);
        folder.write_summary(&summary)?;
        let incomplete = summary.targets.iter().any(|target| target.counted < target.total_trials);
        let exit_code = match summary.verdict {
            _ if incomplete && stopper.stop.is_cancelled() => ExitCode::Interrupted,
            Verdict::Passed => ExitCode::Passed,
            Verdict::Failed => ExitCode::Failed,
            Verdict::Inconclusive => ExitCode::Inconclusive,
        };
        Ok(Finished { folder, summary, exit_code })
    }

    /// The client, and why it has no cache although it should.
    fn client(&self, folder: &RunFolder, traffic: &Traffic) -> (Client, Redactor, Option<String>) {
        let mut redactor = Redactor::default();
        for target in &self.suite.targets {
            if let TargetKind::Model(model) = &target.kind {
                model.model.add_secrets(&mut redactor);
            }
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
    fn remember(&self, client: &Client) -> Option<Event> {
        let path = self.config.memory.as_ref()?;
        let error = Memory::save(path, &client.learned(), SystemTime::now()).err()?;
        let code = "MEMORY_UNAVAILABLE".to_owned();
        Some(Event::Warning { code, message: error.to_string() })
    }
}

/// Ids of the cases that are wanted.
fn chosen(suite: &Suite, filter: &Filter) -> Result<Arc<CaseIds>, Error> {
    if filter.ids.is_empty() && filter.tags.is_empty() {
        return Ok(Arc::clone(&suite.survey.ids));
    }
    let mut unseen: BTreeSet<&str> =
        filter.ids.iter().chain(&filter.tags).map(String::as_str).collect();
    let mut tags: BTreeSet<String> = BTreeSet::new();
    let mut chosen = Vec::new();
    for case in suite.cases.iter() {
        let case = case.map_err(Error::Cases)?;
        if filter.ids.contains(case.id.as_str()) {
            unseen.remove(case.id.as_str());
        }
        for tag in &case.tags {
            if filter.tags.contains(tag) {
                unseen.remove(tag.as_str());
            }
        }
        if filter.wants(&case) {
            chosen.push(case.id);
        }
        tags.extend(case.tags);
    }
    let usage = |message, hint| Err(Error::Usage { code: None, message, hint });
    let missing = |wanted: &HashSet<String>| {
        let mut missing: Vec<String> =
            wanted.iter().filter(|word| unseen.contains(word.as_str())).cloned().collect();
        missing.sort();
        missing
    };
    let (ids, absent) = (missing(&filter.ids), missing(&filter.tags));
    if let Some(first) = ids.first() {
        // A list of a thousand ids is no hint.
        let hint =
            suggest(first, suite.survey.ids.iter().take(1000)).filter(|hint| hint.len() < 200);
        return usage(format!("there is no case `{}`", ids.join("`, no case `")), hint);
    }
    if let Some(first) = absent.first() {
        let hint = suggest(first, tags.iter().map(String::as_str));
        return usage(format!("no case has the tag `{}`", absent.join("`, none the tag `")), hint);
    }
    if chosen.is_empty() {
        return usage("no case has both the id and the tag".to_owned(), None);
    }
    Ok(Arc::new(chosen.into_iter().collect()))
}
