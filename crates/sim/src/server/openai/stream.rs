//! Chat Completions answers as server-sent events.

use super::super::wire::{ResponseMeta, split_pieces};
use super::{arguments, finish_reason, usage};
use bakeoff_core::{Content, Response};
use serde_json::{Value, json};

/// Returns the chunks of an answer and the end mark.
pub(super) fn events(response: &Response, meta: &ResponseMeta, include_usage: bool) -> Vec<String> {
    let event = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", meta.id),
            "object": "chat.completion.chunk",
            "created": meta.created,
            "model": response.model,
            "service_tier": "default",
            "system_fingerprint": "fp_sim",
            "choices": choices,
        });
        // With `include_usage` every chunk has the field; it is null until the last one.
        if include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        event(json!([choice]), Value::Null)
    };
    let delta = |delta: Value| choice(delta, Value::Null);

    let mut events = vec![delta(json!({ "role": "assistant", "content": "", "refusal": null }))];
    let mut calls = 0;
    for part in &response.content {
        match part {
            Content::Thinking { text, .. } => {
                let thoughts = split_pieces(text).into_iter();
                events.extend(thoughts.map(|piece| delta(json!({ "reasoning_content": piece }))));
            }
            Content::Text { text } => {
                let texts = split_pieces(text).into_iter();
                events.extend(texts.map(|piece| delta(json!({ "content": piece }))));
            }
            Content::ToolCall(call) => {
                let part = |function: Value| json!({ "tool_calls": [{ "index": calls, "function": function }] });
                let mut start = part(json!({ "name": call.name, "arguments": "" }));
                start["tool_calls"][0]["id"] = json!(call.id);
                start["tool_calls"][0]["type"] = json!("function");
                events.push(delta(start));
                for piece in split_pieces(&arguments(call)) {
                    events.push(delta(part(json!({ "arguments": piece }))));
                }
                calls += 1;
            }
            Content::Image { .. } | Content::File { .. } | Content::Opaque { .. } => {}
        }
    }
    events.push(choice(json!({}), json!(finish_reason(&response.finish))));
    if include_usage {
        events.push(event(json!([]), usage(&response.usage)));
    }
    events.push("data: [DONE]\n\n".into());
    events
}
