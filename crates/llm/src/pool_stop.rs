//! Failures after which no call of a model can succeed in this run. They stop its pool, so that waiting calls
//! end at once and no further request is sent.

use crate::model::Model;
use crate::network::certificate_problem;
use crate::retry::ModelCall;
use crate::transport::TransportErrorKind;
use crate::{Client, Failure};
use bakeoff_core::ErrorKind;
use bakeoff_pace::{Pool, PoolStopped, RetryPolicy};
use chrono::{DateTime, Utc};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Time after which a server that never responded counts as unreachable. It covers the restart of a local
/// server.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(10);

/// Time after which a server that only closes connections counts as unreachable.
const CLOSING_AFTER: Duration = Duration::from_secs(20);

/// Time without an answer after which a provider counts as unavailable, or the timeout of calls if it is
/// longer. Quotas per minute cause silences of up to a minute.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// Earlier calls that timed out, from which on timeouts are not due to stalled connections if nothing was ever
/// answered.
const MIN_TIMEOUTS: u32 = 4;

/// A day and more is given with the date.
const DAY: Duration = Duration::from_secs(86_400);

/// Returns why the pool has to be stopped after a failure; `None` if later calls may succeed.
pub(crate) fn stop_reason(
    call: ModelCall<'_>,
    pool: &Pool,
    failure: &Failure,
    latency: Duration,
    retry: &RetryPolicy,
) -> Option<PoolStopped> {
    let ModelCall { client, model, .. } = call;
    // The pool does not know this failure yet. A lost connection says nothing about the time before.
    let own = if failure.cause == Some(TransportErrorKind::ConnectionLost) {
        Duration::ZERO
    } else {
        latency
    };
    let failing_for = pool.failing_for().unwrap_or_default().max(own);
    let (kind, reason) = match failure.kind {
        ErrorKind::Quota => (ErrorKind::Quota, quota(model, failure)),
        ErrorKind::Auth => (ErrorKind::Auth, rejected_key(model, failure)),
        // No request can be sent.
        ErrorKind::InvalidRequest if failure.cause == Some(TransportErrorKind::Setup) => {
            let reason =
                format!("{}; no further calls to {} in this run", sentence(failure), model.name);
            (ErrorKind::InvalidRequest, reason)
        }
        ErrorKind::RateLimit | ErrorKind::Transient | ErrorKind::Timeout => {
            let blocked = || Some((ErrorKind::Quota, blocked(client, model, failure, retry)?));
            let unreachable = || {
                let reason = unreachable(call, pool, failure, failing_for)?;
                Some((ErrorKind::Transient, reason))
            };
            // A provider that has never answered is more likely to be set up wrongly than to recover.
            let max = match failure.kind {
                ErrorKind::Transient if !pool.has_answered() => MAX_SILENCE,
                ErrorKind::Timeout if !pool.has_answered() && pool.timeouts() >= MIN_TIMEOUTS => {
                    (2 * retry.timeout).min(MAX_SILENCE)
                }
                _ => retry.timeout.max(MAX_SILENCE),
            };
            let is_unavailable = failing_for > max;
            let unavailable = || {
                let is_silent = failure.kind == ErrorKind::Timeout && !pool.has_responded();
                let reason = match is_silent {
                    true => silent(model, failure),
                    false => unavailable(model, failure, failing_for),
                };
                is_unavailable.then_some((failure.kind, reason))
            };
            blocked().or_else(unreachable).or_else(unavailable)?
        }
        _ => return None,
    };
    Some(PoolStopped::new(kind, reason))
}

fn quota(model: &Model, failure: &Failure) -> String {
    format!(
        "quota exhausted for {} ({}); no further calls to it in this run; check plan, billing and limits at \
         the provider, or wait for the quota to renew and run again",
        model.name,
        sentence(failure)
    )
}

fn rejected_key(model: &Model, failure: &Failure) -> String {
    let status = failure.status.map_or(String::new(), |status| format!("{status}: "));
    format!(
        "{status}{}; no further calls to {} in this run; check {} and its access to the model",
        sentence(failure),
        model.name,
        model.key_variable
    )
}

/// Describes an announced wait that is longer than calls wait, or than the run lasts.
fn blocked(
    client: &Client,
    model: &Model,
    failure: &Failure,
    retry: &RetryPolicy,
) -> Option<String> {
    let wait = failure.retry_after?;
    let left = client.deadline.map(|end| end.saturating_duration_since(Instant::now()));
    let bound = match left {
        Some(left) if wait > left => "the deadline of the run (`--deadline`)".to_owned(),
        _ if wait > retry.timeout => {
            format!("the timeout of {} s (`--timeout`)", retry.timeout.as_secs_f64())
        }
        _ => return None,
    };
    Some(format!(
        "{} is blocked by the provider until {} ({}); this is after {bound}, so no further calls to it in this \
         run; continue then with --resume",
        model.name,
        clock_time(SystemTime::now(), wait),
        sentence(failure)
    ))
}

