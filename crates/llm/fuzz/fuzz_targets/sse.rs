//! Checks that chunk boundaries do not change the events of a stream.
//!
//! The first byte of the input is the chunk size; the rest is the stream.
#![no_main]

use bakeoff_llm::sse::{SseError, SseEvent, SseParser};
use libfuzzer_sys::fuzz_target;

/// Size limit of events, small enough for the fuzzer to reach.
const MAX_EVENT_BYTES: usize = 256;

fn parse<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<SseEvent>, Result<(), SseError>) {
    let mut parser = SseParser::with_limit(MAX_EVENT_BYTES);
    let mut events = Vec::new();
    let result = chunks.into_iter().try_for_each(|chunk| parser.feed(chunk, &mut events));
    (events, result)
}

fuzz_target!(|data: &[u8]| {
    let Some((&chunk_size, stream)) = data.split_first() else { return };
    let whole = parse([stream]);
    assert_eq!(parse(stream.chunks(usize::from(chunk_size).max(1))), whole);
    for event in &whole.0 {
        assert!(event.data.len() <= MAX_EVENT_BYTES);
        assert!(!event.data.contains('\r'));
    }
});
