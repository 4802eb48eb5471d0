//! Who starts when.
//!
//! The dispatcher alone owns the state of a run. Trials are tasks that own nothing but themselves
//! and hand their result back.

use crate::Problem;
use crate::case::{Case, CaseReader};
use crate::choice::Chosen;
use crate::lane::{Ended, Lane, LaneRules, Turn};
use crate::suite::{AgentSettings, Suite, TargetKind};
use crate::trial::{Made, Trials, failed};
use bakeoff_core::{ErrorKind, Status, TargetName, TrialKey, TrialResult};
use bakeoff_pace::{Feeder, FillRule, LaneConfig, LaneIndex, Pool, PoolIndex};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};

/// Trials at once, for each core, of a model whose tools start programs.
const AGENTS_PER_CORE: usize = 4;

pub(crate) struct Dispatcher {
    /// One for each target.
    lanes: Vec<Lane>,
    /// Bounds the trials that are started; its lanes and pools are numbered like those here.
    feeder: Feeder,
    pools: Vec<Pool>,
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

impl Dispatcher {
    pub(crate) fn new(
        suite: &Suite,
        chosen: Arc<Chosen>,
        rules: &LaneRules,
        trials: Arc<Trials>,
    ) -> Result<Dispatcher, Problem> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let parallel = suite.settings.parallel.map(|most| most as usize);
        let mut feeder = Feeder::new(parallel.unwrap_or(usize::MAX));
        let programs = feeder.add_group(parallel.unwrap_or(cores));
        let mut pools: Vec<Pool> = Vec::new();
        for target in &suite.targets {
            let mut bounds = LaneConfig::default();
            // A call fails at once if its limits are invalid, so it needs no pool.
            let used = target.models();
            for pool in used.iter().filter_map(|one| trials.client.pool(&one.model).ok()) {
                let known = pools.iter().position(|known| known.ptr_eq(&pool)).map(PoolIndex);
                let index = known.unwrap_or_else(|| {
                    pools.push(pool);
                    feeder.add_pool(FillRule::RESERVE)
                });
                bounds.pools.push(index);
            }
            bounds.max_started = match &target.kind {
                TargetKind::Service(service) => service.connections,
                // Most of the time they wait for their model, and take memory all the same.
                _ if target.agent().is_some_and(AgentSettings::starts_programs) => {
                    parallel.unwrap_or(cores.saturating_mul(AGENTS_PER_CORE))
                }
                _ => usize::MAX,
            };
            bounds.groups.extend(target.is_program().then_some(programs));
            feeder.add_lane(bounds);
        }
        let lanes = suite.targets.iter().map(|_| Lane::new(rules.clone(), chosen.ids.len()));
        Ok(Dispatcher {
            lanes: lanes.collect(),
            feeder,
            pools,
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
            self.lanes[target].recall(turn, status);
        }
    }

    /// Targets of which nothing more is started although trials are left, and why.
    pub(crate) fn ended_early(&self) -> impl Iterator<Item = (&TargetName, Ended)> {
        let names = self.trials.suite.targets.iter().map(|target| &target.name);
        let whys = self.lanes.iter().map(Lane::why_ended);
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
        for (pool, number) in self.pools.iter().zip(0..) {
            self.feeder.update(PoolIndex(number), pool.load());
        }
        while let Some(LaneIndex(number)) = self.feeder.next(|lane| self.lanes[lane.0].position()) {
            let Some(turn) = self.lanes[number].take() else { break };
            let case = self.cases.case(self.chosen.number(turn.case))?;
            started(&self.start(number, turn, case));
        }
        Ok(())
    }

    fn start(&mut self, number: usize, turn: Turn, case: Case) -> TrialKey {
        let trial = turn.trial + 1;
        let target = self.trials.suite.targets[number].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial };
        let task = self.tasks.spawn(Arc::clone(&self.trials).make(number, case, trial));
        self.running.insert(task.id(), Running { lane: number, turn, key: key.clone() });
        self.feeder.start(LaneIndex(number));
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
        self.feeder.finish(LaneIndex(lane));
        let made = match ended {
            Ok((_, made)) => made,
            Err(broken) => broke(key, &broken),
        };
        let result = &made.result;
        // A used-up account and an interrupt say nothing about the target.
        let kind = result.attempt.error.as_ref().map(|error| error.kind);
        if matches!(kind, Some(ErrorKind::Quota | ErrorKind::Cancelled)) {
            self.lanes[lane].recall(turn, result.status);
        } else {
            self.lanes[lane].ended(turn, result.status);
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
