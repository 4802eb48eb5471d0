//! The loop of a running job.
//!
//! One task owns all state: it reads packs, starts requests while the pools have capacity, and
//! processes outcomes. Each request is a task of its own, independent of the others. Packs are not
//! processed in waves: whenever a request ends, another may start.

use super::batch::BatchValues;
use super::budget::CostBudget;
use super::config::HeldRows;
use super::escalation::{Escalation, FIRST_PATH, PackRequest, RowAnswer, RowResults};
use super::failures::{DeferredFailures, FailureCause, FailureDecision};
use super::output_buffer::{FinishedPack, OutputBuffer};
use super::pack_feeder::{POLL_INTERVAL, PackFeeder};
use super::pack_reader::PackReader;
use super::progress::{JobOutcome, JobProgress, StopReason};
use super::record::{RequestKey, RequestRecord};
use super::request::{RequestContext, RequestOutcome};
use super::resume::JournalReplay;
use super::scan::RowDigest;
use super::usage::RequestUsage;
use crate::error::Error;
use crate::pack::Pack;
use crate::row::Row;
use bakeoff_core::NanoDollars;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// A pack with unfinished rows.
struct ActivePack {
    pack: Arc<Pack>,
    rows_digest: String,
    escalation: Escalation,
    batches: Vec<BatchValues>,
}

/// Return value of a request task.
struct RequestReport {
    pack: u64,
    request: PackRequest,
    estimated_cost: NanoDollars,
    outcome: RequestOutcome,
    usage: RequestUsage,
}

/// A request with its results.
#[derive(Debug)]
struct CompletedRequest {
    pack: u64,
    request: PackRequest,
    results: RowResults,
    batch: Option<RowAnswer>,
    usage: RequestUsage,
}

/// Limits of a job.
pub(super) struct JobLimits {
    pub(super) budget: CostBudget,
    pub(super) max_held: HeldRows,
}

/// A running job.
pub(super) struct JobRunner<'l> {
    context: Arc<RequestContext>,
    buffer: OutputBuffer,
    replay: JournalReplay,
    limits: JobLimits,
    active: HashMap<u64, ActivePack>,
    requests: JoinSet<RequestReport>,
    feeder: PackFeeder,
    /// Requests not started yet. With a cost limit they wait until the requests in flight have a known cost.
    queue: VecDeque<(u64, PackRequest)>,
    /// Failures in the last model round.
    failures: DeferredFailures<CompletedRequest>,
    progress: JobProgress,
    stop: Option<StopReason>,
    on_progress: &'l mut (dyn FnMut(&JobProgress) + Send),
}

