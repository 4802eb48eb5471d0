//! Successes whose bodies cannot be read, for testing clients.

use super::body::{event_stream, response, torn};
use super::wire::{Call, Meta, Wire};
use crate::Fault;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response as HttpResponse;
use bakeoff_core::{Content, FinishReason, Response, Usage};

/// Stands where the bytes that are not UTF-8 go; JSON does not escape it.
const PLACE: &str = "@@";
const NOT_UTF8: [u8; 2] = [0xff, 0xfe];

/// The broken body, plain or streamed as the request wants it.
pub(super) fn broken<W: Wire>(fault: Fault, call: &Call, meta: &Meta) -> HttpResponse {
    let answer = Response {
        id: None,
        model: Some(call.request.model.clone()),
        content: vec![Content::text(format!("These {PLACE} bytes never arrive as they should."))],
        finish: FinishReason::Stop,
        usage: Usage { input: 1, output: 1, ..Usage::default() },
        extra: serde_json::Map::new(),
    };
    if call.request.stream {
        let mut events = W::events(&answer, meta, call);
        let half = events.len() / 2;
        match fault {
            // A stream can end in good order, and yet before its last event.
            Fault::Truncated => events.truncate(half),
            Fault::Malformed => {
                events.truncate(half);
                let last = events.pop().unwrap_or_default();
                let cut = last.floor_char_boundary(last.len() / 2);
                events.push(format!("{}\n\n", &last[..cut]));
            }
            Fault::NonUtf8 => {}
            Fault::Empty => events.clear(),
        }
        return event_stream(Body::from(not_utf8(fault, events.concat())));
    }
    let text = not_utf8(fault, W::answer(&answer, meta).to_string());
    let body = match fault {
        Fault::Malformed => Body::from(text[..text.len() / 2].to_vec()),
        Fault::Truncated => torn(text),
        Fault::NonUtf8 => Body::from(text),
        Fault::Empty => Body::empty(),
    };
    response(StatusCode::OK, "application/json", body)
}

fn not_utf8(fault: Fault, text: String) -> Vec<u8> {
    match text.split_once(PLACE) {
        Some((before, after)) if fault == Fault::NonUtf8 => {
            [before.as_bytes(), &NOT_UTF8, after.as_bytes()].concat()
        }
        _ => text.into_bytes(),
    }
}
