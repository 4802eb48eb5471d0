//! All trials of a suite: who starts when, what is written, what comes of it.
//!
//! One dispatcher owns the state of the run. Trials are tasks that own nothing but themselves and
//! hand their result back; the dispatcher journals it, then counts it, then tells whoever listens.

use crate::aggregate::{Aggregate, Measure};
use crate::folder::RunFolder;
use crate::lane::{Filter, Lane};
use crate::problem::suggest;
use crate::suite::{CacheScope, MOST_TRIALS, Suite, Target, TargetKind};
use crate::trial::{Trials, failed};
use crate::{Case, Error};
use bakeoff_core::{
    CaseIds, ErrorKind, Event, ExitCode, Redactor, RunPlan, RunStats, SCHEMA_VERSION, Status,
    Summary, TrialKey, TrialResult, Verdict,
};
use bakeoff_journal::Journal;
use bakeoff_llm::{Cache, Client, ClientConfig, PROVIDERS, Transport};
use bakeoff_pace::{Limits, RetryPolicy};
use bakeoff_stats::Threshold;
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Trials that may be in preparation while their model's window is full.
const PREPARED: usize = 4;

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
    /// Most requests in flight, for every model.
    pub max_connections: Option<u32>,
    /// Most retries of a call.
    pub max_retries: Option<u32>,
    /// Most time for one attempt of a call.
    pub attempt_timeout: Option<Duration>,
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
            let names = suite.targets.iter().map(|target| target.name.as_str());
            if !names.clone().any(|known| known == name) {
                let hint = suggest(name, names);
                return Err(usage(None, format!("there is no target `{name}`"), hint));
            }
        }
        if !config.targets.is_empty() {
            suite.targets.retain(|target| config.targets.contains(&target.name));
        }
        if let Some(connections) = config.max_connections {
            suite.targets = suite.targets.into_iter().map(|t| limited(t, connections)).collect();
        }
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
        let targets: Vec<String> =
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
        folder.write_run(&self.describe(&folder, now, flat))?;
        let mut journal = Journal::create(&folder.journal())?;
        let (client, redactor, cache_problem) = self.client(&folder);
        let (retries, mut told_retries) = mpsc::channel(RETRIES_SHOWN);
        let mut dispatcher = Dispatcher {
            lanes: self.lanes()?,
            parallel: self.suite.settings.parallel.map_or(usize::MAX, |most| most as usize),
            aggregate: Aggregate::new(self.measure.clone()),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            trials: Arc::new(Trials {
                suite: Arc::clone(&self.suite),
                client,
                redactor,
                folder: folder.clone(),
                abort: stopper.abort.clone(),
                retries,
            }),
        };
        let mut begin = vec![Event::RunStarted {
            schema_version: SCHEMA_VERSION,
            run_id: folder.id.clone(),
            plan: self.plan(),
        }];
        begin.extend(
            cache_problem
                .map(|message| Event::Warning { code: "CACHE_UNAVAILABLE".to_owned(), message }),
        );
        record(&begin, &mut journal, listen)?;
        loop {
            if !stopper.stop.is_cancelled() {
                dispatcher.start_what_fits(listen)?;
            }
            if dispatcher.tasks.is_empty() {
                break;
            }
            tokio::select! {
                Some(ended) = dispatcher.tasks.join_next_with_id() => {
                    let mut events = vec![dispatcher.finished(ended)?];
                    // Whatever else is ready shares the write.
                    while let Some(ended) = dispatcher.tasks.try_join_next_with_id() {
                        events.push(dispatcher.finished(ended)?);
                    }
                    record(&events, &mut journal, listen)?;
                }
                Some(retry) = told_retries.recv() => listen(&retry),
            }
        }
        while let Ok(retry) = told_retries.try_recv() {
            listen(&retry);
        }
        journal.finish()?;
        // The summary of a large suite goes where connections and buffers were.
        let Dispatcher { aggregate, .. } = dispatcher;
        // An empty folder is all that is ever left of it.
        let _ = std::fs::remove_dir_all(folder.work());
        let stats = RunStats {
            started_at: now.to_string(),
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..RunStats::default()
        };
        let summary = aggregate.summary(&folder.id, &self.suite.name, stats);
        folder.write_summary(&summary)?;
        let exit_code = match summary.verdict {
            _ if stopper.stop.is_cancelled() => ExitCode::Interrupted,
            Verdict::Passed => ExitCode::Passed,
            Verdict::Failed => ExitCode::Failed,
            Verdict::Inconclusive => ExitCode::Inconclusive,
        };
        Ok(Finished { folder, summary, exit_code })
    }

    fn lanes(&self) -> Result<Vec<TargetLane>, Error> {
        let source = Arc::new(self.suite.cases.clone());
        let bounded = self.suite.settings.parallel.is_some();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.suite
            .targets
            .iter()
            .map(|target| {
                let capacity = match &target.kind {
                    TargetKind::Model(model) => {
                        model.model.limits().connections as usize + PREPARED
                    }
                    TargetKind::Program(_) if bounded => usize::MAX,
                    TargetKind::Program(_) => cores,
                };
                let lane =
                    Lane::new(Arc::clone(&source), Arc::clone(&self.filter), self.measure.trials)
                        .map_err(Error::Cases)?;
                Ok(TargetLane { lane, capacity, running: 0 })
            })
            .collect()
    }

    /// The client, and why it has no cache although it should.
    fn client(&self, folder: &RunFolder) -> (Client, Redactor, Option<String>) {
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
            retry: RetryPolicy {
                max_retries: self.config.max_retries,
                timeout: self.suite.settings.timeout,
                attempt_timeout: self.config.attempt_timeout,
                ..RetryPolicy::default()
            },
            redactor: redactor.clone(),
        });
        (client, redactor, problem)
    }

    /// The contents of `run.json`. Nothing here can hold a secret: keys and headers are left out.
    fn describe(&self, folder: &RunFolder, now: Timestamp, flat: bool) -> serde_json::Value {
        let targets: Vec<_> = self.suite.targets.iter().map(describe_target).collect();
        json!({
            "schema_version": SCHEMA_VERSION,
            "run_id": folder.id,
            "bakeoff_version": env!("CARGO_PKG_VERSION"),
            "started_at": now.to_string(),
            "arguments": self.config.arguments,
            "seed": self.config.seed,
            "layout": if flat { "flat" } else { "by_target" },
            "suite": {
                "name": self.suite.name,
                "path": self.suite.path,
                "digest": self.suite.digest,
                "trials": self.measure.trials,
                "threshold": self.measure.threshold.as_f64(),
                "suite_threshold": self.measure.suite_threshold.map(Threshold::as_f64),
                "parallel": self.suite.settings.parallel,
                "timeout_seconds": self.suite.settings.timeout.as_secs_f64(),
                "cases": { "path": self.suite.cases.path(), "digest": self.suite.survey.digest, "chosen": self.measure.cases.len() },
                "targets": targets,
                "checks": self.suite.checks.iter().map(|check| &check.id).collect::<Vec<_>>(),
            },
        })
    }
}

