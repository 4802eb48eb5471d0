//! Anthropic's Messages format.

mod read;
mod stream;

use super::wire::{ApiFormat, ParsedRequest, ResponseMeta};
use bakeoff_core::{Content, FinishReason, Response, Usage};
use serde_json::{Value, json};

/// Anthropic's Messages format.
pub(super) struct Anthropic;

impl ApiFormat for Anthropic {
    const REQUEST_ID_HEADER: &'static str = "request-id";

    fn parse(body: &[u8]) -> Result<ParsedRequest, String> {
        read::parse(body)
    }

    fn answer(response: &Response, meta: &ResponseMeta) -> Value {
        json!({
            "id": format!("msg_{}", meta.id),
            "type": "message",
            "role": "assistant",
            "model": response.model,
            "content": response.content.iter().filter_map(block).collect::<Vec<_>>(),
            "stop_reason": stop_reason(&response.finish),
            "stop_sequence": null,
            "usage": usage(&response.usage),
        })
    }

    fn events(response: &Response, meta: &ResponseMeta, _call: &ParsedRequest) -> Vec<String> {
        stream::events(response, meta)
    }

    fn error(status: u16, _code: &str, message: &str, request_id: &str) -> Value {
        let kind = match status {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({
            "type": "error",
            "error": { "type": kind, "message": message },
            "request_id": request_id,
        })
    }
}

/// Returns the content block of a part; `None` for empty texts and for parts that answers never contain.
fn block(part: &Content) -> Option<Value> {
    match part {
        Content::Text { text } if text.is_empty() => None,
        Content::Text { text } => Some(json!({ "type": "text", "text": text, "citations": null })),
        Content::Thinking { text, signature } => Some(json!({
            "type": "thinking",
            "thinking": text,
            "signature": signature.as_deref().unwrap_or_default(),
        })),
        Content::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": call.arguments,
        })),
        Content::Image { .. } | Content::File { .. } | Content::Opaque { .. } => None,
    }
}

fn stop_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Other(reason) => reason,
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}
