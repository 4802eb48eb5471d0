//! Answers that are not what they should be.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod support;

use bakeoff_core::{ErrorKind, Request};
use bakeoff_llm::{Call, CallContext, CallError, Delta, TransportError};
use bakeoff_pace::RetryPolicy;
use bytes::Bytes;
use std::sync::Mutex;
use support::{Fake, Reply, ask, chat_body, chat_events, client, client_with, model};

const MIB: usize = 1024 * 1024;

/// One attempt that is answered with this.
async fn read(reply: Reply) -> Result<Call, CallError> {
    let retry = RetryPolicy { max_retries: Some(0), ..RetryPolicy::default() };
    let fake = Fake::always(reply);
    client_with(&fake, retry).call(&model(), ask("hello"), &CallContext::default()).await
}

/// The kind and message of the error that this answer gives.
async fn failure(reply: Reply) -> (ErrorKind, String) {
    let error = read(reply).await.unwrap_err();
    (error.failure.kind, error.to_string())
}

fn events(body: &[String]) -> Reply {
    Reply::events(body.concat())
}

/// In pieces of this many bytes.
fn in_pieces(body: &[u8], size: usize) -> Vec<Result<Bytes, TransportError>> {
    body.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect()
}

#[tokio::test]
async fn json_that_is_broken_is_malformed_and_shown() {
    let (kind, message) = failure(Reply::status(200, r#"{"choices": ["#)).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.starts_with("the answer is not what the format promises: "), "{message}");
    assert!(message.ends_with(r#"it starts with "{\"choices\": [""#), "{message}");
}

#[tokio::test]
async fn json_of_another_shape_is_malformed() {
    for body in ["{}", "null", "[]", "3", r#"{"choices": []}"#, r#"{"choices": "none"}"#] {
        let (kind, _) = failure(Reply::status(200, body)).await;
        assert_eq!(kind, ErrorKind::MalformedResponse, "{body}");
    }
}

#[tokio::test]
async fn a_page_in_place_of_an_answer_is_malformed_and_shown() {
    let page = Reply::status(200, "<html>Please log in</html>").header("content-type", "text/html");
    let (kind, message) = failure(page).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.contains("<html>Please log in"), "{message}");
}

#[tokio::test]
async fn an_empty_body_is_malformed() {
    for reply in [Reply::pieces(vec![]), Reply::status(200, ""), Reply::status(200, " \n")] {
        let (kind, message) = failure(reply).await;
        assert_eq!(kind, ErrorKind::MalformedResponse);
        assert!(message.contains("the answer is not what the format promises"), "{message}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_malformed() {
    let spoil = |text: String| -> Vec<u8> {
        text.bytes().map(|byte| if byte == b'@' { 0xff } else { byte }).collect()
    };
    let (kind, message) = failure(Reply::status(200, spoil(chat_body("a@b").to_string()))).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.contains("the answer is not what the format promises"), "{message}");

    let streamed = Reply::events(spoil(chat_events(&["a@b"]).concat()));
    let (kind, message) = failure(streamed).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert_eq!(message, "a server-sent event is not UTF-8");
}

/// A good answer of exactly this many bytes.
fn sized(bytes: usize) -> Vec<u8> {
    let frame = chat_body("").to_string().len();
    chat_body(&"x".repeat(bytes - frame)).to_string().into_bytes()
}

#[tokio::test]
async fn an_answer_of_eight_mebibytes_is_read() {
    for size in [8 * MIB, 64 * 1024] {
        let call = read(Reply::pieces(in_pieces(&sized(8 * MIB), size))).await.unwrap();
        assert!(call.response.text().len() > 7 * MIB);
    }
}

#[tokio::test]
async fn a_longer_answer_is_refused() {
    let body = sized(8 * MIB + 1);
    for size in [body.len(), body.len() - 1, 64 * 1024] {
        let (kind, message) = failure(Reply::pieces(in_pieces(&body, size))).await;
        assert_eq!(kind, ErrorKind::MalformedResponse, "in pieces of {size}");
        assert_eq!(message, "the answer is longer than 8 MiB");
    }
}

#[tokio::test]
async fn a_longer_stream_is_refused() {
    let body = chat_events(&["x".repeat(MIB).as_str(); 9]).concat();
    for size in [body.len(), 64 * 1024] {
        let pieces = Reply::pieces(in_pieces(body.as_bytes(), size));
        let (kind, message) = failure(pieces.header("content-type", "text/event-stream")).await;
        assert_eq!(kind, ErrorKind::MalformedResponse, "in pieces of {size}");
        assert_eq!(message, "the answer is longer than 8 MiB");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_given_up_after_eight_mebibytes() {
    let kinds = ["application/json", "text/event-stream"];
    for kind in kinds {
        let pieces = (0..9).map(|_| Ok(Bytes::from(vec![b' '; MIB]))).collect();
        let endless = Reply::pieces(pieces).endless().header("content-type", kind);
        let (kind, message) = failure(endless).await;
        assert_eq!(kind, ErrorKind::MalformedResponse);
        assert_eq!(message, "the answer is longer than 8 MiB");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_end_is_understood_from_its_start() {
    let pieces = (0..9).map(|_| Ok(Bytes::from(vec![b'x'; MIB]))).collect();
    let (kind, message) = failure(Reply::pieces(pieces).endless().with_status(503)).await;
    assert_eq!((kind, message), (ErrorKind::Transient, "x".repeat(200)));
}

#[tokio::test]
async fn the_pieces_of_a_body_do_not_matter() {
    let text = "grüezi €😀";
    let whole = chat_body(text).to_string();
    let stream = chat_events(&["grüezi ", "€😀"]).concat();
    for size in [1, 2, 3, 7] {
        let call = read(Reply::pieces(in_pieces(whole.as_bytes(), size))).await.unwrap();
        assert_eq!(call.response.text(), text);
        let pieces = Reply::pieces(in_pieces(stream.as_bytes(), size));
        let call = read(pieces.header("content-type", "text/event-stream")).await.unwrap();
        assert_eq!(call.response.text(), text);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_lost() {
    let lost = || Err(TransportError("lost the connection to host".to_owned()));
    let half = Bytes::from_static(br#"{"choices": ["#);
    let events = Bytes::from(chat_events(&["hel", "lo"])[0].clone());
    let stream = |pieces| Reply::pieces(pieces).header("content-type", "text/event-stream");
    for reply in [
        Reply::pieces(vec![lost()]),
        Reply::pieces(vec![Ok(half.clone()), lost()]),
        Reply::pieces(vec![Ok(half.clone()), Ok(half), lost()]),
        stream(vec![lost()]),
        stream(vec![Ok(events), lost()]),
    ] {
        let expected = (ErrorKind::Transient, "lost the connection to host".to_owned());
        assert_eq!(failure(reply.clone()).await, expected, "{reply:?}");
    }
}

#[tokio::test]
async fn an_error_that_breaks_off_is_still_that_error() {
    let lost = Err(TransportError("lost the connection to host".to_owned()));
    let pieces = vec![Ok(Bytes::from_static(b"no such key")), lost];
    let (kind, message) = failure(Reply::pieces(pieces).with_status(401)).await;
    assert_eq!((kind, message.as_str()), (ErrorKind::Auth, "no such key"));
}

#[tokio::test]
async fn a_stream_that_ends_early_is_lost() {
    let whole = chat_events(&["hel", "lo"]);
    let early = || (ErrorKind::Transient, "the stream ended before the answer did".to_owned());
    for kept in 0..2 {
        assert_eq!(failure(events(&whole[..kept])).await, early(), "{kept} events");
    }
    // In the middle of an event.
    let cut = whole[..2].concat();
    assert_eq!(failure(Reply::events(cut[..cut.len() - 9].to_owned())).await, early());
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_is_asked_for_again() {
    let fake = Fake::new(|number| match number {
        0 => events(&chat_events(&["hel", "lo"])[..1]),
        1 => Reply::pieces(vec![Err(TransportError("lost".to_owned()))]),
        _ => events(&chat_events(&["hel", "lo"])),
    });
    let context = CallContext::default();
    let call = client(&fake).call(&model(), ask("hello"), &context).await.unwrap();
    assert_eq!((call.response.text().as_str(), call.retries), ("hello", 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_malformed_is_not_asked_for_again() {
    let fake = Fake::always(Reply::status(200, "{"));
    let context = CallContext::default();
    let error = client(&fake).call(&model(), ask("hello"), &context).await.unwrap_err();
    assert_eq!((error.retries, fake.count()), (0, 1));
}

#[tokio::test]
async fn an_error_in_a_stream_is_that_error() {
    let error = r#"{"error": {"code": "rate_limit_exceeded", "message": "slower, please"}}"#;
    let body = format!("{}data: {error}\n\n", chat_events(&["hel"])[0]);
    let expected = (ErrorKind::RateLimit, "slower, please".to_owned());
    assert_eq!(failure(Reply::events(body)).await, expected);
}

/// An answer and the pieces that were told of.
async fn streamed(reply: Reply, stream: bool) -> (String, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    let note = |delta: &Delta| deltas.lock().unwrap().push(delta.clone());
    let context = CallContext { on_delta: Some(&note), ..CallContext::default() };
    let request = Request { stream, ..ask("hello") };
    let call = client(&Fake::always(reply)).call(&model(), request, &context).await.unwrap();
    (call.response.text(), deltas.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_will_do_where_a_stream_was_asked_for() {
    assert_eq!(streamed(Reply::text("hello"), true).await, ("hello".to_owned(), vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_stream_will_do_where_a_whole_answer_was_asked_for() {
    let pieces = ["hel", "lo"];
    let deltas = pieces.map(|piece| Delta::Text(piece.to_owned())).to_vec();
    for kind in ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream"] {
        let reply = events(&chat_events(&pieces)).header("content-type", kind);
        assert_eq!(streamed(reply, false).await, ("hello".to_owned(), deltas.clone()), "{kind}");
    }
}

#[tokio::test]
async fn a_stream_that_says_it_is_json_is_malformed() {
    let reply = events(&chat_events(&["hello"])).header("content-type", "application/json");
    let (kind, message) = failure(reply).await;
    assert_eq!(kind, ErrorKind::MalformedResponse);
    assert!(message.contains(r#"it starts with "data: {"#), "{message}");
}

#[tokio::test]
async fn json_that_says_it_is_a_stream_never_begins() {
    let reply = Reply::events(chat_body("hello").to_string());
    let expected = (ErrorKind::Transient, "the stream ended before the answer did".to_owned());
    assert_eq!(failure(reply).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stays_open_after_its_end_is_read_all_the_same() {
    let reply = events(&chat_events(&["hello"])).endless();
    assert_eq!(streamed(reply, true).await.0, "hello");
}

#[tokio::test]
async fn a_redirection_names_the_place_and_the_remedy() {
    let reply = Reply::status(302, "").header("location", "https://elsewhere.example/v1");
    let (kind, message) = failure(reply).await;
    assert_eq!(kind, ErrorKind::InvalidRequest);
    assert_eq!(message, "redirected to https://elsewhere.example/v1; is the base_url right?");
}
