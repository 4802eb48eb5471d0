//! A run in progress, from its first journal record to its summary. Does not decide which trials to
//! execute: [`crate::Run`] and [`crate::SearchRun`] do.

use crate::Error;
use crate::aggregate::{Aggregate, FinishedTrial};
use crate::attempt;
use crate::budget::shared_budget;
use crate::case_files::CaseFiles;
use crate::cleanup;
use crate::client::{RunLimits, save_limits};
use crate::context::TrialContext;
use crate::control::ControlSocket;
use crate::folder::RunFolder;
use crate::isolation::{self, NOT_ISOLATED};
use crate::journal_damage::JOURNAL_DAMAGED;
use crate::recorder::{Listener, Recorder};
use crate::resume::ResumeState;
use crate::run::{FinishedRun, Run, exit_code};
use crate::run_file::{Layout, RunFile};
use crate::stopper::Stopper;
use crate::timestamp::rfc3339;
use crate::traffic_log::TrafficLog;
use crate::work_folder::{WorkFolder, needs_folders};
use bakeoff_core::{Event, ExitCode, RunStats, SCHEMA_VERSION};
use bakeoff_journal::Journal;
use bakeoff_suite::Budget;
use chrono::Utc;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Time between two reports on the pools.
const POOL_INTERVAL: Duration = Duration::from_secs(1);

/// A run in progress.
pub(crate) struct ActiveRun<'a> {
    pub(crate) folder: RunFolder,
    pub(crate) recorder: Recorder<'a>,
    pub(crate) context: Arc<TrialContext>,
    /// Events from within trials.
    pub(crate) trial_events: mpsc::Receiver<Event>,
    pub(crate) started: Instant,
    deadline: Option<Instant>,
    started_at: String,
    traffic: TrafficLog,
    work: Arc<WorkFolder>,
    /// Closed when the run ends.
    control: Option<ControlSocket>,
}

/// The folder of a run that is about to start, and the results it already has.
struct OpenRun {
    folder: RunFolder,
    work: WorkFolder,
    journal: Journal,
    aggregate: Aggregate,
    case_files: CaseFiles,
    started_at: String,
    /// Finished trials of the resumed run; absent for a new run.
    done: Option<u64>,
    /// Description of the damage of its journal, if any.
    damage: Option<String>,
    /// Processes of the earlier run that could not be ended.
    surviving_processes: usize,
    /// Open before its path is recorded, so that a recorded socket exists.
    control: io::Result<(ControlSocket, UnixListener)>,
}

impl OpenRun {
    fn create(run: &Run) -> Result<OpenRun, Error> {
        let work = WorkFolder::new(run.config.work_dir.as_deref());
        create_work_folder(run, &work)?;
        let now = Utc::now();
        let layout = Layout::of(run.suite.targets.len());
        let folder = RunFolder::create(&run.config.out, &run.suite.name, now, layout)?;
        let started_at = rfc3339(now);
        let control = ControlSocket::open(&folder.id);
        folder.write_run(&RunFile {
            control_socket: control.as_ref().ok().map(|(socket, _)| socket.path().to_owned()),
            work_folder: work_path(run, &work),
            ..run.file(folder.id.clone(), started_at.clone())
        })?;
        Ok(OpenRun {
            control,
            journal: Journal::create(&folder.journal())?,
            folder,
            work,
            aggregate: Aggregate::new(run.criteria.clone()),
            case_files: CaseFiles::new(&run.suite),
            started_at,
            done: None,
            damage: None,
            surviving_processes: 0,
        })
    }