/// Formats the time at the end of a wait.
fn clock_time(now: SystemTime, wait: Duration) -> String {
    let format = if wait < DAY { "%H:%M UTC" } else { "%Y-%m-%d %H:%M UTC" };
    let end = now.checked_add(wait).map(DateTime::<Utc>::from);
    end.map_or("an unknown time".to_owned(), |end| end.format(format).to_string())
}

/// Describes a server that was never reached.
fn unreachable(
    call: ModelCall<'_>,
    pool: &Pool,
    failure: &Failure,
    failing_for: Duration,
) -> Option<String> {
    let ModelCall { client, model, .. } = call;
    let cause = failure.cause.filter(|_| !pool.has_responded())?;
    // A server that closes every connection has no other request in flight.
    if cause == TransportErrorKind::ConnectionLost && pool.load().in_flight > 1 {
        return None;
    }
    let (after, hint) = match cause {
        // An untrusted certificate stays untrusted.
        TransportErrorKind::Certificate => (Duration::ZERO, certificate_hint(&failure.message)),
        TransportErrorKind::Proxy => {
            (Duration::ZERO, "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY".into())
        }
        TransportErrorKind::Connect if failure.message.contains("handshake eof") => {
            (UNREACHABLE_AFTER, "the server seems to speak plain HTTP: use http:// in base_url".into())
        }
        TransportErrorKind::HostNotFound | TransportErrorKind::Connect => (
            UNREACHABLE_AFTER,
            "check base_url, whether the server runs, and the variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY"
                .into(),
        ),
        TransportErrorKind::ConnectionLost => (
            CLOSING_AFTER,
            "the server closes every connection: check the port in base_url, and whether it needs https://".into(),
        ),
        TransportErrorKind::Setup | TransportErrorKind::Timeout => return None,
    };
    // The reason must be known before the run ends.
    let is_late = client
        .deadline
        .is_some_and(|end| end.saturating_duration_since(Instant::now()) <= failing_for);
    (is_late || failing_for >= after).then(|| {
        format!("{}; no further calls to {} in this run; {hint}", sentence(failure), model.name)
    })
}

/// Returns the remedy for a failed TLS handshake, by the text of the TLS library.
fn certificate_hint(message: &str) -> Cow<'static, str> {
    let table = [
        (
            "CaUsedAsEndEntity",
            "SSL_CERT_FILE cannot help here: the server presents the certificate of an issuer; give it one with \
             basicConstraints CA:FALSE (openssl req -x509 -addext basicConstraints=critical,CA:FALSE)",
        ),
        ("not valid for name", "use a host name of the certificate in base_url"),
        ("certificate expired", "renew the certificate of the server, or correct the clock"),
        ("InvalidContentType", "the server seems to speak plain HTTP: use http:// in base_url"),
    ];
    let found = table.into_iter().find(|(text, _)| message.contains(text));
    match (found, certificate_problem()) {
        (Some((_, hint)), _) => hint.into(),
        (None, Some(problem)) => problem.into(),
        (None, None) => "name the file with the issuer's certificate in SSL_CERT_FILE".into(),
    }
}

/// Describes a server that accepts connections and never responds.
fn silent(model: &Model, failure: &Failure) -> String {
    format!(
        "{}; no request to {} has ever been answered; no further calls to it in this run; check base_url and the \
         server, or raise --timeout if answers take longer",
        sentence(failure),
        model.name
    )
}

/// Describes a provider that has only failed or rejected requests for longer than calls wait.
fn unavailable(model: &Model, failure: &Failure, failing_for: Duration) -> String {
    format!(
        "no request to {} succeeded for {} s ({}); no further calls to it in this run; continue later with \
         --resume",
        model.name,
        failing_for.as_secs(),
        sentence(failure)
    )
}

/// Returns the message without its full stop.
fn sentence(failure: &Failure) -> &str {
    failure.message.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_wait_has_a_date_from_one_day_on() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(clock_time(now, Duration::from_secs(60)), "22:14 UTC");
        assert_eq!(clock_time(now, DAY), "2023-11-15 22:13 UTC");
        assert_eq!(clock_time(now, Duration::MAX), "an unknown time");
    }
}
