//! Handling of one HTTP request in either format.

use super::completion::ReplyCompletion;
use super::connection::ResetSwitch;
use super::wire::{ApiFormat, ResponseMeta};
use super::{ServerState, body, fault, since_1970};
use crate::{Fault, Outcome, Reply, SimRequest};
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use std::sync::atomic::Ordering;
use tokio::time::Instant;

/// Maximum size of a request body, which may contain images.
const MAX_BODY_BYTES: usize = 32 << 20;

/// Header with the trial of the request: `<trial>` or `<trial>/<ordinal>`.
const TRIAL_HEADER: &str = "x-bakeoff-trial";

/// Handles a request.
pub(super) async fn handle<W: ApiFormat>(
    State(app): State<ServerState>,
    ConnectInfo(reset): ConnectInfo<ResetSwitch>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let number = app.requests.fetch_add(1, Ordering::Relaxed);
    let request_id = format!("req_{number:016x}");
    let mut response = match read_body(body).await {
        Some(bytes) => respond::<W>(&app, &reset, &headers, &bytes, number, &request_id).await,
        None => {
            let message = format!("The request is larger than {MAX_BODY_BYTES} bytes.");
            error_response::<W>(413, "request_too_large", &message, &request_id)
        }
    };
    set_header(response.headers_mut(), W::REQUEST_ID_HEADER, &request_id);
    response
}

/// Reads the whole body; returns `None` if it is too large. A body whose declared length is too large is not
/// read.
async fn read_body(body: Body) -> Option<Bytes> {
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return None;
    }
    to_bytes(body, MAX_BODY_BYTES).await.ok()
}

async fn respond<W: ApiFormat>(
    app: &ServerState,
    reset: &ResetSwitch,
    headers: &HeaderMap,
    bytes: &[u8],
    number: u64,
    request_id: &str,
) -> Response {
    let call = match W::parse(bytes) {
        Ok(call) => call,
        Err(message) => return error_response::<W>(400, "invalid_request", &message, request_id),
    };
    let (trial, ordinal) = trial(headers);
    let start = Instant::now();
    let ask = SimRequest { request: &call.request, trial, ordinal, now: app.now() };
    let Reply { delay, slot, headers, answer_status, outcome } = app.engine.respond(&ask);
    let completion = ReplyCompletion { app: app.clone(), start, delay, slot };
    let created = since_1970().as_secs();
    let mut response = match outcome {
        Outcome::Refused { status, code, message } => {
            completion.wait().await;
            error_response::<W>(status, code, &message, request_id)
        }
        Outcome::Broken(Fault::Stall) => {
            app.stopped().await;
            reset.reset();
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        Outcome::Broken(Fault::Reset) => {
            completion.wait().await;
            reset.reset();
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        Outcome::Broken(fault) => {
            completion.wait().await;
            let meta = ResponseMeta { id: format!("{number:016x}"), created };
            fault::response::<W>(fault, &call, &meta)
        }
        Outcome::Answer(answer) => {
            let id = answer.id.as_deref().unwrap_or_default();
            let id = id.strip_prefix("sim-").unwrap_or(id);
            // Repeated answers have different ids, as at real providers.
            let meta = ResponseMeta { id: format!("{id}{number:08x}"), created };
            let status = StatusCode::from_u16(answer_status).unwrap_or(StatusCode::OK);
            if call.request.stream {
                let events = W::events(&answer, &meta, &call);
                body::event_stream(status, body::spread(events, completion))
            } else {
                let answer = W::answer(&answer, &meta);
                completion.wait().await;
                body::json(status, &answer)
            }
        }
    };
    for (name, value) in &headers {
        set_header(response.headers_mut(), name, value);
    }
    response
}

fn error_response<W: ApiFormat>(
    status: u16,
    code: &str,
    message: &str,
    request_id: &str,
) -> Response {
    let error = W::error(status, code, message, request_id);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    body::json(status, &error)
}

/// Sets a header; an invalid name or value is skipped.
fn set_header(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// Returns trial and ordinal of the header; zeros if it is absent or invalid.
fn trial(headers: &HeaderMap) -> (u32, u32) {
    let parse = || {
        let text = headers.get(TRIAL_HEADER)?.to_str().ok()?;
        match text.split_once('/') {
            Some((trial, ordinal)) => {
                Some((trial.trim().parse().ok()?, ordinal.trim().parse().ok()?))
            }
            None => Some((text.trim().parse().ok()?, 0)),
        }
    };
    parse().unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_header_gives_trial_and_ordinal() {
        for (text, expected) in [
            ("3", (3, 0)),
            ("3/7", (3, 7)),
            (" 3 / 7 ", (3, 7)),
            ("3/", (0, 0)),
            ("x", (0, 0)),
            ("-1", (0, 0)),
        ] {
            let mut headers = HeaderMap::new();
            set_header(&mut headers, TRIAL_HEADER, text);
            assert_eq!(trial(&headers), expected, "{text}");
        }
        assert_eq!(trial(&HeaderMap::new()), (0, 0));
    }
}
