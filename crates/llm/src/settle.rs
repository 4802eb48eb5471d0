//! From the first attempt of a call to its end: permits, what the pool is told, retries.

use crate::attempt::{Answer, Prepared};
use crate::client::{Call, CallContext, CallError, Client, Retry, cancelled};
use crate::model::Model;
use crate::record::{Asked, Attempting, Retrying, Traffic};
use crate::{Failure, quota};
use bakeoff_core::ErrorKind;
use bakeoff_pace::{
    Permit, PermitRequest, Pool, PoolStopped, RetryMode, RetryPolicy, RetryProgress, SendOutcome,
};
use std::time::Duration;

impl Client {
    pub(crate) async fn call_until_settled(
        &self,
        model: &Model,
        prepared: &Prepared,
        ordinal: u32,
        context: &CallContext<'_>,
        waited: &mut RetryProgress,
    ) -> Result<Call, CallError> {
        let pool = self.pools.get(&model.pool, model.limits).map_err(|error| CallError {
            failure: Failure::local(ErrorKind::InvalidRequest, format!("limits: {error}")),
            retries: 0,
        })?;
        let retry = model.limits.retry_policy(self.retry);
        let method = if model.is_in_process() { "SIM" } else { "POST" };
        let asked = Asked { name: &model.name, method };
        let cost = pool.estimate(prepared.input_tokens(), prepared.max_tokens());
        loop {
            let ask = PermitRequest { run: context.run, cost, is_retry: waited.retries > 0 };
            let permit = tokio::select! {
                biased;
                () = context.stop.cancelled() => return Err(cancelled(waited.retries)),
                permit = pool.acquire(ask) => permit.map_err(|stopped| ended(stopped, *waited))?,
            };
            let mut attempt = Attempting::new(
                self.on_http.as_ref(),
                asked,
                prepared.body_bytes(),
                permit.in_flight(),
                waited.retries + 1,
            );
            let left = time_left(&retry, *waited);
            let traffic = &mut attempt.traffic;
            let result =
                self.attempt_in_time(model, prepared, ordinal, context, left, traffic).await;
            let latency = attempt.sent.elapsed();
            let failure = match result {
                Ok(answer) => {
                    permit.end(answered(&answer, waited.retries == 0));
                    attempt.over(latency, None, None);
                    return Ok(self.call_of(model, answer, latency, waited.retries));
                }
                Err(failure) => self.without_secrets_in(failure),
            };
            waited.spent += latency;
            let failure = stop_if_used_up(&pool, model, failure);
            let pause = end_failed(&pool, permit, &failure, &retry, *waited);
            let retrying = pause.map(|pause| Retrying { code: failure.code.as_deref(), pause });
            attempt.over(latency, Some(failure.kind), retrying);
            let Some(pause) = pause else {
                return Err(CallError { failure, retries: waited.retries });
            };
            if let Some(on_retry) = context.on_retry {
                on_retry(&Retry { model: &model.name, pause, failure: &failure });
            }
            if !pause.is_zero() {
                // A request that waits for a retry holds no permit.
                let _backing_off = pool.back_off();
                tokio::select! {
                    // It might still have been answered: that it failed is not the last word.
                    () = context.stop.cancelled() => return Err(cancelled(waited.retries)),
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

    fn call_of(&self, model: &Model, answer: Answer, latency: Duration, retries: u32) -> Call {
        let Answer { response, headers } = answer;
        let cost = model.prices.cost(&response.usage);
        let response = self.without_secrets(response);
        Call { response, cost, latency, cached: false, retries, headers }
    }

    async fn attempt_in_time(
        &self,
        model: &Model,
        prepared: &Prepared,
        ordinal: u32,
        context: &CallContext<'_>,
        limit: Duration,
        traffic: &mut Traffic,
    ) -> Result<Answer, Failure> {
        let attempt = self.attempt(model, prepared, ordinal, context, traffic);
        tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f64();
            Err(Failure::local(
                ErrorKind::Timeout,
                format!("no complete answer within {seconds} s"),
            ))
        })
    }

    pub(crate) fn without_secrets_in(&self, mut failure: Failure) -> Failure {
        failure.message = self.redactor.scrub(failure.message);
        failure.code = failure.code.map(|code| self.redactor.scrub(code));
        failure
    }
}

fn time_left(retry: &RetryPolicy, waited: RetryProgress) -> Duration {
    let left = retry.timeout.saturating_sub(waited.spent);
    retry.attempt_timeout.map_or(left, |limit| limit.min(left))
}

fn answered(answer: &Answer, clean: bool) -> SendOutcome {
    let quota = quota::read(&answer.headers, None);
    SendOutcome::Answered { quota, usage: quota::used(&answer.response.usage), clean }
}

/// Tells the pool how an attempt failed; then after which pause there is another one, if at all.
fn end_failed(
    pool: &Pool,
    permit: Permit,
    failure: &Failure,
    retry: &RetryPolicy,
    waited: RetryProgress,
) -> Option<Duration> {
    let kind = failure.kind;
    permit.end(match kind {
        ErrorKind::RateLimit => {
            SendOutcome::Rejected { quota: quota::read(&failure.headers, failure.retry_after) }
        }
        ErrorKind::Transient | ErrorKind::Timeout => SendOutcome::Failed,
        _ => SendOutcome::Refused,
    });
    let retry_mode = match kind {
        ErrorKind::RateLimit => pool.retry_mode(),
        _ => RetryMode::Backoff,
    };
    match retry_mode {
        // The pool knows when it may go out, and waiting there is not the call's time.
        RetryMode::Queue => retry.allows(kind, waited, Duration::ZERO).then_some(Duration::ZERO),
        RetryMode::After(pause) => retry.allows(kind, waited, pause).then_some(pause),
        RetryMode::Backoff => retry.pause(kind, waited, failure.retry_after, rand::random()),
    }
}

/// When nothing is left of a quota, no other call has a chance: the pool is stopped, before the
/// permit goes back to it.
fn stop_if_used_up(pool: &Pool, model: &Model, mut failure: Failure) -> Failure {
    if failure.kind == ErrorKind::Quota {
        let said = failure.message.trim_end_matches('.');
        let reason = format!(
            "the quota of {} is used up ({said}); no more calls are made to it in this run: check \
             plan, billing and limits at the provider, or wait until the quota is renewed, and run \
             again",
            model.name
        );
        pool.stop(reason.as_str());
        failure.message = reason;
    }
    failure
}

/// A call that was not made because nothing is left.
fn ended(stopped: PoolStopped, waited: RetryProgress) -> CallError {
    let failure = Failure::local(ErrorKind::Quota, &*stopped.reason);
    CallError { failure, retries: waited.retries }
}