impl<'l> JobRunner<'l> {
    /// Creates a runner without starting anything.
    pub(super) fn new(
        context: RequestContext,
        buffer: OutputBuffer,
        replay: JournalReplay,
        limits: JobLimits,
        progress: JobProgress,
        on_progress: &'l mut (dyn FnMut(&JobProgress) + Send),
    ) -> JobRunner<'l> {
        JobRunner {
            context: Arc::new(context),
            buffer,
            replay,
            limits,
            active: HashMap::new(),
            requests: JoinSet::new(),
            feeder: PackFeeder::new(),
            queue: VecDeque::new(),
            failures: DeferredFailures::default(),
            progress,
            stop: None,
            on_progress,
        }
    }

    /// Runs until all rows are written or the job stops.
    pub(super) async fn run(
        mut self,
        mut packs: PackReader,
        stop: &CancellationToken,
    ) -> Result<JobOutcome, Error> {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_input_read = false;
        loop {
            // Also checked here, because outcomes may arrive without a pause.
            if stop.is_cancelled() {
                self.stop(StopReason::Interrupted);
            }
            // Journal all outcomes before anything else can fail.
            self.write()?;
            self.start_queued();
            while self.stop.is_none() && !is_input_read && self.can_start_pack() {
                match packs.next(&self.context.task)? {
                    Some(pack) => self.start_pack(pack)?,
                    None => is_input_read = true,
                }
            }
            if self.requests.is_empty() {
                let decision = self.failures.decide_idle();
                if self.stop.is_none() {
                    self.apply(decision)?;
                }
                // Nothing is in flight, and nothing can be written or started any more.
                let is_stuck =
                    is_input_read || (!self.can_start_pack() && !self.buffer.can_write());
                if self.stop.is_some() || (is_stuck && self.requests.is_empty()) {
                    break;
                }
                // All requests so far were journaled, and more packs follow.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(report) = self.requests.join_next() => {
                    self.process(report)?;
                    while let Some(report) = self.requests.try_join_next() {
                        self.process(report)?;
                    }
                }
                () = stop.cancelled(), if self.stop.is_none() => self.stop(StopReason::Interrupted),
                _ = poll.tick() => {}
            }
        }
        self.finish()
    }

    /// Returns whether another pack may start: the buffer holds few enough rows, no request is queued,
    /// and the pools have capacity.
    fn can_start_pack(&mut self) -> bool {
        self.buffer.has_capacity(self.limits.max_held)
            && self.queue.is_empty()
            && self.feeder.can_start(&self.context.client, &self.context.models)
    }

    fn start_pack(&mut self, pack: Pack) -> Result<(), Error> {
        self.buffer.reserve(&pack);
        let (number, pack) = (pack.number, Arc::new(pack));
        if let Some(reason) = &pack.rejection {
            let answers = vec![Err(reason.clone()); pack.rows.len()];
            let finished = FinishedPack { pack, answers, batches: Vec::new() };
            self.buffer.insert(finished, &mut self.progress);
            return Ok(());
        }
        let (escalation, first) = Escalation::new(pack.rows.len(), self.context.round_plan());
        let mut digest = RowDigest::default();
        pack.rows.iter().for_each(|row| digest.add(row));
        let rows_digest = digest.finish();
        self.active
            .insert(number, ActivePack { pack, rows_digest, escalation, batches: Vec::new() });
        self.replay_or_queue(number, vec![first])
    }

    /// Takes the results of requests from the journal, and queues requests that are not journaled.
    fn replay_or_queue(&mut self, number: u64, requests: Vec<PackRequest>) -> Result<(), Error> {
        let mut requests = VecDeque::from(requests);
        while let Some(request) = requests.pop_front() {
            let Some(key) = self.key(number, &request) else { continue };
            let was_finished = self.replay.is_finished();
            let recorded = self.replay.take(&key)?;
            match recorded.and_then(|record| record.results_for(&request)) {
                Some((results, batch)) => {
                    let has_answer = results.answers.iter().any(Result::is_ok);
                    requests.extend(self.record(number, &request, results, batch));
                    if has_answer && self.context.round_plan().is_last(request.model_round) {
                        let failures = self.failures.record_earlier_answer();
                        self.apply(FailureDecision::Accept(failures))?;
                    }
                }
                None => self.queue.push_back((number, request)),
            }
            if self.replay.is_finished() && !was_finished {
                // The existing files must match the journal before the first new request is paid for.
                self.write()?;
                self.buffer.expect_end()?;
            }
        }
        self.start_queued();
        Ok(())
    }

    /// Returns the journal key of a request.
    fn key(&self, pack: u64, request: &PackRequest) -> Option<RequestKey> {
        let rows_digest = self.active.get(&pack)?.rows_digest.clone();
        Some(RequestKey { pack, rows_digest, path: request.path.clone() })
    }

    /// Starts queued requests as far as the budget allows. Requests not started are left to the next process.
    fn start_queued(&mut self) {
        while self.stop.is_none()
            && let Some((number, request)) = self.queue.pop_front()
        {
            let Some(active) = self.active.get(&number) else { continue };
            let (context, pack) = (Arc::clone(&self.context), Arc::clone(&active.pack));
            let estimated_cost = match self.limits.budget.is_limited() {
                true => context.estimate_cost(&request, &rows_of(&request, &pack)),
                false => NanoDollars(0),
            };
            if !self.limits.budget.allows(estimated_cost) {
                self.queue.push_front((number, request));
                if self.requests.is_empty() {
                    self.stop(StopReason::Budget);
                }
                break;
            }
            self.limits.budget.start(estimated_cost);
            self.feeder.start();
            self.requests.spawn(async move {
                let (outcome, usage) = context.send(&request, &rows_of(&request, &pack)).await;
                RequestReport { pack: number, request, estimated_cost, outcome, usage }
            });
        }
        if self.stop.is_some() {
            self.queue.clear();
        }
    }

    /// Processes the outcome of a request.
    fn process(
        &mut self,
        report: Result<RequestReport, tokio::task::JoinError>,
    ) -> Result<(), Error> {
        self.feeder.finish();
        // A panic is a bug in this program. The next process sends the request again.
        let Ok(RequestReport { pack, request, estimated_cost, outcome, usage }) = report else {
            let reason = "a request task panicked; please report this bug".to_owned();
            self.stop(StopReason::ModelUnavailable(reason));
            return Ok(());
        };
        self.progress.requests += usage.requests;
        self.progress.cached += usage.cached;
        self.progress.reasks += if request.path == FIRST_PATH { 0 } else { usage.requests };
        let costs = self.progress.cost.zip(usage.cost);
        self.progress.cost = costs.map(|(sum, cost)| sum.saturating_add(cost));
        self.progress.usage += usage.tokens;
        self.limits.budget.end(estimated_cost, usage.cost.unwrap_or(NanoDollars(0)));
        let is_last = self.context.round_plan().is_last(request.model_round);
        let rows = request.rows.len();
        let completed = |results, batch| CompletedRequest { pack, request, results, batch, usage };
        match outcome {
            RequestOutcome::Answered { results, batch } => {
                self.complete(completed(results, batch))?;
                if is_last {
                    let failures = match usage.requests {
                        0 => self.failures.record_earlier_answer(),
                        _ => self.failures.record_answer(),
                    };
                    self.apply(FailureDecision::Accept(failures))?;
                }
            }
            RequestOutcome::Unclear(results, cause) if is_last => {
                let decision = self.failures.record_failure(completed(results, None), cause);
                self.apply(decision)?;
            }
            RequestOutcome::Failed(results) | RequestOutcome::Unclear(results, _) => {
                self.complete(completed(results, None))?;
            }
            RequestOutcome::ModelUnavailable(reason) if is_last => {
                self.stop(StopReason::ModelUnavailable(reason));
            }
            RequestOutcome::ModelUnavailable(reason) => {
                self.complete(completed(RowResults::failed(&reason, rows, false), None))?;
            }
            RequestOutcome::Cancelled => {}
        }
        // Also cancels requests that wait for a permit.
        if self.limits.budget.is_exceeded() {
            self.stop(StopReason::Budget);
        }
        Ok(())
    }

    /// Applies a decision about failures.
    fn apply(&mut self, decision: FailureDecision<CompletedRequest>) -> Result<(), Error> {
        match decision {
            FailureDecision::Defer => {}
            FailureDecision::Accept(failures) => {
                for (failure, cause) in failures {
                    match cause == FailureCause::Provider && !failure.request.is_provider_retry {
                        true => {
                            let request =
                                PackRequest { is_provider_retry: true, ..failure.request };
                            self.queue.push_back((failure.pack, request));
                        }
                        false => self.complete(failure)?,
                    }
                }
                self.start_queued();
            }
            FailureDecision::Abort(last) => {
                let reason = last.results.first_reason().unwrap_or_default();
                self.stop(StopReason::ModelUnavailable(format!("all requests fail: {reason}")));
            }
        }
        Ok(())
    }

    /// Journals a request, records its results and continues with the requests that follow.
    fn complete(&mut self, completed: CompletedRequest) -> Result<(), Error> {
        let CompletedRequest { pack, request, results, batch, usage } = completed;
        let Some(key) = self.key(pack, &request) else { return Ok(()) };
        self.buffer.journal(RequestRecord::new(key, &request, &results, batch.as_ref(), usage))?;
        let next = self.record(pack, &request, results, batch);
        self.replay_or_queue(pack, next)
    }

    /// Records the results of a request, moves a finished pack to the output buffer, and returns the
    /// next requests.
    fn record(
        &mut self,
        number: u64,
        request: &PackRequest,
        results: RowResults,
        batch: Option<RowAnswer>,
    ) -> Vec<PackRequest> {
        let Some(active) = self.active.get_mut(&number) else { return Vec::new() };
        if let (Some(values), Some(target)) = (batch, self.context.model_round(request.model_round))
        {
            let rows = request.rows.iter().filter_map(|row| active.pack.rows.get(*row));
            active.batches.push(BatchValues {
                path: request.path.clone(),
                model: target.name.to_owned(),
                rows: rows.map(|row| row.index).collect(),
                values,
            });
        }
        let next = active.escalation.record(request, results);
        if active.escalation.is_finished()
            && let Some(ActivePack { pack, escalation, batches, .. }) = self.active.remove(&number)
        {
            let answers = escalation.into_answers();
            self.buffer.insert(FinishedPack { pack, answers, batches }, &mut self.progress);
        }
        next
    }

    fn write(&mut self) -> Result<(), Error> {
        self.progress.in_flight = self.requests.len() as u64;
        self.buffer.write(&mut self.progress)?;
        (self.on_progress)(&self.progress);
        Ok(())
    }

    /// Starts no more requests. The first reason is kept.
    fn stop(&mut self, reason: StopReason) {
        self.stop.get_or_insert(reason);
        self.context.stop.cancel();
    }

    fn finish(mut self) -> Result<JobOutcome, Error> {
        self.write()?;
        if self.progress.done == self.progress.rows {
            self.stop = None;
        } else if self.stop.is_none() {
            return Err(Error::Unfinished(self.progress.rows - self.progress.done));
        }
        self.buffer.finish(&self.progress)?;
        let unavailable_models = match self.stop {
            // The stop reason already reports the model.
            Some(StopReason::ModelUnavailable(_)) => Vec::new(),
            _ => self.context.unavailable_models(),
        };
        Ok(JobOutcome { progress: self.progress, stop: self.stop, unavailable_models })
    }
}

/// Returns the rows of a request.
pub(super) fn rows_of<'p>(request: &PackRequest, pack: &'p Pack) -> Vec<&'p Row> {
    request.rows.iter().filter_map(|row| pack.rows.get(*row)).collect()
}
