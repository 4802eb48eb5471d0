//! Google's Gemini.
//!
//! Proofs of thinking stand here on parts of any kind. They are kept as a thought without text
//! before the part, and put back on the part when it is sent again.

mod decode;
mod encode;
mod parts;
mod stream;

pub(super) use decode::decode;
pub(super) use encode::{encode, path};
pub(super) use stream::Stream;

use super::body::Count;
use bakeoff_core::{FinishReason, Usage};
use serde::Deserialize;

/// How the ids start that Bakeoff makes up for calls, so that they are not sent to the provider.
const MADE_UP_ID: &str = "bakeoff-call-";

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
        // There is no reason of its own for calls.
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
