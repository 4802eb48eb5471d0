//! One HTTP request from its body to its answer, in either format.

use super::wire::{Meta, Wire};
use super::{App, body, fault, since_1970};
use crate::{Ask, Outcome, Reply};
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use std::sync::atomic::Ordering;
use tokio::time::{Instant, sleep_until};

/// Largest request body; images travel in it.
const MOST_BODY_BYTES: usize = 32 << 20;

/// Which trial the request belongs to: `<trial>` or `<trial>/<ordinal>`.
const TRIAL: &str = "x-bakeoff-trial";

/// Answers a request.
pub(super) async fn answer<W: Wire>(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let number = app.requests.fetch_add(1, Ordering::Relaxed);
    let request_id = format!("req_{number:016x}");
    let mut response = match read(body).await {
        Some(bytes) => respond::<W>(&app, &headers, &bytes, number, &request_id).await,
        None => {
            let message = format!("The request is larger than {MOST_BODY_BYTES} bytes.");
            refuse::<W>(413, "request_too_large", &message, &request_id)
        }
    };
    set(response.headers_mut(), W::REQUEST_ID, &request_id);
    response
}

/// The whole body, unless it is too large; one that says so itself is not waited for.
async fn read(body: Body) -> Option<Bytes> {
    if body.size_hint().lower() > MOST_BODY_BYTES as u64 {
        return None;
    }
    to_bytes(body, MOST_BODY_BYTES).await.ok()
}

async fn respond<W: Wire>(
    app: &App,
    headers: &HeaderMap,
    bytes: &[u8],
    number: u64,
    request_id: &str,
) -> Response {
    let call = match W::read(bytes) {
        Ok(call) => call,
        Err(message) => return refuse::<W>(400, "invalid_request", &message, request_id),
    };
    let (trial, ordinal) = trial(headers);
    let start = Instant::now();
    let ask = Ask { request: &call.request, trial, ordinal, now: app.now() };
    let Reply { delay, headers, outcome } = app.engine.ask(&ask);
    let created = since_1970().as_secs();
    let mut response = match outcome {
        Outcome::Refused { status, code, message } => {
            if !delay.is_zero() {
                sleep_until(start + delay).await;
            }
            refuse::<W>(status, code, &message, request_id)
        }
        Outcome::Broken(fault) => {
            sleep_until(start + delay).await;
            let meta = Meta { id: format!("{number:016x}"), created };
            fault::broken::<W>(fault, &call, &meta)
        }
        Outcome::Answer(answer) => {
            let id = answer.id.as_deref().unwrap_or_default();
            let id = id.strip_prefix("sim-").unwrap_or(id);
            // The same answer given twice has two ids, as a provider's would.
            let meta = Meta { id: format!("{id}{number:08x}"), created };
            if call.request.stream {
                let events = W::events(&answer, &meta, &call);
                body::event_stream(body::spread(events, start, delay))
            } else {
                let answer = W::answer(&answer, &meta);
                if !delay.is_zero() {
                    sleep_until(start + delay).await;
                }
                body::json(StatusCode::OK, &answer)
            }
        }
    };
    for (name, value) in &headers {
        set(response.headers_mut(), name, value);
    }
    response
}

fn refuse<W: Wire>(status: u16, code: &str, message: &str, request_id: &str) -> Response {
    let error = W::error(status, code, message, request_id);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    body::json(status, &error)
}

/// Sets a header; one that HTTP does not allow is left out.
fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// Trial and ordinal; zero where they are not told or not understood.
fn trial(headers: &HeaderMap) -> (u32, u32) {
    let read = || {
        let text = headers.get(TRIAL)?.to_str().ok()?;
        match text.split_once('/') {
            Some((trial, ordinal)) => {
                Some((trial.trim().parse().ok()?, ordinal.trim().parse().ok()?))
            }
            None => Some((text.trim().parse().ok()?, 0)),
        }
    };
    read().unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_tells_trial_and_ordinal() {
        for (text, expected) in [
            ("3", (3, 0)),
            ("3/7", (3, 7)),
            (" 3 / 7 ", (3, 7)),
            ("3/", (0, 0)),
            ("x", (0, 0)),
            ("-1", (0, 0)),
        ] {
            let mut headers = HeaderMap::new();
            set(&mut headers, TRIAL, text);
            assert_eq!(trial(&headers), expected, "{text}");
        }
        assert_eq!(trial(&HeaderMap::new()), (0, 0));
    }
}
