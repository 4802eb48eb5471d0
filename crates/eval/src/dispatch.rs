//! Starting trials.
//!
//! The dispatcher is the sole owner of the scheduling state of a run. Trials are independent tasks that
//! return their outcome.

use crate::aggregate::FinishedTrial;
use crate::case_selection::CaseSelection;
use crate::context::TrialContext;
use crate::lane::{Lane, LaneEnd, LaneRules, TrialIndex};
use crate::trial::{TrialOutcome, execute_trial, failed};
use bakeoff_core::{ErrorKind, Status, TargetName, TrialKey, TrialResult};
use bakeoff_pace::Pool;
use bakeoff_suite::{AgentSettings, Case, CaseReader, Problem, Suite, Target, TargetKind};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};

/// Trials started beyond the limit of their pool, so that requests are ready when it frees up.
const RESERVE: usize = 4;

/// Concurrent trials of a model without a concurrency limit: memory and open files are limited.
const MAX_UNLIMITED: u32 = 10_000;

/// Units that a trial takes up in all its pools together. 2520 is the least common multiple of 1 to 10,
/// so that shares of up to 10 pools are exact.
const SHARE_UNITS: usize = 2520;

/// Concurrent trials per core of a model whose tools start programs.
const AGENTS_PER_CORE: usize = 4;

/// Starts the trials of a run.
pub(crate) struct Dispatcher {
    lanes: Vec<TargetLane>,
    pools: Vec<SharedPool>,
    /// Maximum number of concurrent trials.
    parallel: usize,
    /// Maximum number of concurrent programs.
    programs: usize,
    tasks: JoinSet<TrialOutcome>,
    running: HashMap<Id, RunningTrial>,
    context: Arc<TrialContext>,
    reader: CaseReader,
    cases: Arc<CaseSelection>,
}

/// A running trial.
struct RunningTrial {
    lane: usize,
    index: TrialIndex,
    key: TrialKey,
}

/// The trials of one target.
struct TargetLane {
    lane: Lane,
    is_program: bool,
    /// Indices of the pools of its calls.
    pools: Vec<usize>,
    /// Maximum number of its concurrent trials.
    max_running: usize,
    running: usize,
}

impl TargetLane {
    /// Returns the units that one of its trials takes up in each of its pools. A trial of a chain uses
    /// one pool after the other; counted in full in each of them, trials would leave most of every
    /// limit unused.
    fn share(&self) -> usize {
        SHARE_UNITS / self.pools.len().max(1)
    }
}

/// A pool and the load of all targets that use it.
struct SharedPool {
    pool: Pool,
    /// Units of running trials; [`SHARE_UNITS`] are one trial.
    running: usize,
}

impl SharedPool {
    /// Whether another trial may start. Calls that back off do not occupy the limit, so their trials are
    /// not counted, up to the limit once more: when all calls fail, not every trial has to start to find
    /// that out.
    fn has_capacity(&self) -> bool {
        let limit = match self.pool.limit() {
            u32::MAX => MAX_UNLIMITED,
            limit => limit,
        };
        let backing_off = self.pool.resting().min(limit);
        let trials = limit as usize + backing_off as usize + RESERVE;
        self.running < trials.saturating_mul(SHARE_UNITS)
    }
}

