//! Success responses with invalid bodies, for testing clients. Faults without a response have no body here.

use super::body::{self, aborted, event_stream};
use super::wire::{ApiFormat, ParsedRequest, ResponseMeta};
use crate::Fault;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response as HttpResponse;
use bakeoff_core::{Content, FinishReason, Response, Usage};

/// Placeholder for the bytes that are not UTF-8; JSON does not escape it.
const PLACEHOLDER: &str = "@@";
const NON_UTF8: [u8; 2] = [0xff, 0xfe];

/// Returns a response with the fault, streamed if the request asks for a stream.
pub(super) fn response<W: ApiFormat>(
    fault: Fault,
    call: &ParsedRequest,
    meta: &ResponseMeta,
) -> HttpResponse {
    let answer = Response {
        id: None,
        model: Some(call.request.model.clone()),
        content: vec![Content::text(format!(
            "These {PLACEHOLDER} bytes never arrive as they should."
        ))],
        finish: FinishReason::Stop,
        usage: Usage { input: 1, output: 1, ..Usage::default() },
        extra: serde_json::Map::new(),
    };
    if call.request.stream {
        let mut events = W::events(&answer, meta, call);
        let half = events.len() / 2;
        match fault {
            // The transfer is complete, but the last events are missing.
            Fault::Truncated => events.truncate(half),
            Fault::Malformed => {
                events.truncate(half);
                let last = events.pop().unwrap_or_default();
                let cut = last.floor_char_boundary(last.len() / 2);
                events.push(format!("{}\n\n", &last[..cut]));
            }
            Fault::NonUtf8 => {}
            Fault::Empty | Fault::Reset | Fault::Stall => events.clear(),
        }
        return event_stream(StatusCode::OK, Body::from(insert_non_utf8(fault, events.concat())));
    }
    let text = insert_non_utf8(fault, W::answer(&answer, meta).to_string());
    let body = match fault {
        Fault::Malformed => Body::from(text[..text.len() / 2].to_vec()),
        Fault::Truncated => aborted(text),
        Fault::NonUtf8 => Body::from(text),
        Fault::Empty | Fault::Reset | Fault::Stall => Body::empty(),
    };
    body::response(StatusCode::OK, "application/json", body)
}

fn insert_non_utf8(fault: Fault, text: String) -> Vec<u8> {
    match text.split_once(PLACEHOLDER) {
        Some((before, after)) if fault == Fault::NonUtf8 => {
            [before.as_bytes(), &NON_UTF8, after.as_bytes()].concat()
        }
        _ => text.into_bytes(),
    }
}
