//! The loop of a running job.
//!
//! One task owns all state: it reads packs, starts requests while the pools have capacity, and
//! processes outcomes. Each request is a task of its own, independent of the others. Packs are not
//! processed in waves: whenever a request ends, another may start.

use super::batch::BatchValues;
use super::config::HeldRows;
use super::escalation::{Escalation, FIRST_PATH, PackRequest, RowAnswer, RowResults};
use super::output_buffer::{FinishedPack, OutputBuffer};
use super::pack_feeder::POLL_INTERVAL;
use super::pack_reader::PackReader;
use super::progress::{JobOutcome, JobProgress, StopReason};
use super::record::{RequestKey, RequestRecord};
use super::request::RequestContext;
use super::request_set::{CompletedRequest, EndedRequest, RequestResults, RequestSet, rows_of};
use super::resume::JournalReplay;
use super::scan::RowDigest;
use super::usage::RequestUsage;
use crate::error::Error;
use crate::pack::Pack;
use bakeoff_pace::{BudgetLedger, Denial, Expense, LedgerEntry};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// A pack with unfinished rows.
struct ActivePack {
    pack: Arc<Pack>,
    rows_digest: String,
    escalation: Escalation,
    batches: Vec<BatchValues>,
}

/// Limits of a job.
pub(super) struct JobLimits {
    pub(super) budget: BudgetLedger,
    pub(super) max_held: HeldRows,
}

/// A running job.
pub(super) struct JobRunner<'l> {
    context: Arc<RequestContext>,
    buffer: OutputBuffer,
    replay: JournalReplay,
    limits: JobLimits,
    active: HashMap<u64, ActivePack>,
    /// With a cost limit, queued requests wait until the requests in flight have a known cost.
    requests: RequestSet,
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
        let context = Arc::new(context);
        JobRunner {
            requests: RequestSet::new(Arc::clone(&context)),
            context,
            buffer,
            replay,
            limits,
            active: HashMap::new(),
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
            if self.requests.in_flight() == 0 {
                if self.stop.is_none() {
                    let settled = self.requests.settle_idle();
                    self.apply(settled)?;
                }
                // Nothing is in flight, and nothing can be written or started any more.
                let is_stuck =
                    is_input_read || (!self.can_start_pack() && !self.buffer.can_write());
                if self.stop.is_some() || (is_stuck && self.requests.in_flight() == 0) {
                    break;
                }
                // All requests so far were journaled, and more packs follow.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(report) = self.requests.next_report() => {
                    self.process(report)?;
                    while let Some(report) = self.requests.try_next_report() {
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
        self.buffer.has_capacity(self.limits.max_held) && self.requests.can_start_pack()
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
                        let settled = self.requests.settle_earlier_answer();
                        self.apply(settled)?;
                    }
                }
                None => self.requests.queue(number, request),
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
            && let Some((number, request)) = self.requests.next_queued()
        {
            let Some(active) = self.active.get(&number) else { continue };
            let pack = Arc::clone(&active.pack);
            let rows = rows_of(&request, &pack);
            let estimate = self.context.estimate_cost(&request, &rows);
            let expense = Expense { cost: estimate.cost, tokens: 0 };
            let entry = match self.limits.budget.start(estimate.model, expense) {
                Ok(entry) => entry,
                Err(denial) => {
                    self.requests.requeue(number, request);
                    if denial == Denial::Exhausted && self.requests.in_flight() == 0 {
                        self.stop(StopReason::Budget);
                    }
                    break;
                }
            };
            self.requests.start(request, pack, Some(entry));
        }
        if self.stop.is_some() {
            self.requests.clear_queue();
        }
    }

    /// Processes the outcome of a request. If its task panicked, the next process sends it again.
    fn process(&mut self, ended: EndedRequest) -> Result<(), Error> {
        let (mut report, entry) = match ended {
            Ok(ended) => ended,
            Err(reason) => return self.apply(Err(reason)),
        };
        self.settle_expense(&mut report.usage, entry);
        let usage = report.usage;
        self.progress.requests += usage.requests;
        self.progress.cached += usage.cached;
        self.progress.reasks += if report.request.path == FIRST_PATH { 0 } else { usage.requests };
        let costs = self.progress.cost.zip(usage.cost);
        self.progress.cost = costs.map(|(sum, cost)| sum.saturating_add(cost));
        self.progress.usage += usage.tokens;
        let settled = self.requests.settle(report);
        self.apply(settled)?;
        // Also cancels requests that wait for a permit.
        if self.limits.budget.is_exceeded() {
            self.stop(StopReason::Budget);
        }
        Ok(())
    }

    /// Records the expense of a request in the budget, and adds what failed requests probably cost to its usage.
    fn settle_expense(&mut self, usage: &mut RequestUsage, entry: Option<LedgerEntry>) {
        let budget = &mut self.limits.budget;
        // Cached responses and most failures cost nothing and say nothing about other requests.
        let cost = usage.cost.filter(|cost| !cost.is_zero());
        let is_unknown = usage.cost.is_none() && usage.requests > 0;
        let lost = usage.lost;
        match entry {
            Some(entry) if is_unknown => {
                budget.forfeit(entry);
            }
            // The estimate of the job is more accurate than that of the client.
            Some(entry) if cost.is_none() && !lost.is_zero() => {
                let likely = budget.forfeit(entry).cost;
                usage.add_cost(Some(likely));
            }
            Some(entry) => {
                budget.finish(entry, cost.map(|cost| Expense { cost, tokens: 0 }));
                budget.spend(Expense { cost: lost, tokens: 0 });
                usage.add_cost(Some(lost));
            }
            None => usage.add_cost(Some(lost)),
        }
    }

    /// Completes requests, or stops.
    fn apply(&mut self, settled: RequestResults) -> Result<(), Error> {
        match settled {
            Ok(completed) => {
                for request in completed {
                    self.complete(request)?;
                }
                self.start_queued();
            }
            Err(reason) => self.stop(StopReason::ModelUnavailable(reason)),
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
        self.progress.in_flight = self.requests.in_flight() as u64;
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
