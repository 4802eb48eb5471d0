//! The event parser against another one, `sse-stream`, which was written from the same rules.
//!
//! That crate gives raw blocks where the rules of WHATWG define events, so three things differ and
//! are levelled here: it gives blocks without data, which are no events; it keeps an empty event
//! name, which the rules take for none; and it fails on text that is not UTF-8 as soon as the line
//! ends and also in `retry`, which the rules ignore. After its failure there is nothing to compare.

#![allow(clippy::unwrap_used)]

use bakeoff_llm::sse::{SseError, SseEvent, SseParser};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use sse_stream::SseByteStream;
use std::convert::Infallible;

/// The events, and whether the stream was read to its end.
type Read = (Vec<SseEvent>, Result<(), SseError>);

fn ours(pieces: &[&[u8]]) -> Read {
    let (mut parser, mut events) = (SseParser::new(), Vec::new());
    let result = pieces.iter().try_for_each(|piece| parser.feed(piece, &mut events));
    (events, result)
}

/// The other parser's events and whether it reached the end.
fn theirs(bytes: &[u8]) -> (Vec<SseEvent>, bool) {
    let whole = stream::iter([Ok::<_, Infallible>(Bytes::copy_from_slice(bytes))]);
    let blocks = SseByteStream::new(whole).collect::<Vec<_>>().now_or_never().unwrap();
    let complete = blocks.iter().all(Result::is_ok);
    let events = blocks.into_iter().filter_map(|block| {
        let block = block.ok()?;
        Some(SseEvent {
            event: block.event.filter(|event| !event.is_empty()),
            data: block.data?,
            id: block.id,
            retry: block.retry,
        })
    });
    (events.collect(), complete)
}

fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<_> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    ends.sort_unstable();
    ends.push(bytes.len());
    let mut start = 0;
    let pieces = ends.into_iter().map(|end| {
        let piece = &bytes[start..end];
        start = end;
        piece
    });
    pieces.collect()
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
    let lines = prop::collection::vec((line(), end), 0..40);
    (any::<bool>(), lines).prop_map(|(mark, lines)| {
        let mark = if mark { "\u{feff}" } else { "" };
        let lines = lines.into_iter().map(|(line, end)| line + end);
        std::iter::once(mark.to_owned()).chain(lines).collect::<String>().into_bytes()
    })
}

proptest! {
    #[test]
    fn valid_streams_read_the_same_as_by_the_other_parser(
        bytes in event_stream(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let (events, result) = ours(&cut(&bytes, &places));
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!((events, true), theirs(&bytes));
    }

    #[test]
    fn damaged_streams_read_the_same_as_far_as_both_go(
        mut bytes in event_stream(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        prop_assume!(!bytes.is_empty());
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let (events, result) = ours(&[&bytes]);
        let (others, complete) = theirs(&bytes);
        if complete {
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(events, others);
        } else {
            let both = events.len().min(others.len());
            prop_assert_eq!(&events[..both], &others[..both]);
            prop_assert!(events.len() >= others.len());
        }
    }

    #[test]
    fn how_a_stream_is_cut_does_not_matter(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), event_stream()],
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = ours(&[&bytes]);
        prop_assert_eq!(&ours(&cut(&bytes, &places)), &whole);
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&ours(&single), &whole);
    }
}

/// Rescanning what has not ended would take minutes here.
#[test]
fn a_long_line_in_single_bytes_is_read_in_linear_time() {
    let bytes = [b"data: ".as_slice(), &vec![b'x'; 4 << 20], b"\n\n"].concat();
    let (events, result) = ours(&bytes.chunks(1).collect::<Vec<_>>());
    assert_eq!(result, Ok(()));
    assert_eq!(events[0].data.len(), 4 << 20);
}
