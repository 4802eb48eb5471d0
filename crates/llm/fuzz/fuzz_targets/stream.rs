//! Checks that no input makes a decoder panic, and that chunk boundaries do not change the response.
//!
//! The first byte of the input is the chunk size; the rest is the stream, or a complete body.
#![no_main]

use bakeoff_llm::{Delta, StreamError, Wire};
use libfuzzer_sys::fuzz_target;

/// Returns the deltas, and the response as text.
fn decode<'a>(
    wire: Wire,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(Vec<Delta>, String), StreamError> {
    let mut decoder = wire.stream();
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(decoder.feed(chunk)?);
    }
    Ok((deltas, format!("{:?}", decoder.finish()?)))
}

fuzz_target!(|data: &[u8]| {
    let Some((&chunk_size, stream)) = data.split_first() else { return };
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini] {
        let whole = decode(wire, [stream]);
        assert_eq!(decode(wire, stream.chunks(usize::from(chunk_size).max(1))), whole);
        let _ = wire.decode(stream);
    }
});
