//! OpenAI Chat Completions, and compatible servers.

mod choice;
mod decode;
mod encode;
mod parts;
mod stream;

pub(super) use decode::decode;
pub(super) use encode::encode;
pub(super) use stream::StreamAssembler;

use super::lenient::{Count, Lenient, plausible};
use bakeoff_core::{FinishReason, Usage};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<Lenient<PromptDetails>>,
    completion_tokens_details: Option<Lenient<CompletionDetails>>,
    /// DeepSeek's field for cached tokens.
    prompt_cache_hit_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl ChatUsage {
    fn usage(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref().map(|details| &details.0);
        let of_completion = self.completion_tokens_details.as_ref().map(|details| &details.0);
        let counts = [
            self.prompt_tokens,
            self.completion_tokens,
            self.prompt_cache_hit_tokens,
            details.map_or(Count(0), |details| details.cached_tokens),
            details.map_or(Count(0), |details| details.cache_write_tokens),
            of_completion.map_or(Count(0), |details| details.reasoning_tokens),
        ];
        plausible(&counts, || self.plausible_usage())
    }

    fn plausible_usage(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref().map(|details| &details.0);
        let cache_read = details
            .map_or(0, |details| details.cached_tokens.0)
            .max(self.prompt_cache_hit_tokens.0)
            .min(self.prompt_tokens.0);
        let cache_write = details.map_or(0, |details| details.cache_write_tokens.0);
        let reasoning = self
            .completion_tokens_details
            .as_ref()
            .map_or(0, |details| details.0.reasoning_tokens.0);
        let mut output = self.completion_tokens.0;
        // xAI does not include thinking in the completion tokens; its total shows that.
        let separate_total = self.prompt_tokens.0.saturating_add(output).saturating_add(reasoning);
        if reasoning > 0 && self.total_tokens.0 == separate_total {
            output = output.saturating_add(reasoning);
        }
        Usage {
            input: self.prompt_tokens.0.saturating_sub(cache_read).saturating_sub(cache_write),
            output,
            cache_read,
            cache_write,
            reasoning,
        }
    }
}

fn finish(reason: &str, has_tool_calls: bool) -> FinishReason {
    match reason {
        // Some servers send `stop` with tool calls.
        "stop" if has_tool_calls => FinishReason::ToolCalls,
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Usage {
        serde_json::from_str::<ChatUsage>(json).unwrap().usage()
    }

    #[test]
    fn usage_counts_each_token_once() {
        assert_eq!(
            usage(
                r#"{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
                    "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 6},
                    "completion_tokens_details": {"reasoning_tokens": 12}}"#
            ),
            Usage { input: 30, output: 20, cache_read: 64, cache_write: 6, reasoning: 12 }
        );
        let deepseek = usage(r#"{"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}"#);
        assert_eq!((deepseek.input, deepseek.cache_read), (6, 4));
        let xai = usage(
            r#"{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22,
                "completion_tokens_details": {"reasoning_tokens": 7}}"#,
        );
        assert_eq!((xai.output, xai.reasoning), (12, 7));
        let nonsense =
            usage(r#"{"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}"#);
        assert_eq!((nonsense.input, nonsense.cache_read), (0, 1));
    }

    #[test]
    fn finish_reason_is_mapped() {
        assert_eq!(finish("stop", false), FinishReason::Stop);
        assert_eq!(finish("stop", true), FinishReason::ToolCalls);
        assert_eq!(finish("length", true), FinishReason::Length);
        assert_eq!(finish("content_filter", false), FinishReason::ContentFilter);
        assert_eq!(finish("eos", false), FinishReason::Other("eos".into()));
    }
}