fn describe_target(target: &Target) -> serde_json::Value {
    let mut value = json!({
        "name": target.name,
        "gate": target.gate,
        "prompt": target.prompt.source(),
    });
    match &target.kind {
        TargetKind::Model(model) => {
            value["model"] = json!(model.label);
            value["system"] = json!(model.system.as_ref().map(|system| system.source()));
            value["connections"] = json!(model.model.limits().connections);
        }
        TargetKind::Program(program) => {
            let words: Vec<_> = program.command.iter().map(|word| word.to_string_lossy()).collect();
            value["command"] = json!(words);
        }
    }
    value
}

fn limited(target: Target, connections: u32) -> Target {
    let kind = match target.kind {
        TargetKind::Model(mut model) => {
            model.model = model.model.with_limits(Limits { connections });
            TargetKind::Model(model)
        }
        program => program,
    };
    Target { kind, ..target }
}

/// Ids of the cases that are wanted.
fn chosen(suite: &Suite, filter: &Filter) -> Result<Arc<CaseIds>, Error> {
    if filter.ids.is_empty() && filter.tags.is_empty() {
        return Ok(Arc::clone(&suite.survey.ids));
    }
    let mut missing: HashSet<&String> = filter.ids.iter().collect();
    let mut tags: BTreeSet<String> = BTreeSet::new();
    let mut chosen = Vec::new();
    for case in suite.cases.iter() {
        let case = case.map_err(Error::Cases)?;
        missing.remove(&case.id);
        if filter.wants(&case) {
            chosen.push(case.id);
        }
        tags.extend(case.tags);
    }
    let nothing = |message, hint| Err(Error::Usage { code: None, message, hint });
    if let Some(id) = missing.into_iter().min() {
        let hint = suggest(id, suite.survey.ids.iter().take(1000));
        return nothing(format!("there is no case `{id}`"), hint.filter(|hint| hint.len() < 200));
    }
    if chosen.is_empty() {
        let wanted: Vec<&str> = filter.tags.iter().map(String::as_str).collect();
        let hint = suggest(wanted.first().unwrap_or(&""), tags.iter().map(String::as_str));
        return nothing(format!("no case has the tag `{}`", wanted.join("` or `")), hint);
    }
    Ok(Arc::new(chosen.into_iter().collect()))
}

