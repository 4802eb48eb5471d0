//! The retry loop of a call: permits, requests, backoff, and what the pool learns from each outcome.

use crate::budget::CallReservation;
use crate::call::{Call, CallContext, CallError, Retry};
use crate::model::Model;
use crate::pool_stop::stop_reason;
use crate::record::{RequestGuard, RequestInfo, RequestTraffic, RetryInfo};
use crate::request::{self, PreparedRequest, ProviderResponse};
use crate::{Client, Failure, quota};
use bakeoff_core::{ErrorKind, NanoDollars};
use bakeoff_pace::{
    FailedAttempt, Permit, PermitRequest, Pool, PoolStopped, RetryDelay, RetryPolicy,
    RetryProgress, SendOutcome,
};
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// One model call: its request, the model and the context.
#[derive(Clone, Copy)]
pub(crate) struct ModelCall<'a> {
    pub(crate) client: &'a Client,
    pub(crate) model: &'a Model,
    pub(crate) request: &'a PreparedRequest,
    pub(crate) ordinal: u32,
    pub(crate) context: &'a CallContext<'a>,
}

impl ModelCall<'_> {
    /// Sends requests until one succeeds, no retry is allowed, or the call is cancelled.
    pub(crate) async fn run(self) -> Result<Call, CallError> {
        let (mut waited, mut lost) = (RetryProgress::default(), NanoDollars(0));
        let work = self.run_with_retries(&mut waited, &mut lost);
        let result = tokio::select! {
            // Cancellation is checked first: a cancelled call must not take a permit that was just released.
            biased;
            () = self.context.cancel.cancelled() => Err(CallError::cancelled(waited.retries)),
            result = work => result,
        };
        match result {
            Ok(call) => Ok(Call { lost, ..call }),
            Err(error) => Err(CallError { lost, ..error }),
        }
    }

    async fn run_with_retries(
        self,
        waited: &mut RetryProgress,
        lost: &mut NanoDollars,
    ) -> Result<Call, CallError> {
        let ModelCall { client, model, request, context, .. } = self;
        let pool = client.pools.get(&model.pool, model.limits).map_err(|error| {
            let failure = Failure::local(ErrorKind::InvalidRequest, format!("limits: {error}"));
            CallError::new(failure, 0)
        })?;
        let retry = model.limits.retry_policy(client.retry);
        let method = if model.is_in_process() { "SIM" } else { "POST" };
        let info = RequestInfo { name: &model.name, method };
        let cost = pool.estimate(request.input_tokens(), request.max_tokens());
        let mut ask = PermitRequest::default().run(context.run).cost(cost);
        let mut reservation = CallReservation::new(self, waited.retries).await?;
        loop {
            let permit = tokio::select! {
                biased;
                // A stopped call counts as cancelled and not as failed: the retry might have succeeded.
                () = context.stop.cancelled() => return Err(CallError::cancelled(waited.retries)),
                permit = pool.acquire(ask) => permit.map_err(|stopped| pool_stopped(stopped, *waited))?,
            };
            let mut guard = RequestGuard::new(
                client.on_http.as_ref(),
                info,
                request.body_bytes(),
                permit.in_flight(),
                waited.retries + 1,
            );
            let deadline = client.deadline;
            let time_limit = TimeLimit { pool: &pool, retry: &retry, deadline, progress: *waited };
            let result = self.send(time_limit, &mut guard.traffic).await;
            let latency = guard.latency();
            let failure = match result {
                Ok(response) => {
                    pool.record_latency(latency, waited.timeouts);
                    permit.end(success(&response, waited.retries == 0));
                    guard.finish(latency, None, None);
                    reservation.finish(self, &response.response.usage);
                    return Ok(self.finish(response, latency, waited.retries));
                }
                Err(failure) => client.redact_failure(failure),
            };
            let retries = waited.retries;
            waited.spent += latency;
            let failed = FailedRequest { failure, latency, permit };
            let (failure, delay) = failed.end(self, &pool, &retry, waited);
            let info =
                delay.map(|delay| RetryInfo { code: failure.code.as_deref(), pause: delay.pause });
            guard.finish(latency, Some(failure.kind), info);
            let Some(delay) = delay else {
                reservation.end_with_failure(self, failure.kind, lost);
                return Err(CallError::new(failure, retries));
            };
            let next = reservation.after_failure(self, failure.kind, retries, lost).await;
            reservation = match next {
                // The request that was made failed for its own reason, and its cost counts.
                Err(denied) if denied.failure.kind == ErrorKind::Budget => {
                    return Err(CallError::new(failure, retries));
                }
                next => next?,
            };
            if let Some(on_retry) = context.on_retry {
                on_retry(&Retry { model: &model.name, pause: delay.pause, failure: &failure });
            }
            ask = delay.apply(ask);
        }
    }

    /// Sends one request with a time limit. The limit may shrink while the request is in flight, because it
    /// depends on the latency of other requests.
    async fn send(
        self,
        time_limit: TimeLimit<'_>,
        traffic: &mut RequestTraffic,
    ) -> Result<ProviderResponse, Failure> {
        let started = Instant::now();
        let sent = traffic.sent.clone();
        let mut response = pin!(request::send(self, traffic));
        loop {
            let limit = time_limit.current();
            let left = limit.saturating_sub(sent.get().unwrap_or(started).elapsed());
            let left = left.min(time_limit.until_end());
            if left.is_zero() {
                let message = match time_limit.until_end() {
                    Duration::ZERO => format!(
                        "no complete response within {} s after the deadline",
                        DEADLINE_GRACE.as_secs()
                    ),
                    _ => format!("no complete response within {} s", limit.as_secs_f64()),
                };
                return Err(Failure::local(ErrorKind::Timeout, message));
            }
            let step = left.min(LIMIT_CHECK_INTERVAL);
            if let Ok(result) = tokio::time::timeout(step, &mut response).await {
                return result;
            }
        }
    }

    fn finish(self, response: ProviderResponse, latency: Duration, retries: u32) -> Call {
        let ProviderResponse { response, headers } = response;
        let cost = self.model.cost(&response.usage);
        let response = self.client.redact_response(response);
        let lost = NanoDollars(0);
        Call { response, cost, latency, cached: false, retries, lost, headers }
    }
}

