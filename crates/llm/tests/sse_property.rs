//! The event parser compared with `sse-stream`, an independent implementation of the same specification.
//!
//! That crate returns raw blocks where the WHATWG specification defines events, so three differences are
//! removed here: it returns blocks without data, which are no events; it keeps an empty event name, which the
//! specification treats as absent; and it fails on invalid UTF-8 at the end of the line and also in `retry`,
//! where the specification ignores it. After such a failure there is nothing to compare.

#![allow(clippy::unwrap_used)]

use bakeoff_llm::sse::{SseError, SseEvent, SseParser};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use sse_stream::SseStream;
use std::convert::Infallible;

/// Events and result of the parser.
type ParseResult = (Vec<SseEvent>, Result<(), SseError>);

fn parse(chunks: &[&[u8]]) -> ParseResult {
    let (mut parser, mut events) = (SseParser::new(), Vec::new());
    let result = chunks.iter().try_for_each(|chunk| parser.feed(chunk, &mut events));
    (events, result)
}

/// Returns the events of the other parser, and whether it reached the end.
fn parse_with_sse_stream(bytes: &[u8]) -> (Vec<SseEvent>, bool) {
    let whole = stream::iter([Ok::<_, Infallible>(Bytes::copy_from_slice(bytes))]);
    let blocks = SseStream::from_bytes_stream(whole).collect::<Vec<_>>().now_or_never().unwrap();
    let is_complete = blocks.iter().all(Result::is_ok);
    let events = blocks.into_iter().filter_map(|block| {
        let block = block.ok()?;
        Some(SseEvent {
            event: block.event.filter(|event| !event.is_empty()),
            data: block.data?,
            id: block.id,
            retry: block.retry,
        })
    });
    (events.collect(), is_complete)
}

/// Splits bytes at these positions.
fn split<'a>(bytes: &'a [u8], positions: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<_> =
        positions.iter().map(|position| position.index(bytes.len() + 1)).collect();
    ends.sort_unstable();
    ends.push(bytes.len());
    let mut start = 0;
    let chunks = ends.into_iter().map(|end| {
        let chunk = &bytes[start..end];
        start = end;
        chunk
    });
    chunks.collect()
}

fn line() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        "[ -~]{0,80}",
        "[a-zü€😀 :]{0,8}",
        Just(String::new()),
        "[0-9]{1,25}",
        Just("\0".to_owned())
    ];
    let name = prop_oneof![
        4 => Just("data"),
        1 => Just("event"),
        1 => Just("id"),
        1 => Just("retry"),
        1 => Just(""),
        1 => Just("other"),
        1 => Just("\u{feff}data"),
    ];
    let colon = prop_oneof![4 => Just(": "), 2 => Just(":"), 1 => Just("")];
    prop_oneof![
        3 => (name, colon, value).prop_map(|(name, colon, value)| format!("{name}{colon}{value}")),
        2 => Just(String::new()),
    ]
}

fn event_stream() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    let lines = prop::collection::vec((line(), end), 0..20);
    (any::<bool>(), lines).prop_map(|(mark, lines)| {
        let mark = if mark { "\u{feff}" } else { "" };
        let lines = lines.into_iter().map(|(line, end)| line + end);
        std::iter::once(mark.to_owned()).chain(lines).collect::<String>().into_bytes()
    })
}

proptest! {
    #[test]
    fn valid_streams_give_the_same_events_as_the_other_parser(
        bytes in event_stream(),
        positions in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let (events, result) = parse(&split(&bytes, &positions));
        prop_assert_eq!(result, Ok(()));
        let (other_events, is_complete) = parse_with_sse_stream(&bytes);
        // The other parser rejects repeated fields and intervals that are not numbers; the standard ignores them.
        prop_assume!(is_complete);
        prop_assert_eq!(events, other_events);
    }

    #[test]
    fn damaged_streams_give_the_same_events_up_to_the_failure(
        mut bytes in event_stream(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        prop_assume!(!bytes.is_empty());
        for (position, byte) in damage {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        let (events, result) = parse(&[&bytes]);
        let (other_events, is_complete) = parse_with_sse_stream(&bytes);
        if is_complete {
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(events, other_events);
        } else {
            let both = events.len().min(other_events.len());
            prop_assert_eq!(&events[..both], &other_events[..both]);
            prop_assert!(events.len() >= other_events.len());
        }
    }

    #[test]
    fn chunk_boundaries_do_not_change_the_events(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), event_stream()],
        positions in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = parse(&[&bytes]);
        prop_assert_eq!(&parse(&split(&bytes, &positions)), &whole);
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&parse(&single), &whole);
    }
}

/// A parser that rescans incomplete lines would take minutes.
#[test]
fn long_line_in_single_bytes_takes_linear_time() {
    let bytes = [b"data: ".as_slice(), &vec![b'x'; 4 << 20], b"\n\n"].concat();
    let (events, result) = parse(&bytes.chunks(1).collect::<Vec<_>>());
    assert_eq!(result, Ok(()));
    assert_eq!(events[0].data.len(), 4 << 20);
}
