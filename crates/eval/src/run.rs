//! A suite and a command line, put together and carried out.

use crate::Error;
use crate::aggregate::{Aggregate, Measure};
use crate::casefile::CaseFiles;
use crate::choice::{Chosen, Filter, choose};
use crate::dispatch::Dispatcher;
use crate::folder::RunFolder;
use crate::lane::LaneRules;
use crate::limited::{limited, limited_judges};
use crate::problem::suggest;
use crate::resume;
use crate::runfile::RunFile;
use crate::suite::{Budget, MOST_TRIALS, Suite};
use crate::traffic::LiveHttp;
use crate::underway::Underway;
use crate::warnings::{given_up, needs_prices, roles_filled};
use bakeoff_core::{Event, ExitCode, RunPlan, Summary, TargetName, TrialKey, Verdict};
use bakeoff_journal::Journal;
use bakeoff_llm::Transport;
use bakeoff_pace::{LimitOverrides, Pools};
use bakeoff_stats::Threshold;
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What the command line adds to a suite.
#[derive(Debug, Default)]
pub struct RunConfig {
    /// The folder of all runs.
    pub out: PathBuf,
    /// The folder of a run to go on with, instead of a new one.
    pub resume: Option<PathBuf>,
    /// A run that goes on may get more trials, cases or targets.
    pub extend: bool,
    /// Instead of the suite's budget, where something is given.
    pub budget: Budget,
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
    /// Simulated models in addition to the judge.
    pub simulated_models: Vec<Arc<dyn bakeoff_sim::ModelBehaviour>>,
    /// Keep the workspaces of trials that did not pass.
    pub keep: bool,
    /// The command line, for the record.
    pub arguments: Vec<String>,
}

/// Stops a run, gently or at once.
#[derive(Debug, Clone, Default)]
pub struct Stopper {
    pub(crate) stop: CancellationToken,
    pub(crate) abort: CancellationToken,
}

impl Stopper {
    /// Start nothing new; finish what has begun.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
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
    pub(crate) suite: Arc<Suite>,
    pub(crate) config: RunConfig,
    pub(crate) measure: Measure,
    pub(crate) chosen: Arc<Chosen>,
}

