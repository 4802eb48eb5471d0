//! OpenAI's Chat Completions format.

mod read;
mod stream;

use super::wire::{ApiFormat, ParsedRequest, ResponseMeta};
use bakeoff_core::{Content, FinishReason, Response, ToolCall, Usage};
use serde_json::{Value, json};

/// OpenAI's Chat Completions format.
pub(super) struct OpenAi;

impl ApiFormat for OpenAi {
    const REQUEST_ID_HEADER: &'static str = "x-request-id";

    fn parse(body: &[u8]) -> Result<ParsedRequest, String> {
        read::parse(body)
    }

    fn answer(response: &Response, meta: &ResponseMeta) -> Value {
        let calls: Vec<Value> = response.tool_calls().map(tool_call).collect();
        let text = response.text();
        let mut message = json!({
            "role": "assistant",
            // A message that only calls tools has no content.
            "content": if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) },
            "refusal": null,
            "annotations": [],
        });
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        if let Some(thinking) = thinking(response) {
            message["reasoning_content"] = json!(thinking);
        }
        json!({
            "id": format!("chatcmpl-{}", meta.id),
            "object": "chat.completion",
            "created": meta.created,
            "model": response.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": finish_reason(&response.finish),
            }],
            "usage": usage(&response.usage),
            "service_tier": "default",
            "system_fingerprint": "fp_sim",
        })
    }

    fn events(response: &Response, meta: &ResponseMeta, call: &ParsedRequest) -> Vec<String> {
        stream::events(response, meta, call.include_usage)
    }

    fn error(status: u16, code: &str, message: &str, _request_id: &str) -> Value {
        let kind = match (status, code) {
            (429, "insufficient_quota") => "insufficient_quota",
            (429, _) if message.contains("tokens") => "tokens",
            (429, _) => "requests",
            (500.., _) => "server_error",
            _ => "invalid_request_error",
        };
        json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
    }
}

fn tool_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments(call) },
    })
}

/// Returns the arguments as text; arguments that are not JSON are already text.
fn arguments(call: &ToolCall) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        arguments => arguments.to_string(),
    }
}

/// Returns the thinking, sent in the field that servers of open models use; OpenAI's own service has
/// none.
fn thinking(response: &Response) -> Option<&str> {
    response.content.iter().find_map(|part| match part {
        Content::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

fn finish_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Other(reason) => reason,
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cache_read, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}
