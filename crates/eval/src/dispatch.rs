//! Starting trials.
//!
//! The dispatcher is the sole owner of the scheduling state of a run. Trials are independent tasks that
//! return their outcome.

use crate::aggregate::FinishedTrial;
use crate::case_selection::CaseSelection;
use crate::context::TrialContext;
use crate::lane::{Lane, LaneEnd, LaneRules, TrialIndex};
use crate::target_feeder::TargetFeeder;
use crate::trial::{TrialOutcome, execute_trial, failed};
use bakeoff_core::{ErrorKind, Status, TargetName, TrialKey, TrialResult};
use bakeoff_pace::{Feeder, FillRule, LaneIndex, Pool, PoolIndex};
use bakeoff_suite::{Case, CaseReader, Problem, Suite};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};

/// Starts the trials of a run.
pub(crate) struct Dispatcher {
    /// One per target.
    lanes: Vec<Lane>,
    /// Bounds the started trials; its lanes and pools have the indices of those here.
    feeder: Feeder,
    pools: Vec<Pool>,
    /// Notified when a pool could serve more requests.
    hungry_pool: Arc<Notify>,
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

impl Dispatcher {
    pub(crate) fn new(
        suite: &Suite,
        cases: Arc<CaseSelection>,
        rules: &LaneRules,
        context: Arc<TrialContext>,
    ) -> Result<Dispatcher, Problem> {
        let TargetFeeder { feeder, pools } =
            TargetFeeder::new(suite, &context.client, FillRule::FOLLOW);
        let hungry_pool = Arc::new(Notify::new());
        pools.iter().for_each(|pool| pool.notify_when_hungry(&hungry_pool));
        let lanes = suite.targets.iter().map(|_| Lane::new(rules.clone()));
        Ok(Dispatcher {
            lanes: lanes.collect(),
            feeder,
            pools,
            hungry_pool,
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
            self.lanes[target].restore(index, status);
        }
    }

    /// Returns the targets that ended before all their trials were started, and why.
    pub(crate) fn ended_lanes(&self) -> impl Iterator<Item = (&TargetName, LaneEnd)> {
        let names = self.context.suite.targets.iter().map(|target| &target.name);
        let ends = self.lanes.iter().map(Lane::end);
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
        for (pool, index) in self.pools.iter().zip(0..) {
            self.feeder.update(PoolIndex(index), pool.load());
        }
        while let Some(LaneIndex(lane)) = self.feeder.next(|lane| self.lanes[lane.0].position()) {
            let Some(index) = self.lanes[lane].take() else { break };
            let case = self.reader.case(self.cases.suite_index(index.case))?;
            on_start(&self.start(lane, index, case));
        }
        Ok(())
    }

    fn start(&mut self, lane: usize, index: TrialIndex, case: Case) -> TrialKey {
        let trial = index.trial + 1;
        let target = self.context.suite.targets[lane].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial };
        let task = self.tasks.spawn(execute_trial(Arc::clone(&self.context), lane, case, trial));
        self.running.insert(task.id(), RunningTrial { lane, index, key: key.clone() });
        self.feeder.start(LaneIndex(lane));
        key
    }

    /// Waits until a trial has finished or a pool could serve more requests. Returns all outcomes that are
    /// ready by then.
    pub(crate) async fn next_outcomes(&mut self) -> Vec<TrialOutcome> {
        let mut outcomes = Vec::new();
        let first = tokio::select! {
            first = self.tasks.join_next_with_id() => first,
            () = self.hungry_pool.notified() => None,
        };
        outcomes.extend(first.and_then(|first| self.complete(first)));
        while let Some(next) = self.tasks.try_join_next_with_id() {
            outcomes.extend(self.complete(next));
        }
        outcomes
    }

    /// Frees the capacity of a finished trial.
    fn complete(&mut self, joined: Result<(Id, TrialOutcome), JoinError>) -> Option<TrialOutcome> {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let RunningTrial { lane, index, key } = self.running.remove(&id)?;
        self.feeder.finish(LaneIndex(lane));
        let outcome = match joined {
            Ok((_, outcome)) => outcome,
            Err(error) => panic_outcome(key, &error),
        };
        let result = &outcome.result;
        if is_denied_before_its_first_call(result) {
            // The trial counts as not started, like those after it.
            return None;
        }
        // An exhausted quota or budget and an interrupt are no errors of the target.
        let kind = result.attempt.error.as_ref().map(|error| error.kind);
        if matches!(kind, Some(ErrorKind::Quota | ErrorKind::Budget | ErrorKind::Cancelled)) {
            self.lanes[lane].restore(index, result.status);
        } else {
            self.lanes[lane].complete(index, result.status);
        }
        Some(outcome)
    }
}

/// Whether the budget did not even cover the first call of a trial.
pub(crate) fn is_denied_before_its_first_call(result: &TrialResult) -> bool {
    let attempt = &result.attempt;
    let is_denied = attempt.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Budget);
    is_denied && attempt.usage.is_none() && attempt.judge_usage.is_none()
}

/// Returns the outcome of a trial whose task panicked: an error like any other.
pub(crate) fn panic_outcome(key: TrialKey, error: &JoinError) -> TrialOutcome {
    let message = format!("the trial's task failed: {error} [EVAL_PARALLEL_EXHAUSTION]");
    let result = TrialResult {
        key,
        tags: Vec::new(),
        status: Status::Error,
        score: None,
        checks: Vec::new(),
        attempt: failed(ErrorKind::Internal, message),
    };
    TrialOutcome { result, written: Ok(()) }
}
