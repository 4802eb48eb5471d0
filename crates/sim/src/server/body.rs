//! Response bodies: complete, streamed over time, or aborted.

use super::completion::ReplyCompletion;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;

/// Maximum number of writes per stream; timers cost more than bytes.
const MAX_WRITES: usize = 24;
/// Share of the delay after which the first events are sent.
const FIRST_SHARE: f64 = 1.0 / 3.0;

/// Returns a response with a body of a media type.
pub(super) fn response(status: StatusCode, media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Returns a response with a JSON body.
pub(super) fn json(status: StatusCode, value: &Value) -> Response {
    response(status, "application/json", Body::from(value.to_string()))
}

/// Returns a response with server-sent events.
pub(super) fn event_stream(status: StatusCode, body: Body) -> Response {
    response(status, "text/event-stream; charset=utf-8", body)
}

/// Returns a body that spreads events over the delay: the first after a third of it, the last when the reply is
/// complete.
pub(super) fn spread(events: Vec<String>, completion: ReplyCompletion) -> Body {
    if completion.is_immediate() || events.is_empty() {
        return Body::from(events.concat());
    }
    let size = events.len().div_ceil(MAX_WRITES);
    let groups: VecDeque<Bytes> =
        events.chunks(size).map(|group| Bytes::from(group.concat())).collect();
    let count = groups.len();
    Body::from_stream(stream::unfold(
        (groups, completion),
        move |(mut groups, completion)| async move {
            let group = groups.pop_front()?;
            if groups.is_empty() {
                completion.wait().await;
            } else {
                let share = groups.len() as f64 / (count - 1) as f64;
                completion.wait_for_share(1.0 - (1.0 - FIRST_SHARE) * share).await;
            }
            Some((Ok::<_, Infallible>(group), (groups, completion)))
        },
    ))
}

/// Returns a body that aborts the connection after its first half.
pub(super) fn aborted(mut body: Vec<u8>) -> Body {
    body.truncate(body.len() / 2);
    let half = Bytes::from(body);
    Body::from_stream(stream::unfold(Some(half), |half| async move {
        match half {
            Some(half) if !half.is_empty() => Some((Ok(half), Some(Bytes::new()))),
            Some(_) => {
                // The server flushes its buffer when the body is pending.
                tokio::task::yield_now().await;
                Some((Err(io::Error::other("simulated abort")), None))
            }
            None => None,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use std::time::Duration;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn stream_starts_after_a_third_of_the_delay_and_ends_with_it() {
        let start = Instant::now();
        let events = ["a", "b", "c"].map(String::from).to_vec();
        let completion = ReplyCompletion::after(Duration::from_secs(9));
        let mut stream = spread(events, completion).into_data_stream();
        let mut received = Vec::new();
        while let Some(piece) = stream.next().await {
            received.push((start.elapsed().as_millis() / 10, piece.unwrap()));
        }
        let expected = [(300, "a"), (600, "b"), (900, "c")];
        assert_eq!(received, expected.map(|(time, text)| (time, Bytes::from(text))));
    }

    #[tokio::test(start_paused = true)]
    async fn long_streams_use_a_bounded_number_of_writes() {
        let events: Vec<String> = (0..1000).map(|n| format!("{n},")).collect();
        let text = events.concat();
        let completion = ReplyCompletion::after(Duration::from_secs(1));
        let stream = spread(events, completion).into_data_stream();
        let pieces: Vec<Bytes> = stream.map(Result::unwrap).collect().await;
        assert_eq!(pieces.concat(), text.as_bytes());
        assert!(pieces.len() <= MAX_WRITES, "{}", pieces.len());
    }
}
