//! Requests of packs: queued, in flight, and failed for an unclear cause.
//!
//! The set starts requests and decides what follows from their outcomes. Its owner records the completed
//! requests and queues the requests that follow from them.

use super::escalation::{PackRequest, RowAnswer, RowResults};
use super::failures::{DeferredFailures, FailureCause, FailureDecision};
use super::pack_feeder::PackFeeder;
use super::request::{RequestContext, RequestOutcome};
use super::usage::RequestUsage;
use crate::pack::Pack;
use crate::row::Row;
use bakeoff_pace::LedgerEntry;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};

/// Return value of a request task.
pub(super) struct RequestReport {
    pack: u64,
    pub(super) request: PackRequest,
    outcome: RequestOutcome,
    pub(super) usage: RequestUsage,
}

/// The report of a request and its entry in the budget, if there is one; an error if the task panicked.
pub(super) type EndedRequest = Result<(RequestReport, Option<LedgerEntry>), String>;

/// A request with its results.
#[derive(Debug)]
pub(super) struct CompletedRequest {
    pub(super) pack: u64,
    pub(super) request: PackRequest,
    pub(super) results: RowResults,
    pub(super) batch: Option<RowAnswer>,
    pub(super) usage: RequestUsage,
}

/// Completed requests, or the reason why no more requests can be sent.
pub(super) type RequestResults = Result<Vec<CompletedRequest>, String>;

/// Requests that are not completed yet.
pub(super) struct RequestSet {
    context: Arc<RequestContext>,
    /// Requests not started yet.
    queue: VecDeque<(u64, PackRequest)>,
    in_flight: JoinSet<(RequestReport, Option<LedgerEntry>)>,
    feeder: PackFeeder,
    /// Failures in the last model round.
    failures: DeferredFailures<CompletedRequest>,
}

impl RequestSet {
    /// Creates an empty set.
    pub(super) fn new(context: Arc<RequestContext>) -> RequestSet {
        RequestSet {
            context,
            queue: VecDeque::new(),
            in_flight: JoinSet::new(),
            feeder: PackFeeder::new(),
            failures: DeferredFailures::default(),
        }
    }

    /// Returns the number of requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns whether another pack may start: no request is queued, and the pools have capacity.
    pub(super) fn can_start_pack(&mut self) -> bool {
        self.queue.is_empty() && self.feeder.can_start(&self.context.client, &self.context.models)
    }

    /// Queues a request of a pack.
    pub(super) fn queue(&mut self, pack: u64, request: PackRequest) {
        self.queue.push_back((pack, request));
    }

    /// Puts a request back to the front of the queue.
    pub(super) fn requeue(&mut self, pack: u64, request: PackRequest) {
        self.queue.push_front((pack, request));
    }

    /// Takes the next queued request.
    pub(super) fn next_queued(&mut self) -> Option<(u64, PackRequest)> {
        self.queue.pop_front()
    }

    /// Returns whether a request is queued.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Discards all queued requests.
    pub(super) fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// Sends a request of a pack in a task.
    pub(super) fn start(
        &mut self,
        request: PackRequest,
        pack: Arc<Pack>,
        entry: Option<LedgerEntry>,
    ) {
        let context = Arc::clone(&self.context);
        self.feeder.start();
        self.in_flight.spawn(async move {
            let (outcome, usage) = context.send(&request, &rows_of(&request, &pack)).await;
            (RequestReport { pack: pack.number, request, outcome, usage }, entry)
        });
    }

    /// Waits for a request to end. Returns `None` if none is in flight. Cancelling the future loses no report.
    pub(super) async fn next_report(&mut self) -> Option<EndedRequest> {
        let report = self.in_flight.join_next().await?;
        Some(self.finish(report))
    }

    /// Returns the report of a request that has already ended.
    pub(super) fn try_next_report(&mut self) -> Option<EndedRequest> {
        let report = self.in_flight.try_join_next()?;
        Some(self.finish(report))
    }

    fn finish(
        &mut self,
        report: Result<(RequestReport, Option<LedgerEntry>), JoinError>,
    ) -> EndedRequest {
        self.feeder.finish();
        // A panic is a bug in this program.
        report.map_err(|_| "a request task panicked; please report this bug".to_owned())
    }

    /// Decides what follows from the outcome of a request.
    pub(super) fn settle(&mut self, report: RequestReport) -> RequestResults {
        let RequestReport { pack, request, outcome, usage } = report;
        let is_last = self.context.round_plan().is_last(request.model_round);
        let rows = request.rows.len();
        let completed = |results, batch| CompletedRequest { pack, request, results, batch, usage };
        match outcome {
            RequestOutcome::Answered { results, batch } => {
                let mut all = vec![completed(results, batch)];
                if is_last {
                    let failures = match usage.requests {
                        0 => self.failures.record_earlier_answer(),
                        _ => self.failures.record_answer(),
                    };
                    all.extend(self.accept(failures));
                }
                Ok(all)
            }
            RequestOutcome::Unclear(results, cause) if is_last => {
                let decision = self.failures.record_failure(completed(results, None), cause);
                self.apply(decision)
            }
            RequestOutcome::Failed(results) | RequestOutcome::Unclear(results, _) => {
                Ok(vec![completed(results, None)])
            }
            RequestOutcome::ModelUnavailable(reason) if is_last => Err(reason),
            RequestOutcome::ModelUnavailable(reason) => {
                Ok(vec![completed(RowResults::failed(&reason, rows, false), None)])
            }
            RequestOutcome::Cancelled => Ok(Vec::new()),
        }
    }

    /// Decides about deferred failures after an answer from the journal.
    pub(super) fn settle_earlier_answer(&mut self) -> RequestResults {
        let failures = self.failures.record_earlier_answer();
        Ok(self.accept(failures))
    }

    /// Decides about all deferred failures once no request is in flight.
    pub(super) fn settle_idle(&mut self) -> RequestResults {
        let decision = self.failures.decide_idle();
        self.apply(decision)
    }

    fn apply(&mut self, decision: FailureDecision<CompletedRequest>) -> RequestResults {
        match decision {
            FailureDecision::Defer => Ok(Vec::new()),
            FailureDecision::Accept(failures) => Ok(self.accept(failures)),
            FailureDecision::Abort(last) => {
                let reason = last.results.first_reason().unwrap_or_default();
                Err(format!("all requests fail: {reason}"))
            }
        }
    }

    /// Queues each request that the provider failed once more, and returns the others as completed.
    fn accept(&mut self, failures: Vec<(CompletedRequest, FailureCause)>) -> Vec<CompletedRequest> {
        let mut completed = Vec::new();
        for (failure, cause) in failures {
            match cause == FailureCause::Provider && !failure.request.is_provider_retry {
                true => {
                    let request = PackRequest { is_provider_retry: true, ..failure.request };
                    self.queue(failure.pack, request);
                }
                false => completed.push(failure),
            }
        }
        completed
    }
}

/// Returns the rows of a request.
pub(super) fn rows_of<'p>(request: &PackRequest, pack: &'p Pack) -> Vec<&'p Row> {
    request.rows.iter().filter_map(|row| pack.rows.get(*row)).collect()
}
