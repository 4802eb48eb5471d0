//! However a stream is cut, the same events come out.
//!
//! The first byte says how long the pieces are; the rest is the stream.
#![no_main]

use bakeoff_llm::sse::{SseError, SseEvent, SseParser};
use libfuzzer_sys::fuzz_target;

fn parse<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<SseEvent>, Result<(), SseError>) {
    // Short enough for the fuzzer to reach.
    let mut parser = SseParser::with_limit(256);
    let mut events = Vec::new();
    let result = pieces.into_iter().try_for_each(|piece| parser.feed(piece, &mut events));
    (events, result)
}

fuzz_target!(|data: &[u8]| {
    let Some((&length, stream)) = data.split_first() else { return };
    let whole = parse([stream]);
    assert_eq!(parse(stream.chunks(usize::from(length).max(1))), whole);
    for event in &whole.0 {
        assert!(event.data.len() <= 256);
        assert!(!event.data.contains('\r'));
    }
});
