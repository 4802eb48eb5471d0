//! A run from its first line in the journal to its summary, whoever says which trials to make.

use crate::Error;
use crate::attempt;
use crate::cleanup;
use crate::folder::RunFolder;
use crate::lane::Turn;
use crate::record::{Listener, Record};
use crate::run::{Finished, Opened, Run, Stopper, exit_code};
use crate::traffic::Traffic;
use crate::trial::Trials;
use bakeoff_core::{Event, RunStats, SCHEMA_VERSION, Status};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How often pools are looked at.
const WATCH: Duration = Duration::from_secs(1);

/// A trial that was judged: the number of its target, its turn, and how it ended.
pub(crate) type Judged = (usize, Turn, Status);

/// A run that has begun.
pub(crate) struct Underway<'a> {
    pub(crate) folder: RunFolder,
    pub(crate) record: Record<'a>,
    pub(crate) trials: Arc<Trials>,
    /// What happens within trials.
    pub(crate) told: mpsc::Receiver<Event>,
    pub(crate) started: Instant,
    started_at: String,
    traffic: Traffic,
}

impl Run {
    /// Opens the run's folder and journals that it begins; gives what an earlier process has judged.
    pub(crate) fn begin<'a>(
        &mut self,
        stopper: &Stopper,
        listen: Listener<'a>,
    ) -> Result<(Underway<'a>, Vec<Judged>), Error> {
        let started = Instant::now();
        let Opened { folder, journal, aggregate, files, started_at, done, left } = self.open()?;
        let judged: Vec<Judged> = aggregate.judged().collect();
        let mut record = Record::new(journal, aggregate, files, listen);
        let (schema_version, run_id, plan) = (SCHEMA_VERSION, folder.id.clone(), self.plan());
        record.event(&match done {
            None => Event::RunStarted { schema_version, run_id, plan },
            Some(done) => Event::RunResumed { schema_version, run_id, plan, done },
        })?;
        let traffic = Traffic::open(&folder)?;
        let (trials, told, cache_problem) = self.trials(&folder, &traffic, stopper);
        let mut warn = |code: &str, message: String| {
            record.event(&Event::Warning { code: code.to_owned(), message })
        };
        if left > 0 {
            let message = format!("{left} processes of the earlier run could not be ended");
            warn("EVAL_LEFT_BEHIND", message)?;
        }
        if let Some(problem) = cache_problem {
            warn("CACHE_UNAVAILABLE", problem)?;
        }
        Ok((Underway { folder, record, trials, told, started, started_at, traffic }, judged))
    }
}

impl Underway<'_> {
    /// When to look.
    pub(crate) fn watch(&self) -> Interval {
        let mut watch = tokio::time::interval_at(self.started + WATCH, WATCH);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        watch
    }

    /// Tells how the pools are doing.
    pub(crate) fn look(&mut self) {
        let client = &self.trials.client;
        self.traffic.changes(client).iter().for_each(|event| self.record.tell(event));
        Traffic::pools(client).iter().for_each(|event| self.record.tell(event));
        self.traffic.flush();
    }

    /// Writes what the run comes to. Without all its results it has no verdict, and so no summary:
    /// `problem` says that some could not be kept.
    pub(crate) fn end(
        self,
        run: &Run,
        mut problem: Result<(), Error>,
        last: &[Event],
        stopper: &Stopper,
    ) -> Result<Finished, Error> {
        let Underway { folder, mut record, trials, mut told, started, started_at, mut traffic } =
            self;
        while let Ok(event) = told.try_recv() {
            problem = problem.and(record.told(&event));
        }
        let client = &trials.client;
        traffic.changes(client).iter().for_each(|event| record.tell(event));
        let (connection_limit_history, warnings) = traffic.finish();
        warnings.iter().chain(&run.remember(client)).for_each(|event| record.tell(event));
        last.iter().for_each(|event| record.tell(event));
        // Connections and buffers go first: the summary of a large suite needs their room.
        drop(trials);
        if attempt::has_workers(&run.suite) {
            // They are dead, and what they have left behind goes with them.
            cleanup::end_programs(&folder.id, &[]);
        }
        let finished = record.finish();
        cleanup::remove_workspaces(&folder.work());
        problem?;
        let (aggregate, files) = finished?;
        let stats = RunStats {
            started_at,
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection_limit_history,
            ..RunStats::default()
        };
        let summary = aggregate.summary(&folder.id, &run.suite.name, stats);
        files.write(&folder, &summary)?;
        folder.write_summary(&summary, &run.suite)?;
        let exit_code = exit_code(&summary, stopper);
        Ok(Finished { folder, summary, exit_code })
    }
}