    fn resume(run: &Run, state: ResumeState) -> Result<OpenRun, Error> {
        let groups = state.left_behind();
        let ResumeState { folder, file, journal, aggregate, case_files, damage, .. } = state;
        let surviving_processes = cleanup::end_programs(&folder.id, &groups);
        let work = WorkFolder::replace(file.work_folder.as_deref(), run.config.work_dir.as_deref());
        create_work_folder(run, &work)?;
        cleanup::remove_old_workspaces(&folder.path);
        cleanup::remove_temporary_files(&folder.path);
        folder.remove_summary(&run.suite)?;
        let current = run.file(folder.id.clone(), file.started_at.clone());
        let control = ControlSocket::open(&folder.id);
        folder.write_run(&RunFile {
            layout: file.layout,
            control_socket: control.as_ref().ok().map(|(socket, _)| socket.path().to_owned()),
            work_folder: work_path(run, &work),
            ..current
        })?;
        let done = Some(aggregate.finished().count() as u64);
        let damage = (!damage.is_empty()).then(|| damage.describe_with(&aggregate.unfinished()));
        let started_at = file.started_at;
        Ok(OpenRun {
            folder,
            work,
            journal,
            aggregate,
            case_files,
            started_at,
            done,
            damage,
            surviving_processes,
            control,
        })
    }
}

/// Creates the folder of workspaces, if the run needs one.
fn create_work_folder(run: &Run, work: &WorkFolder) -> Result<(), Error> {
    if !needs_folders(&run.suite) {
        return Ok(());
    }
    if isolation::is_within(work.path(), &run.suite.path) {
        let parent = work.path().parent().unwrap_or(Path::new("/")).display();
        let message = format!(
            "the folder of workspaces would be in {parent}, within the project, whose files programs must not find"
        );
        let hint = "set `BAKEOFF_WORK_DIR` to a folder on a disk, outside of the project";
        return Err(Error::usage(message, Some(hint.to_owned())));
    }
    work.create().map_err(|error| {
        let message =
            format!("cannot create the folder of workspaces {}: {error}", work.path().display());
        let hint = "set `BAKEOFF_WORK_DIR` to a folder on a disk, outside of the project";
        Error::usage(message, Some(hint.to_owned()))
    })
}

/// Returns the path of the folder of workspaces, if the run needs one.
fn work_path(run: &Run, work: &WorkFolder) -> Option<PathBuf> {
    needs_folders(&run.suite).then(|| work.path().to_owned())
}

impl<'a> ActiveRun<'a> {
    /// Opens the run's folder and records the start. After the time of the budget, requests in flight end as usual,
    /// and trials that wait for a permit or a retry are cancelled. Also returns the trials that an earlier process
    /// has finished.
    pub(crate) fn start(
        run: &mut Run,
        budget: &Budget,
        stopper: &Stopper,
        listener: Listener<'a>,
    ) -> Result<(ActiveRun<'a>, Vec<FinishedTrial>), Error> {
        let started = Instant::now();
        let deadline = budget.time.and_then(|time| started.checked_add(time));
        let open = match run.resume.take() {
            None => OpenRun::create(run)?,
            Some(state) => OpenRun::resume(run, state)?,
        };
        let OpenRun { folder, work, journal, aggregate, case_files, started_at, done, .. } = open;
        let work = Arc::new(work);
        let finished: Vec<FinishedTrial> = aggregate.finished().collect();
        let shared = shared_budget(budget, aggregate.spent());
        let mut recorder = Recorder::new(journal, aggregate, case_files, listener);
        let (schema_version, run_id, plan) = (SCHEMA_VERSION, folder.id.clone(), run.plan());
        recorder.record(&match done {
            None => Event::RunStarted { schema_version, run_id, plan },
            Some(done) => Event::RunResumed { schema_version, run_id, plan, done },
        })?;
        let traffic = TrafficLog::open(&folder)?;
        let limits = RunLimits { deadline, budget: shared };
        let (context, trial_events, cache_error) =
            TrialContext::new(run, &folder, Arc::clone(&work), &traffic, limits, stopper);
        folder.write_cases(run.cases.cases(&run.suite), &context.redactor)?;
        if let Some(damage) = open.damage {
            recorder.warn(JOURNAL_DAMAGED, damage)?;
        }
        if let Some(files) = work_path(run, &work).as_deref().map(isolation::visible_files)
            && let [first, ..] = files.as_slice()
        {
            let message = format!(
                "programs may find {} in a folder above their workspaces; set `BAKEOFF_WORK_DIR` to another folder",
                first.display()
            );
            recorder.warn(NOT_ISOLATED, message)?;
        }
        if open.surviving_processes > 0 {
            let count = open.surviving_processes;
            let message = format!("{count} processes of the earlier run could not be ended");
            recorder.warn("EVAL_LEFT_BEHIND", message)?;
        }
        if let Some(error) = cache_error {
            recorder.warn("CACHE_UNAVAILABLE", error)?;
        }
        let control = match open.control {
            Ok((mut socket, listener)) => {
                socket.serve(listener, &context.client);
                Some(socket)
            }
            Err(error) => {
                let message = format!("the limits of this run cannot be changed: {error}");
                recorder.warn("EVAL_NO_CONTROL", message)?;
                None
            }
        };
        let active = ActiveRun {
            folder,
            recorder,
            context,
            trial_events,
            started,
            deadline,
            started_at,
            traffic,
            work,
            control,
        };
        Ok((active, finished))
    }

