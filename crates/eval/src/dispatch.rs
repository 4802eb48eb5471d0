//! Who starts when.
//!
//! The dispatcher alone owns the state of a run. Trials are tasks that own nothing but themselves
//! and hand their result back.

use crate::choice::Chosen;
use crate::lane::{Ended, Lane, LaneRules, Turn};
use crate::trial::{Made, Trials, failed};
use bakeoff_core::{ErrorKind, Status, TargetName, TrialKey, TrialResult};
use bakeoff_pace::Pool;
use bakeoff_suite::Problem;
use bakeoff_suite::{AgentSettings, Suite, TargetKind};
use bakeoff_suite::{Case, CaseReader};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};

/// Trials that may be in preparation while their model's window is full.
const PREPARED: usize = 4;

/// Trials at once of a model whose window has no bound: memory and open files have one.
const MOST_AT_ONCE: u32 = 10_000;

/// What a trial counts in its pools, over all of them. It divides by the first numbers.
const WHOLE: usize = 2520;

/// Trials at once, for each core, of a model whose tools start programs.
const AGENTS_PER_CORE: usize = 4;

pub(crate) struct Dispatcher {
    lanes: Vec<TargetLane>,
    pools: Vec<SharedPool>,
    /// Most trials at once.
    parallel: usize,
    /// Most programs at once.
    programs: usize,
    tasks: JoinSet<Made>,
    running: HashMap<Id, Running>,
    trials: Arc<Trials>,
    cases: CaseReader,
    chosen: Arc<Chosen>,
}

/// A trial that is under way.
struct Running {
    lane: usize,
    turn: Turn,
    key: TrialKey,
}

/// The trials of one target.
struct TargetLane {
    lane: Lane,
    is_program: bool,
    /// Indices of the pools that its calls go through.
    pools: Vec<usize>,
    /// Most of its trials at once.
    most: usize,
    running: usize,
}

impl TargetLane {
    /// What one of its trials counts in each of its pools. The steps of a chain go one after the
    /// other, so that its trials are spread over its pools: counted whole in each of them, they
    /// would leave most of every window empty.
    fn share(&self) -> usize {
        WHOLE / self.pools.len().max(1)
    }
}

/// A pool, and the trials of all targets that use it.
struct SharedPool {
    pool: Pool,
    /// In parts of [`WHOLE`].
    running: usize,
}

impl SharedPool {
    /// Room follows the pool's window. A call that waits for its next attempt leaves the window to
    /// others, so its trial does not count, up to a window's width: when everything fails, not
    /// every trial needs to begin in order to find that out.
    fn has_room(&self) -> bool {
        let limit = match self.pool.limit() {
            u32::MAX => MOST_AT_ONCE,
            limit => limit,
        };
        let resting = self.pool.resting().min(limit);
        self.running < (limit as usize + resting as usize + PREPARED).saturating_mul(WHOLE)
    }
}