/// How often the time limit of a request in flight is computed again.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Minimum time for the first request of a call that leaves time for a second one, as long as no latency is
/// known. Answers that take longer are rare.
const MIN_FIRST_LIMIT: Duration = Duration::from_secs(240);

/// Time that a request in flight has after the deadline of the run.
const DEADLINE_GRACE: Duration = Duration::from_secs(15);

/// The time limit of one request.
#[derive(Clone, Copy)]
struct TimeLimit<'a> {
    pool: &'a Pool,
    retry: &'a RetryPolicy,
    /// End of the run.
    deadline: Option<Instant>,
    progress: RetryProgress,
}

impl TimeLimit<'_> {
    /// Returns the time until requests in flight are cancelled because of the deadline.
    fn until_end(self) -> Duration {
        let end = self.deadline.and_then(|deadline| deadline.checked_add(DEADLINE_GRACE));
        end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }

    /// Returns the limit, as far as it is known now.
    ///
    /// By default it follows from the latency of earlier answers, so that a stalled connection does not use
    /// up the call's timeout.
    fn current(self) -> Duration {
        let TimeLimit { pool, retry, progress, .. } = self;
        let left = retry.timeout.saturating_sub(progress.spent);
        let is_last = retry.max_retries.is_some_and(|max| progress.retries >= max);
        let half = || Some(left / 2).filter(|half| *half >= MIN_FIRST_LIMIT);
        let limit = match retry.attempt_timeout {
            Some(limit) => Some(limit),
            None if is_last => None,
            None => pool.stall_timeout(left, progress.timeouts).or_else(half),
        };
        limit.unwrap_or(left).min(left)
    }
}

/// Describes a successful request to its pool.
fn success(response: &ProviderResponse, clean: bool) -> SendOutcome {
    let quota = quota::parse(&response.headers, None);
    SendOutcome::Answered { quota, usage: quota::cost(&response.response.usage), clean }
}

/// A failed request.
struct FailedRequest {
    failure: Failure,
    latency: Duration,
    permit: Permit,
}

impl FailedRequest {
    /// Returns the permit and counts the failure. Also returns the delay of the retry, if one is allowed. If no
    /// further call can succeed, the pool is stopped, and its reason replaces the message.
    fn end(
        self,
        call: ModelCall<'_>,
        pool: &Pool,
        retry: &RetryPolicy,
        waited: &mut RetryProgress,
    ) -> (Failure, Option<RetryDelay>) {
        let FailedRequest { failure, latency, permit } = self;
        let kind = failure.kind;
        let outcome = match kind {
            ErrorKind::RateLimit => {
                SendOutcome::Rejected { quota: quota::parse(&failure.headers, failure.retry_after) }
            }
            ErrorKind::Transient if matches!(failure.status, Some(503 | 529)) => {
                SendOutcome::Overloaded { retry_after: failure.retry_after }
            }
            ErrorKind::Transient | ErrorKind::Timeout => {
                SendOutcome::Failed { retry_after: failure.retry_after }
            }
            _ => SendOutcome::Refused,
        };
        // The pool is stopped before the permit is returned, or it would admit another request.
        if let Some(stopped) = stop_reason(call, pool, &failure, latency, retry) {
            pool.stop(stopped.clone());
            permit.end(outcome);
            // The same as for the calls that the stop ends.
            return (Failure { code: failure.code, ..stopped_failure(&stopped) }, None);
        }
        let is_rejected = permit.end(outcome);
        if kind == ErrorKind::Timeout {
            pool.record_timeout(waited.timeouts);
        }
        let attempt = FailedAttempt {
            // A provider that sheds load is not down: its overload responses are rejections.
            kind: if is_rejected { ErrorKind::RateLimit } else { kind },
            hint: failure.retry_after,
            mode: pool.retry_mode(),
            outage: pool.outage(),
        };
        // A server that has never responded is tested often, so that a wrong address is reported soon.
        let retry = match pool.has_responded() {
            true => *retry,
            false => retry.cap(MAX_PAUSE_UNREACHED.min(retry.cap)),
        };
        (failure, retry.retry(attempt, waited, rand::random()))
    }
}

/// Maximum backoff while the server has never responded.
const MAX_PAUSE_UNREACHED: Duration = Duration::from_secs(3);

/// Returns the error of a call whose pool was stopped.
fn pool_stopped(stopped: PoolStopped, waited: RetryProgress) -> CallError {
    CallError::new(stopped_failure(&stopped), waited.retries)
}

fn stopped_failure(stopped: &PoolStopped) -> Failure {
    Failure::local(stopped.kind, &*stopped.reason)
}
