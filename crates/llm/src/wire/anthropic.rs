//! Anthropic Messages.

mod decode;
mod encode;
mod stream;

pub(super) use decode::decode;
pub(super) use encode::encode;
pub(super) use stream::StreamAssembler;

use super::lenient::{Count, Lenient};
use bakeoff_core::{FinishReason, Usage};
use http::{HeaderName, HeaderValue};
use serde::Deserialize;

/// API version; the header is mandatory.
pub(super) const VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// Token usage. All fields are optional, because each event of a stream has only some of them.
#[derive(Debug, Default, Deserialize)]
struct MessageUsage {
    input_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    output_tokens_details: Option<Lenient<OutputDetails>>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<Count>,
}

impl MessageUsage {
    /// Copies the counts that are present. Counts in a stream are cumulative, so later ones replace earlier
    /// ones.
    fn update(&self, usage: &mut Usage) {
        let set = |field: &mut u64, count: Option<Count>| {
            if let Some(Count(tokens)) = count {
                *field = tokens;
            }
        };
        set(&mut usage.input, self.input_tokens);
        set(&mut usage.cache_write, self.cache_creation_input_tokens);
        set(&mut usage.cache_read, self.cache_read_input_tokens);
        set(&mut usage.output, self.output_tokens);
        let details = self.output_tokens_details.as_ref();
        set(&mut usage.reasoning, details.and_then(|details| details.0.thinking_tokens));
    }
}

fn finish(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}
