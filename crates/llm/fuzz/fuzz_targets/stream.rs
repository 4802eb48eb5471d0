//! No bytes make a decoder panic, and how they are cut does not change the answer.
//!
//! The first byte says how long the pieces are; the rest is the stream, or a whole body.
#![no_main]

use bakeoff_llm::{Delta, StreamError, Wire};
use libfuzzer_sys::fuzz_target;

/// The pieces joined per kind, and the answer as text.
fn read<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(Vec<Delta>, String), StreamError> {
    let mut decoder = wire.stream();
    let mut deltas = Vec::new();
    for piece in pieces {
        deltas.extend(decoder.feed(piece)?);
    }
    Ok((deltas, format!("{:?}", decoder.finish()?)))
}

fuzz_target!(|data: &[u8]| {
    let Some((&length, stream)) = data.split_first() else { return };
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini] {
        let whole = read(wire, [stream]);
        assert_eq!(read(wire, stream.chunks(usize::from(length).max(1))), whole);
        let _ = wire.decode(stream);
    }
});