    /// Returns the timer for [`ActiveRun::on_pool_timer`].
    pub(crate) fn pool_timer(&self) -> Interval {
        let mut timer = tokio::time::interval_at(self.started + POOL_INTERVAL, POOL_INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        timer
    }

    /// Does what is due every second: ends waiting at the deadline and reports on the pools.
    pub(crate) fn on_pool_timer(&mut self) {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.context.stop.cancel();
        }
        self.emit_pools();
    }

    /// Emits changes of limits and the state of the pools.
    fn emit_pools(&mut self) {
        let client = &self.context.client;
        self.traffic.take_changes(client).iter().for_each(|event| self.recorder.emit(event));
        TrafficLog::pool_states(client).iter().for_each(|event| self.recorder.emit(event));
        self.traffic.flush();
    }

    /// Ends the run and writes its summary. `problem` is the first error while results were recorded;
    /// a run without all its results has no verdict, and so no summary.
    pub(crate) fn finish(
        mut self,
        run: &Run,
        mut problem: Result<(), Error>,
        last: &[Event],
        stopper: &Stopper,
    ) -> Result<FinishedRun, Error> {
        while let Ok(event) = self.trial_events.try_recv() {
            problem = problem.and(self.recorder.record_trial_event(&event));
        }
        drop(self.control.take());
        let ActiveRun {
            folder, mut recorder, context, started, started_at, mut traffic, work, ..
        } = self;
        let client = &context.client;
        traffic.take_changes(client).iter().for_each(|event| recorder.emit(event));
        let pools = TrafficLog::pool_summaries(client);
        let (connection_limit_history, warnings) = traffic.finish();
        let limit_warning = save_limits(&run.config, client);
        warnings.iter().chain(&limit_warning).for_each(|event| recorder.emit(event));
        last.iter().for_each(|event| recorder.emit(event));
        // Connections and buffers are freed first: the summary of a large suite needs their memory.
        drop(context);
        if attempt::has_workers(&run.suite) {
            // The workers have exited; this ends the processes that they left behind.
            let run = folder.id.to_string();
            bakeoff_agent::Identity { run, trial: None, part: None }.kill();
        }
        problem = problem.and(recorder.warn_of_empty_outputs());
        let recorded = recorder.finish();
        work.remove();
        problem?;
        let (aggregate, case_files) = recorded?;
        let stats = RunStats {
            started_at,
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection_limit_history,
            pools,
            ..RunStats::default()
        };
        let mut summary = aggregate.summary(&folder.id, &run.suite.name, stats);
        let exit_code = exit_code(&summary, stopper);
        summary.stats.interrupted = exit_code == ExitCode::Interrupted;
        case_files.write(&folder, &summary)?;
        folder.write_summary(&summary, &run.suite, &case_files)?;
        Ok(FinishedRun { folder, summary, exit_code })
    }
}