/// A run's folder, and what is known of it already.
pub(crate) struct Opened {
    pub(crate) folder: RunFolder,
    pub(crate) journal: Journal,
    pub(crate) aggregate: Aggregate,
    pub(crate) files: CaseFiles,
    pub(crate) started_at: String,
    /// Trials that need not be made again; absent for a new run.
    pub(crate) done: Option<u64>,
    /// Processes of the earlier run that could not be ended.
    pub(crate) left: usize,
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
        suite.targets = limited(std::mem::take(&mut suite.targets), &config.limits)?;
        suite.judges = limited_judges(std::mem::take(&mut suite.judges), &config.limits)?;
        let filter = Filter {
            ids: config.cases.iter().cloned().collect(),
            tags: config.tags.iter().cloned().collect(),
        };
        let chosen = choose(&suite, &filter)?;
        suite.settings.budget = Budget {
            cost: config.budget.cost.or(suite.settings.budget.cost),
            tokens: config.budget.tokens.or(suite.settings.budget.tokens),
            time: config.budget.time.or(suite.settings.budget.time),
        };
        if suite.settings.budget.cost.is_some() {
            needs_prices(&suite)?;
        }
        let gate = config.suite_threshold.or(config.ci.then_some(suite.settings.threshold));
        // Where none of those that are wanted gates, their verdicts are what was asked for.
        let none_gates = suite.targets.iter().all(|target| !target.gate);
        let measure = Measure {
            targets: suite
                .targets
                .iter()
                .map(|target| (target.name.clone(), target.gate || none_gates))
                .collect(),
            cases: Arc::clone(&chosen.ids),
            trials: suite.settings.trials,
            threshold: suite.settings.threshold,
            suite_threshold: gate,
            early_stop: suite.settings.early_stop,
            alpha: suite.settings.alpha,
            seed: config.seed,
        };
        Ok(Run { suite: Arc::new(suite), config, measure, chosen: Arc::new(chosen) })
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
        roles_filled(&self.suite)?;
        let (mut underway, judged) = self.begin(stopper, listen)?;
        for warning in self.warnings(judged.len() as u64) {
            underway.record.event(&warning)?;
        }
        let rules = self.rules();
        let (chosen, trials) = (Arc::clone(&self.chosen), Arc::clone(&underway.trials));
        let mut dispatcher =
            Dispatcher::new(&self.suite, chosen, &rules, trials).map_err(Error::Cases)?;
        dispatcher.recall(judged);
        let mut watch = underway.watch();
        // After the first problem nothing starts, but what is under way is paid for and kept.
        let mut problem = Ok(());
        let mut used_up = None;
        loop {
            let Underway { record, told, started, .. } = &mut underway;
            used_up = used_up.or_else(|| self.used_up(record.spent(), started.elapsed()));
            if problem.is_ok() && used_up.is_none() && !stopper.stop.is_cancelled() {
                let started =
                    |key: &TrialKey| record.tell(&Event::TrialStarted { key: key.clone() });
                problem = dispatcher.start_what_fits(started).map_err(Error::Cases);
            }
            if dispatcher.is_idle() {
                break;
            }
            tokio::select! {
                ended = dispatcher.ended() => problem = problem.and(record.trials(ended)),
                Some(event) = told.recv() => problem = problem.and(record.told(&event)),
                _ = watch.tick() => underway.look(),
            }
        }
        let last: Vec<Event> = used_up.into_iter().chain(given_up(&dispatcher)).collect();
        drop(dispatcher);
        underway.end(&self, problem, &last, stopper)
    }

    /// Makes the run's folder, or takes up an earlier one.
    pub(crate) fn open(&self) -> Result<Opened, Error> {
        let mut aggregate = Aggregate::new(self.measure.clone());
        let mut files = CaseFiles::new(self.suite.settings.artifacts);
        let Some(path) = &self.config.resume else {
            let now = Timestamp::now();
            let flat = self.suite.targets.len() == 1;
            let folder = RunFolder::create(&self.config.out, &self.suite.name, now, flat)?;
            let started_at = now.to_string();
            folder.write_run(&self.file(&folder, started_at.clone()))?;
            let journal = Journal::create(&folder.journal())?;
            return Ok(Opened {
                folder,
                journal,
                aggregate,
                files,
                started_at,
                done: None,
                left: 0,
            });
        };
        let then = RunFile::read(path)?;
        let folder = RunFolder::open(path, &then);
        let flat = self.suite.targets.len() == 1;
        let now = self.file(&RunFolder { flat, ..folder.clone() }, then.started_at.clone());
        resume::agree(&then, &now, &self.suite, self.config.extend)?;
        // From here on the run is ours alone.
        let journal = Journal::reopen(&folder.journal()).map_err(Error::Log)?;
        let left_behind = resume::recall(&folder, &mut aggregate, &mut files)?;
        let left = resume::end_left_behind(&folder.id, &left_behind);
        resume::sweep(&folder.work());
        resume::sweep_unfinished(&folder.path);
        folder.remove_summary()?;
        folder.write_run(&RunFile { layout: then.layout, ..now })?;
        let done = aggregate.judged().count() as u64;
        let started_at = then.started_at;
        Ok(Opened { folder, journal, aggregate, files, started_at, done: Some(done), left })
    }

    fn file(&self, folder: &RunFolder, started_at: String) -> RunFile {
        RunFile::new(&self.suite, &self.config, &self.measure, folder, started_at)
    }

    /// When trials are started.
    fn rules(&self) -> LaneRules {
        let settings = &self.suite.settings;
        LaneRules {
            case: Arc::new(self.measure.case_rule()),
            target: Arc::new(self.measure.target_rule()),
            lookahead: settings.lookahead,
            max_error_rate: settings.max_error_rate,
        }
    }
}

/// What the shell is told.
pub(crate) fn exit_code(summary: &Summary, stopper: &Stopper) -> ExitCode {
    let is_incomplete =
        summary.targets.iter().any(|target| target.counted + target.saved < target.total_trials);
    match summary.verdict {
        _ if is_incomplete && stopper.is_stopped() => ExitCode::Interrupted,
        Verdict::Passed => ExitCode::Passed,
        Verdict::Failed => ExitCode::Failed,
        Verdict::Inconclusive => ExitCode::Inconclusive,
    }
}
