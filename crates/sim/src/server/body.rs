//! Response bodies: complete, streamed over time, or aborted.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Maximum number of writes per stream; timers cost more than bytes.
const MAX_WRITES: usize = 24;

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

/// Returns a body that spreads events over the delay: the first after a third of it, the last at its end.
pub(super) fn spread(events: Vec<String>, start: Instant, delay: Duration) -> Body {
    if delay.is_zero() || events.is_empty() {
        return Body::from(events.concat());
    }
    let size = events.len().div_ceil(MAX_WRITES);
    let groups: VecDeque<Bytes> =
        events.chunks(size).map(|group| Bytes::from(group.concat())).collect();
    let count = groups.len();
    let first = delay / 3;
    Body::from_stream(stream::unfold(groups, move |mut groups| async move {
        let group = groups.pop_front()?;
        let left = groups.len() as f64;
        let share = if count > 1 { left / (count - 1) as f64 } else { 0.0 };
        sleep_until(start + delay - (delay - first).mul_f64(share)).await;
        Some((Ok::<_, Infallible>(group), groups))
    }))
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

    #[tokio::test(start_paused = true)]
    async fn stream_starts_after_a_third_of_the_delay_and_ends_with_it() {
        let start = Instant::now();
        let events = ["a", "b", "c"].map(String::from).to_vec();
        let mut stream = spread(events, start, Duration::from_secs(9)).into_data_stream();
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
        let stream = spread(events, Instant::now(), Duration::from_secs(1)).into_data_stream();
        let pieces: Vec<Bytes> = stream.map(Result::unwrap).collect().await;
        assert_eq!(pieces.concat(), text.as_bytes());
        assert!(pieces.len() <= MAX_WRITES, "{}", pieces.len());
    }
}