impl Dispatcher {
    pub(crate) fn new(
        suite: &Suite,
        cases: Arc<CaseSelection>,
        rules: &LaneRules,
        context: Arc<TrialContext>,
    ) -> Result<Dispatcher, Problem> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let parallel = suite.settings.parallel.map(|parallel| parallel as usize);
        let mut pools: Vec<SharedPool> = Vec::new();
        let lane = |target: &Target| {
            let lane = Lane::new(rules.clone(), cases.ids.len());
            let mut own = Vec::new();
            // With invalid limits there is no pool, and every call fails immediately.
            let models = target.models();
            for pool in models.iter().filter_map(|model| context.client.pool(&model.model).ok()) {
                let known = pools.iter().position(|known| known.pool.is(&pool));
                let index = known.unwrap_or_else(|| {
                    pools.push(SharedPool { pool, running: 0 });
                    pools.len() - 1
                });
                if !own.contains(&index) {
                    own.push(index);
                }
            }
            let max_running = match &target.kind {
                TargetKind::Service(service) => service.connections,
                // They mostly wait for their model, but take memory meanwhile.
                _ if target.agent().is_some_and(AgentSettings::starts_programs) => {
                    parallel.unwrap_or(cores.saturating_mul(AGENTS_PER_CORE))
                }
                _ => usize::MAX,
            };
            TargetLane {
                lane,
                is_program: target.is_program(),
                pools: own,
                max_running,
                running: 0,
            }
        };
        Ok(Dispatcher {
            lanes: suite.targets.iter().map(lane).collect(),
            pools,
            parallel: parallel.unwrap_or(usize::MAX),
            programs: parallel.unwrap_or(cores),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            reader: suite.cases.reader(&suite.survey)?,
            cases,
            context,
        })
    }

    /// Marks trials of an earlier process as finished.
    pub(crate) fn restore(&mut self, finished: impl IntoIterator<Item = FinishedTrial>) {
        for FinishedTrial { target, index, status } in finished {
            self.lanes[target].lane.restore(index, status);
        }
    }

    /// Returns the targets that ended before all their trials were started, and why.
    pub(crate) fn ended_lanes(&self) -> impl Iterator<Item = (&TargetName, LaneEnd)> {
        let names = self.context.suite.targets.iter().map(|target| &target.name);
        let ends = self.lanes.iter().map(|lane| lane.lane.end());
        names.zip(ends).filter_map(|(name, end)| Some((name, end?)))
    }

    /// Whether no trial is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts as many trials as the limits allow, in the order of the lanes.
    pub(crate) fn start_trials(
        &mut self,
        mut on_start: impl FnMut(&TrialKey),
    ) -> Result<(), Problem> {
        while self.tasks.len() < self.parallel {
            let Some(lane) = self.next_lane() else { break };
            let Some(index) = self.lanes[lane].lane.take() else { break };
            let case = self.reader.case(self.cases.suite_index(index.case))?;
            on_start(&self.start(lane, index, case));
        }
        Ok(())
    }

    /// Returns the lane with the first next trial, of those with capacity.
    fn next_lane(&mut self) -> Option<usize> {
        let programs: usize =
            self.lanes.iter().filter(|lane| lane.is_program).map(|lane| lane.running).sum();
        let has_capacity = |lane: &TargetLane| {
            // All pools count: a trial in its second step does not occupy the pool of its first, but
            // more and more trials would accumulate in the second pool.
            lane.pools.iter().all(|pool| self.pools[*pool].has_capacity())
                && (!lane.is_program || programs < self.programs)
                && lane.running < lane.max_running
        };
        let free = self.lanes.iter_mut().enumerate().filter(|(_, lane)| has_capacity(lane));
        let next = free.filter_map(|(index, lane)| Some((lane.lane.position()?, index))).min();
        next.map(|(_, index)| index)
    }

    fn start(&mut self, lane: usize, index: TrialIndex, case: Case) -> TrialKey {
        let trial = index.trial + 1;
        let target = self.context.suite.targets[lane].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial };
        let task = self.tasks.spawn(execute_trial(Arc::clone(&self.context), lane, case, trial));
        self.running.insert(task.id(), RunningTrial { lane, index, key: key.clone() });
        let lane = &mut self.lanes[lane];
        lane.running += 1;
        for pool in &lane.pools {
            self.pools[*pool].running += lane.share();
        }
        key
    }

    /// Waits for a trial to finish and returns all outcomes that are ready by then. Returns nothing when
    /// no trial is running.
    pub(crate) async fn next_outcomes(&mut self) -> Vec<TrialOutcome> {
        let mut outcomes = Vec::new();
        if let Some(first) = self.tasks.join_next_with_id().await {
            outcomes.extend(self.complete(first));
        }
        while let Some(next) = self.tasks.try_join_next_with_id() {
            outcomes.extend(self.complete(next));
        }
        outcomes
    }

    /// Frees the capacity of a finished trial.
    fn complete(&mut self, joined: Result<(Id, TrialOutcome), JoinError>) -> Option<TrialOutcome> {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let RunningTrial { lane, index, key } = self.running.remove(&id)?;
        let freed = &mut self.lanes[lane];
        freed.running -= 1;
        for pool in &freed.pools {
            self.pools[*pool].running -= freed.share();
        }
        let outcome = match joined {
            Ok((_, outcome)) => outcome,
            Err(error) => panic_outcome(key, &error),
        };
        let result = &outcome.result;
        // An exhausted quota and an interrupt are no errors of the target.
        let kind = result.attempt.error.as_ref().map(|error| error.kind);
        if matches!(kind, Some(ErrorKind::Quota | ErrorKind::Cancelled)) {
            self.lanes[lane].lane.restore(index, result.status);
        } else {
            self.lanes[lane].lane.complete(index, result.status);
        }
        Some(outcome)
    }
}

/// Returns the outcome of a trial whose task panicked: an error like any other.
pub(crate) fn panic_outcome(key: TrialKey, error: &JoinError) -> TrialOutcome {
    let message = format!("the trial's task failed: {error} [EVAL_PARALLEL_EXHAUSTION]");
    let result = TrialResult {
        key,
        status: Status::Error,
        score: None,
        checks: Vec::new(),
        attempt: failed(ErrorKind::Internal, message),
    };
    TrialOutcome { result, written: Ok(()) }
}