impl Dispatcher {
    pub(crate) fn new(
        suite: &Suite,
        chosen: Arc<Chosen>,
        rules: &LaneRules,
        trials: Arc<Trials>,
    ) -> Result<Dispatcher, Problem> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let parallel = suite.settings.parallel.map(|most| most as usize);
        let mut pools: Vec<SharedPool> = Vec::new();
        let lane = |target: &bakeoff_suite::Target| {
            let lane = Lane::new(rules.clone(), chosen.ids.len());
            let mut own = Vec::new();
            // Limits that make no pool fail each call, and so need no room.
            let used = target.models();
            for pool in used.iter().filter_map(|one| trials.client.pool(&one.model).ok()) {
                let known = pools.iter().position(|known| known.pool.is(&pool));
                let number = known.unwrap_or_else(|| {
                    pools.push(SharedPool { pool, running: 0 });
                    pools.len() - 1
                });
                if !own.contains(&number) {
                    own.push(number);
                }
            }
            let most = match &target.kind {
                TargetKind::Service(service) => service.connections,
                // Most of the time they wait for their model, and take memory all the same.
                _ if target.agent().is_some_and(AgentSettings::starts_programs) => {
                    parallel.unwrap_or(cores.saturating_mul(AGENTS_PER_CORE))
                }
                _ => usize::MAX,
            };
            TargetLane { lane, is_program: target.is_program(), pools: own, most, running: 0 }
        };
        Ok(Dispatcher {
            lanes: suite.targets.iter().map(lane).collect(),
            pools,
            parallel: parallel.unwrap_or(usize::MAX),
            programs: parallel.unwrap_or(cores),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            cases: suite.cases.reader(&suite.survey)?,
            chosen,
            trials,
        })
    }

    /// Takes trials of an earlier process as made: their targets, their places among all trials of
    /// the target, and how they ended.
    pub(crate) fn recall(&mut self, made: impl IntoIterator<Item = (usize, Turn, Status)>) {
        for (target, turn, status) in made {
            self.lanes[target].lane.recall(turn, status);
        }
    }

    /// Targets of which nothing more is started although trials are left, and why.
    pub(crate) fn ended_early(&self) -> impl Iterator<Item = (&TargetName, Ended)> {
        let names = self.trials.suite.targets.iter().map(|target| &target.name);
        let whys = self.lanes.iter().map(|lane| lane.lane.why_ended());
        names.zip(whys).filter_map(|(name, why)| Some((name, why?)))
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts trials, those that come first in the order first, until nothing more fits.
    pub(crate) fn start_what_fits(
        &mut self,
        mut started: impl FnMut(&TrialKey),
    ) -> Result<(), Problem> {
        while self.tasks.len() < self.parallel {
            let Some(number) = self.next_lane() else { break };
            let Some(turn) = self.lanes[number].lane.take() else { break };
            let case = self.cases.case(self.chosen.number(turn.case))?;
            started(&self.start(number, turn, case));
        }
        Ok(())
    }

    /// The lane whose next trial comes first, of those with room.
    fn next_lane(&mut self) -> Option<usize> {
        let programs: usize =
            self.lanes.iter().filter(|lane| lane.is_program).map(|lane| lane.running).sum();
        let has_room = |lane: &TargetLane| {
            // A trial that waits for its second step keeps nobody from the pool of its first, but
            // more and more of them would pile up there.
            lane.pools.iter().all(|pool| self.pools[*pool].has_room())
                && (!lane.is_program || programs < self.programs)
                && lane.running < lane.most
        };
        let free = self.lanes.iter_mut().enumerate().filter(|(_, lane)| has_room(lane));
        let next = free.filter_map(|(number, lane)| Some((lane.lane.position()?, number))).min();
        next.map(|(_, number)| number)
    }

    fn start(&mut self, number: usize, turn: Turn, case: Case) -> TrialKey {
        let trial = turn.trial + 1;
        let target = self.trials.suite.targets[number].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial };
        let task = self.tasks.spawn(Arc::clone(&self.trials).make(number, case, trial));
        self.running.insert(task.id(), Running { lane: number, turn, key: key.clone() });
        let lane = &mut self.lanes[number];
        lane.running += 1;
        for pool in &lane.pools {
            self.pools[*pool].running += lane.share();
        }
        key
    }

    /// Waits for trials to end; all that have ended by then come together. None when none is under
    /// way.
    pub(crate) async fn ended(&mut self) -> Vec<Made> {
        let mut ended = Vec::new();
        if let Some(first) = self.tasks.join_next_with_id().await {
            ended.extend(self.settle(first));
        }
        while let Some(next) = self.tasks.try_join_next_with_id() {
            ended.extend(self.settle(next));
        }
        ended
    }

    /// Frees the place of a trial.
    fn settle(&mut self, ended: Result<(Id, Made), JoinError>) -> Option<Made> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Running { lane, turn, key } = self.running.remove(&id)?;
        let freed = &mut self.lanes[lane];
        freed.running -= 1;
        for pool in &freed.pools {
            self.pools[*pool].running -= freed.share();
        }
        let made = match ended {
            Ok((_, made)) => made,
            Err(broken) => broke(key, &broken),
        };
        let result = &made.result;
        // A used-up account and an interrupt say nothing about the target.
        let kind = result.attempt.error.as_ref().map(|error| error.kind);
        if matches!(kind, Some(ErrorKind::Quota | ErrorKind::Cancelled)) {
            self.lanes[lane].lane.recall(turn, result.status);
        } else {
            self.lanes[lane].lane.ended(turn, result.status);
        }
        Some(made)
    }
}

/// A trial whose task broke is an error like any other.
pub(crate) fn broke(key: TrialKey, broken: &JoinError) -> Made {
    let message = format!("the trial's task broke: {broken} [EVAL_PARALLEL_EXHAUSTION]");
    let result = TrialResult {
        key,
        status: Status::Error,
        score: None,
        checks: Vec::new(),
        attempt: failed(ErrorKind::Internal, message),
    };
    Made { result, written: Ok(()) }
}
