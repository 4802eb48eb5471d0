//! Google Gemini.
//!
//! In this format parts of any kind can have a thought signature. A signature is decoded as thinking without
//! text before its part, and moved back to the part when that is sent again.

mod decode;
mod encode;
mod parts;
mod stream;

pub(super) use decode::decode;
pub(super) use encode::{encode, path};
pub(super) use stream::StreamAssembler;

use super::lenient::{Count, plausible};
use bakeoff_core::{FinishReason, Usage};
use serde::Deserialize;

/// Prefix of the ids that Bakeoff generates for tool calls; such ids are not sent to the provider.
const GENERATED_ID_PREFIX: &str = "bakeoff-call-";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UsageMetadata {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
}

impl UsageMetadata {
    fn usage(&self) -> Usage {
        let counts = [
            self.prompt_token_count,
            self.tool_use_prompt_token_count,
            self.cached_content_token_count,
            self.candidates_token_count,
            self.thoughts_token_count,
        ];
        plausible(&counts, || self.plausible_usage())
    }

    fn plausible_usage(&self) -> Usage {
        let prompt = self.prompt_token_count.0.saturating_add(self.tool_use_prompt_token_count.0);
        let cache_read = self.cached_content_token_count.0.min(prompt);
        let reasoning = self.thoughts_token_count.0;
        Usage {
            input: prompt - cache_read,
            output: self.candidates_token_count.0.saturating_add(reasoning),
            cache_read,
            cache_write: 0,
            reasoning,
        }
    }
}

fn finish(reason: &str, has_tool_calls: bool) -> FinishReason {
    match reason {
        // The format has no finish reason for tool calls.
        "STOP" if has_tool_calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}
