//! Who starts when.
//!
//! The dispatcher alone owns the state of a run. Trials are tasks that own nothing but themselves
//! and hand their result back.

use crate::Problem;
use crate::case::Case;
use crate::lane::{Filter, Lane};
use crate::suite::{Suite, TargetKind};
use crate::trial::{Made, Trials, failed};
use bakeoff_core::{ErrorKind, Status, TrialKey, TrialResult};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};

/// Trials that may be in preparation while their model's window is full.
const PREPARED: usize = 4;

pub(crate) struct Dispatcher {
    lanes: Vec<TargetLane>,
    /// Most trials at once.
    parallel: usize,
    /// Most programs at once.
    programs: usize,
    tasks: JoinSet<Made>,
    running: HashMap<Id, (usize, TrialKey)>,
    trials: Arc<Trials>,
}

/// The trials of one target.
struct TargetLane {
    lane: Lane,
    is_program: bool,
    capacity: usize,
    running: usize,
}

impl Dispatcher {
    pub(crate) fn new(
        suite: &Suite,
        filter: &Arc<Filter>,
        trials: Arc<Trials>,
    ) -> Result<Dispatcher, Problem> {
        let source = Arc::new(suite.cases.clone());
        let lane = |target: &crate::Target| {
            let ids = Arc::clone(&suite.survey.ids);
            let lane =
                Lane::new(Arc::clone(&source), ids, Arc::clone(filter), suite.settings.trials)?;
            let capacity = match &target.kind {
                TargetKind::Model(model) => model.model.limits().connections as usize + PREPARED,
                TargetKind::Program(_) => usize::MAX,
            };
            Ok(TargetLane { lane, is_program: target.is_program(), capacity, running: 0 })
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let parallel = suite.settings.parallel.map(|most| most as usize);
        Ok(Dispatcher {
            lanes: suite.targets.iter().map(lane).collect::<Result<_, Problem>>()?,
            parallel: parallel.unwrap_or(usize::MAX),
            programs: parallel.unwrap_or(cores),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            trials,
        })
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
            if let Some((case, trial)) = self.lanes[number].lane.take()? {
                started(&self.start(number, case, trial));
            }
        }
        Ok(())
    }

    /// The lane whose next trial comes first, of those with room.
    fn next_lane(&self) -> Option<usize> {
        let programs: usize =
            self.lanes.iter().filter(|lane| lane.is_program).map(|lane| lane.running).sum();
        let has_room = |lane: &TargetLane| {
            lane.running < lane.capacity && (!lane.is_program || programs < self.programs)
        };
        let free = self.lanes.iter().enumerate().filter(|(_, lane)| has_room(lane));
        let next = free.filter_map(|(number, lane)| Some((lane.lane.position()?, number))).min();
        next.map(|(_, number)| number)
    }

    fn start(&mut self, number: usize, case: Case, trial: u32) -> TrialKey {
        let target = self.trials.suite.targets[number].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial };
        let task = self.tasks.spawn(Arc::clone(&self.trials).make(number, case, trial));
        self.running.insert(task.id(), (number, key.clone()));
        self.lanes[number].running += 1;
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

    /// Frees the place of a trial. One whose task broke is an error like any other.
    fn settle(&mut self, ended: Result<(Id, Made), JoinError>) -> Option<Made> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let (number, key) = self.running.remove(&id)?;
        self.lanes[number].running -= 1;
        let broken = match ended {
            Ok((_, made)) => return Some(made),
            Err(broken) => broken,
        };
        let message = format!("the trial's task broke: {broken} [EVAL_PARALLEL_EXHAUSTION]");
        let result = TrialResult {
            key,
            status: Status::Error,
            score: None,
            checks: Vec::new(),
            attempt: failed(ErrorKind::Internal, message),
        };
        Some(Made { result, written: Ok(()) })
    }
}
