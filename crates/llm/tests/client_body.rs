//! Malformed, oversized and interrupted response bodies.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod support;

use bakeoff_core::{ErrorKind, Request};
use bakeoff_llm::{Call, CallContext, CallError, Delta, TransportError};
use bakeoff_pace::RetryPolicy;
use bytes::Bytes;
use std::sync::Mutex;
use support::{
    FakeServer, Reply, chat_body, chat_events, client, client_with, connection_lost, model, prompt,
};

const MIB: usize = 1024 * 1024;

/// Makes a call without retries that gets this reply.
async fn call_once(reply: Reply) -> Result<Call, CallError> {
    let retry = RetryPolicy::default().max_retries(0);
    let server = FakeServer::always(reply);
    client_with(&server, retry).call(&model(), prompt("hello"), &CallContext::default()).await
}

/// Returns kind and message of the error for this reply.
async fn failure(reply: Reply) -> (ErrorKind, String) {
    let error = call_once(reply).await.unwrap_err();
    (error.failure.kind, error.to_string())
}

fn events(body: &[String]) -> Reply {
    Reply::events(body.concat())
}

/// Splits a body into chunks of this size.
fn split(body: &[u8], size: usize) -> Vec<Result<Bytes, TransportError>> {
    body.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect()
}

#[tokio::test]
async fn broken_json_is_malformed_and_quoted() {
    let (kind, message) = failure(Reply::status(200, r#"{"choices": ["#)).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.starts_with("invalid response body: "), "{message}");
    assert!(message.ends_with(r#"it starts with "{\"choices\": [""#), "{message}");
}

#[tokio::test]
async fn json_without_the_expected_fields_is_malformed() {
    for body in ["{}", "null", "[]", "3", r#"{"choices": []}"#, r#"{"choices": "none"}"#] {
        let (kind, _) = failure(Reply::status(200, body)).await;
        assert_eq!(kind, ErrorKind::MalformedResponse, "{body}");
    }
}

#[tokio::test]
async fn html_page_is_malformed_and_quoted() {
    let page = Reply::status(200, "<html>Please log in</html>").header("content-type", "text/html");
    let (kind, message) = failure(page).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.contains("<html>Please log in"), "{message}");
}

#[tokio::test]
async fn empty_body_is_malformed() {
    for reply in [Reply::chunks(vec![]), Reply::status(200, ""), Reply::status(200, " \n")] {
        let (kind, message) = failure(reply).await;
        assert_eq!(kind, ErrorKind::MalformedResponse);
        assert!(message.contains("invalid response body"), "{message}");
    }
}

#[tokio::test]
async fn invalid_utf8_is_malformed() {
    let corrupt = |text: String| -> Vec<u8> {
        text.bytes().map(|byte| if byte == b'@' { 0xff } else { byte }).collect()
    };
    let (kind, message) = failure(Reply::status(200, corrupt(chat_body("a@b").to_string()))).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.contains("invalid response body"), "{message}");

    let streamed = Reply::events(corrupt(chat_events(&["a@b"]).concat()));
    let (kind, message) = failure(streamed).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert_eq!(message, "server-sent event is not UTF-8");
}

/// A successful response of exactly this size.
fn body_of_size(bytes: usize) -> Vec<u8> {
    let overhead = chat_body("").to_string().len();
    chat_body(&"x".repeat(bytes - overhead)).to_string().into_bytes()
}

#[tokio::test]
async fn response_of_eight_mebibytes_is_accepted() {
    for size in [8 * MIB, 64 * 1024] {
        let call = call_once(Reply::chunks(split(&body_of_size(8 * MIB), size))).await.unwrap();
        assert!(call.response.text().len() > 7 * MIB);
    }
}

#[tokio::test]
async fn larger_response_is_rejected() {
    let body = body_of_size(8 * MIB + 1);
    for size in [body.len(), body.len() - 1, 64 * 1024] {
        let (kind, message) = failure(Reply::chunks(split(&body, size))).await;
        assert_eq!(kind, ErrorKind::MalformedResponse, "chunks of {size}");
        assert_eq!(message, "response exceeds 8 MiB");
    }
}

#[tokio::test]
async fn larger_stream_is_rejected() {
    let body = chat_events(&["x".repeat(MIB).as_str(); 9]).concat();
    for size in [body.len(), 64 * 1024] {
        let chunks = Reply::chunks(split(body.as_bytes(), size));
        let (kind, message) = failure(chunks.header("content-type", "text/event-stream")).await;
        assert_eq!(kind, ErrorKind::MalformedResponse, "chunks of {size}");
        assert_eq!(message, "response exceeds 8 MiB");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_response_is_rejected_after_eight_mebibytes() {
    let kinds = ["application/json", "text/event-stream"];
    for kind in kinds {
        let chunks = (0..9).map(|_| Ok(Bytes::from(vec![b' '; MIB]))).collect();
        let endless = Reply::chunks(chunks).endless().header("content-type", kind);
        let (kind, message) = failure(endless).await;
        assert_eq!(kind, ErrorKind::MalformedResponse);
        assert_eq!(message, "response exceeds 8 MiB");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_error_body_is_classified_by_its_start() {
    let chunks = (0..9).map(|_| Ok(Bytes::from(vec![b'x'; MIB]))).collect();
    let (kind, message) = failure(Reply::chunks(chunks).endless().with_status(503)).await;
    assert_eq!((kind, message), (ErrorKind::Transient, "x".repeat(200)));
}

#[tokio::test]
async fn chunk_boundaries_do_not_change_the_response() {
    let text = "grüezi €😀";
    let whole = chat_body(text).to_string();
    let stream = chat_events(&["grüezi ", "€😀"]).concat();
    for size in [1, 2, 3, 7] {
        let call = call_once(Reply::chunks(split(whole.as_bytes(), size))).await.unwrap();
        assert_eq!(call.response.text(), text);
        let chunks = Reply::chunks(split(stream.as_bytes(), size));
        let call = call_once(chunks.header("content-type", "text/event-stream")).await.unwrap();
        assert_eq!(call.response.text(), text);
    }
}

#[tokio::test]
async fn interrupted_body_is_transient() {
    let lost = || Err(connection_lost("lost connection to host"));
    let half = Bytes::from_static(br#"{"choices": ["#);
    let events = Bytes::from(chat_events(&["hel", "lo"])[0].clone());
    let stream = |chunks| Reply::chunks(chunks).header("content-type", "text/event-stream");
    for reply in [
        Reply::chunks(vec![lost()]),
        Reply::chunks(vec![Ok(half.clone()), lost()]),
        Reply::chunks(vec![Ok(half.clone()), Ok(half), lost()]),
        stream(vec![lost()]),
        stream(vec![Ok(events), lost()]),
    ] {
        let expected = (ErrorKind::Transient, "lost connection to host".to_owned());
        assert_eq!(failure(reply.clone()).await, expected, "{reply:?}");
    }
}

#[tokio::test]
async fn interrupted_error_body_keeps_its_kind() {
    let lost = Err(connection_lost("lost connection to host"));
    let chunks = vec![Ok(Bytes::from_static(b"no such key")), lost];
    let (kind, message) = failure(Reply::chunks(chunks).with_status(401)).await;
    assert_eq!(kind, ErrorKind::Auth);
    assert!(message.starts_with("401: no such key; "), "{message}");
}

#[tokio::test]
async fn truncated_stream_is_transient() {
    let whole = chat_events(&["hel", "lo"]);
    let early =
        || (ErrorKind::Transient, "stream ended before the response was complete".to_owned());
    for count in 0..2 {
        assert_eq!(failure(events(&whole[..count])).await, early(), "{count} events");
    }
    // Cut in the middle of an event.
    let cut = whole[..2].concat();
    assert_eq!(failure(Reply::events(cut[..cut.len() - 9].to_owned())).await, early());
}

#[tokio::test(start_paused = true)]
async fn interrupted_responses_are_retried() {
    let server = FakeServer::new(|number| match number {
        0 => events(&chat_events(&["hel", "lo"])[..1]),
        1 => Reply::chunks(vec![Err(connection_lost("lost"))]),
        _ => events(&chat_events(&["hel", "lo"])),
    });
    let context = CallContext::default();
    let call = client(&server).call(&model(), prompt("hello"), &context).await.unwrap();
    assert_eq!((call.response.text().as_str(), call.retries), ("hello", 2));
}

#[tokio::test(start_paused = true)]
async fn malformed_response_is_retried_twice() {
    let server = FakeServer::always(Reply::status(200, "{"));
    let context = CallContext::default();
    let error = client(&server).call(&model(), prompt("hello"), &context).await.unwrap_err();
    assert_eq!((error.retries, server.count()), (2, 3));
    assert_eq!(error.failure.kind, ErrorKind::MalformedResponse);
    let server = FakeServer::new(|number| match number {
        0 => Reply::status(200, "{"),
        1 => Reply::status(200, ""),
        _ => Reply::text("fine"),
    });
    let call = client(&server).call(&model(), prompt("hello"), &context).await.unwrap();
    assert_eq!((call.response.text().as_str(), call.retries), ("fine", 2));
}

#[tokio::test(start_paused = true)]
async fn any_success_status_is_a_response() {
    for status in [200, 201, 202, 299] {
        let server = FakeServer::always(Reply::text("fine").with_status(status));
        let context = CallContext::default();
        let call = client(&server).call(&model(), prompt("hello"), &context).await.unwrap();
        assert_eq!((call.response.text().as_str(), server.count()), ("fine", 1), "{status}");
    }
}

#[tokio::test]
async fn error_event_in_a_stream_is_classified() {
    let error = r#"{"error": {"code": "rate_limit_exceeded", "message": "slow down"}}"#;
    let body = format!("{}data: {error}\n\n", chat_events(&["hel"])[0]);
    let expected = (ErrorKind::RateLimit, "slow down".to_owned());
    assert_eq!(failure(Reply::events(body)).await, expected);
}

/// Returns the text of a response and the deltas that were emitted.
async fn streamed(reply: Reply, stream: bool) -> (String, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    let note = |delta: &Delta| deltas.lock().unwrap().push(delta.clone());
    let context = CallContext::default().on_delta(&note);
    let request = Request { stream, ..prompt("hello") };
    let call = client(&FakeServer::always(reply)).call(&model(), request, &context).await.unwrap();
    (call.response.text(), deltas.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn complete_response_to_a_streaming_request_is_accepted() {
    assert_eq!(streamed(Reply::text("hello"), true).await, ("hello".to_owned(), vec![]));
}

#[tokio::test(start_paused = true)]
async fn stream_response_to_a_plain_request_is_accepted() {
    let texts = ["hel", "lo"];
    let deltas = texts.map(|text| Delta::Text(text.to_owned())).to_vec();
    for kind in ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream"] {
        let reply = events(&chat_events(&texts)).header("content-type", kind);
        assert_eq!(streamed(reply, false).await, ("hello".to_owned(), deltas.clone()), "{kind}");
    }
}

#[tokio::test]
async fn stream_with_json_content_type_is_malformed() {
    let reply = events(&chat_events(&["hello"])).header("content-type", "application/json");
    let (kind, message) = failure(reply).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.contains(r#"it starts with "data: {"#), "{message}");
}

#[tokio::test]
async fn json_with_event_stream_content_type_is_truncated() {
    let reply = Reply::events(chat_body("hello").to_string());
    let expected =
        (ErrorKind::Transient, "stream ended before the response was complete".to_owned());
    assert_eq!(failure(reply).await, expected);
}

#[tokio::test(start_paused = true)]
async fn stream_that_stays_open_after_its_last_event_is_complete() {
    let reply = events(&chat_events(&["hello"])).endless();
    assert_eq!(streamed(reply, true).await.0, "hello");
}

#[tokio::test]
async fn redirect_error_names_the_target_and_base_url() {
    let reply = Reply::status(302, "").header("location", "https://elsewhere.example/v1");
    let (kind, message) = failure(reply).await;
    assert_eq!(kind, ErrorKind::InvalidRequest);
    assert_eq!(message, "unexpected redirect to https://elsewhere.example/v1; check base_url");
}
