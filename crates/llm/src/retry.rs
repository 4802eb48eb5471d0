//! The retry loop of a call: permits, requests, backoff, and what the pool learns from each outcome.

use crate::call::{Call, CallContext, CallError, Retry};
use crate::model::Model;
use crate::record::{RequestGuard, RequestInfo, RequestTraffic, RetryInfo};
use crate::request::{self, PreparedRequest, ProviderResponse};
use crate::{Client, Failure, quota};
use bakeoff_core::ErrorKind;
use bakeoff_pace::{
    Permit, PermitRequest, Pool, PoolStopped, RetryMode, RetryPolicy, RetryProgress, SendOutcome,
};
use std::time::Duration;

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
        let mut waited = RetryProgress::default();
        let work = self.run_with_retries(&mut waited);
        tokio::select! {
            // Cancellation is checked first: a cancelled call must not take a permit that was just released.
            biased;
            () = self.context.cancel.cancelled() => Err(CallError::cancelled(waited.retries)),
            result = work => result,
        }
    }

    async fn run_with_retries(self, waited: &mut RetryProgress) -> Result<Call, CallError> {
        let ModelCall { client, model, request, context, .. } = self;
        let pool = client.pools.get(&model.pool, model.limits).map_err(|error| CallError {
            failure: Failure::local(ErrorKind::InvalidRequest, format!("limits: {error}")),
            retries: 0,
        })?;
        let retry = model.limits.retry_policy(client.retry);
        let method = if model.is_in_process() { "SIM" } else { "POST" };
        let info = RequestInfo { name: &model.name, method };
        let cost = pool.estimate(request.input_tokens(), request.max_tokens());
        loop {
            let ask =
                PermitRequest::default().run(context.run).cost(cost).retry(waited.retries > 0);
            let permit = tokio::select! {
                biased;
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
            let result = self.send(time_left(&retry, *waited), &mut guard.traffic).await;
            let latency = guard.sent.elapsed();
            let failure = match result {
                Ok(response) => {
                    permit.end(success(&response, waited.retries == 0));
                    guard.finish(latency, None, None);
                    return Ok(self.finish(response, latency, waited.retries));
                }
                Err(failure) => client.redact_failure(failure),
            };
            waited.spent += latency;
            let failure = stop_pool_on_quota(&pool, model, failure);
            let pause = release_failed(&pool, permit, &failure, &retry, *waited);
            let info = pause.map(|pause| RetryInfo { code: failure.code.as_deref(), pause });
            guard.finish(latency, Some(failure.kind), info);
            let Some(pause) = pause else {
                return Err(CallError { failure, retries: waited.retries });
            };
            if let Some(on_retry) = context.on_retry {
                on_retry(&Retry { model: &model.name, pause, failure: &failure });
            }
            if !pause.is_zero() {
                // A call that backs off holds no permit.
                let _resting = pool.back_off();
                tokio::select! {
                    // A stopped call counts as cancelled and not as failed: the retry might have succeeded.
                    () = context.stop.cancelled() => return Err(CallError::cancelled(waited.retries)),
                    () = tokio::time::sleep(pause) => {}
                }
            }
            waited.spent += pause;
            waited.retries += 1;
            if failure.kind != ErrorKind::RateLimit {
                waited.transient += 1;
            }
        }
    }

    /// Sends one request with a timeout.
    async fn send(
        self,
        timeout: Duration,
        traffic: &mut RequestTraffic,
    ) -> Result<ProviderResponse, Failure> {
        let response = request::send(self, traffic);
        tokio::time::timeout(timeout, response).await.unwrap_or_else(|_| {
            let seconds = timeout.as_secs_f64();
            Err(Failure::local(
                ErrorKind::Timeout,
                format!("no complete response within {seconds} s"),
            ))
        })
    }

    fn finish(self, response: ProviderResponse, latency: Duration, retries: u32) -> Call {
        let ProviderResponse { response, headers } = response;
        let cost = self.model.prices.cost(&response.usage);
        let response = self.client.redact_response(response);
        Call { response, cost, latency, cached: false, retries, headers }
    }
}

/// Returns the timeout of the next request: its own, or what is left of the call's.
fn time_left(retry: &RetryPolicy, waited: RetryProgress) -> Duration {
    let left = retry.timeout.saturating_sub(waited.spent);
    retry.attempt_timeout.map_or(left, |limit| limit.min(left))
}

/// Describes a successful request to its pool.
fn success(response: &ProviderResponse, clean: bool) -> SendOutcome {
    let quota = quota::parse(&response.headers, None);
    SendOutcome::Answered { quota, usage: quota::cost(&response.response.usage), clean }
}

/// Returns the permit of a failed request. Then returns the pause before the retry, if one is allowed.
fn release_failed(
    pool: &Pool,
    permit: Permit,
    failure: &Failure,
    retry: &RetryPolicy,
    waited: RetryProgress,
) -> Option<Duration> {
    let kind = failure.kind;
    permit.end(match kind {
        ErrorKind::RateLimit => {
            SendOutcome::Rejected { quota: quota::parse(&failure.headers, failure.retry_after) }
        }
        ErrorKind::Transient | ErrorKind::Timeout => SendOutcome::Failed,
        _ => SendOutcome::Refused,
    });
    let comeback = match kind {
        ErrorKind::RateLimit => pool.retry_mode(),
        _ => RetryMode::Backoff,
    };
    match comeback {
        // The pool decides when the retry is sent; waiting in its queue does not use up the call's timeout.
        RetryMode::Queue => retry.allows(kind, waited, Duration::ZERO).then_some(Duration::ZERO),
        RetryMode::After(pause) => retry.allows(kind, waited, pause).then_some(pause),
        RetryMode::Backoff => retry.pause(kind, waited, failure.retry_after, rand::random()),
    }
}

/// Stops the pool when the quota is exhausted, because no further call can succeed. This must happen before
/// the permit is returned, or the pool would admit another request.
fn stop_pool_on_quota(pool: &Pool, model: &Model, mut failure: Failure) -> Failure {
    if failure.kind == ErrorKind::Quota {
        let message = failure.message.trim_end_matches('.');
        let reason = format!(
            "quota exhausted for {} ({message}); no further calls to it in this run; check plan, \
             billing and limits at the provider, or wait for the quota to renew and run again",
            model.name
        );
        pool.stop(reason.as_str());
        failure.message = reason;
    }
    failure
}

/// Returns the error of a call whose pool was stopped for an exhausted quota.
fn pool_stopped(stopped: PoolStopped, waited: RetryProgress) -> CallError {
    let failure = Failure::local(ErrorKind::Quota, &*stopped.reason);
    CallError { failure, retries: waited.retries }
}