/// Journals what happened, then tells it: nothing is counted or shown that could be lost.
fn record(
    events: &[Event],
    journal: &mut Journal,
    listen: &mut (dyn FnMut(&Event) + Send),
) -> Result<(), Error> {
    for event in events {
        journal.push(event)?;
    }
    journal.flush()?;
    events.iter().for_each(listen);
    Ok(())
}

struct TargetLane {
    lane: Lane,
    capacity: usize,
    running: usize,
}

struct Dispatcher {
    lanes: Vec<TargetLane>,
    parallel: usize,
    aggregate: Aggregate,
    tasks: JoinSet<Result<TrialResult, Error>>,
    running: HashMap<Id, (usize, TrialKey)>,
    trials: Arc<Trials>,
}

impl Dispatcher {
    /// Starts trials, those that come first in the order first, until nothing more fits.
    fn start_what_fits(&mut self, listen: &mut (dyn FnMut(&Event) + Send)) -> Result<(), Error> {
        while self.tasks.len() < self.parallel {
            let free =
                self.lanes.iter().enumerate().filter(|(_, lane)| lane.running < lane.capacity);
            let next = free
                .filter_map(|(number, lane)| Some((lane.lane.position()?, number)))
                .min()
                .map(|(_, number)| number);
            let Some(number) = next else { break };
            if let Some((case, trial)) = self.lanes[number].lane.take().map_err(Error::Cases)? {
                self.start(number, case, trial, listen);
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        target: usize,
        case: Case,
        trial: u32,
        listen: &mut (dyn FnMut(&Event) + Send),
    ) {
        let name = self.trials.suite.targets[target].name.clone();
        let key = TrialKey { target: name, case: case.id.clone(), trial };
        listen(&Event::TrialStarted { key: key.clone() });
        let task = self.tasks.spawn(Arc::clone(&self.trials).make(target, case, trial));
        self.running.insert(task.id(), (target, key));
        self.lanes[target].running += 1;
    }

    /// Counts a trial that ended. One whose task broke is an error like any other.
    fn finished(
        &mut self,
        ended: Result<(Id, Result<TrialResult, Error>), JoinError>,
    ) -> Result<Event, Error> {
        let (id, result) = match ended {
            Ok((id, result)) => (id, Ok(result?)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some((target, key)) = self.running.remove(&id) else {
            // Every task is entered when it starts.
            unreachable!("a task that was never started has ended");
        };
        self.lanes[target].running -= 1;
        let result = result.unwrap_or_else(|error| TrialResult {
            key,
            status: Status::Error,
            score: None,
            checks: Vec::new(),
            attempt: failed(
                ErrorKind::Internal,
                format!("the trial's task broke: {error} [EVAL_PARALLEL_EXHAUSTION]"),
            ),
        });
        self.aggregate.add(&result);
        Ok(Event::TrialFinished { result: Box::new(result) })
    }
}
