//! Messages answers as server-sent events.

use super::super::wire::{ResponseMeta, split_pieces};
use super::{block, stop_reason, usage};
use bakeoff_core::{Content, Response, Usage};
use serde_json::{Value, json};

/// Returns the events of an answer.
pub(super) fn events(response: &Response, meta: &ResponseMeta) -> Vec<String> {
    // The first event reports the prompt and the first output token.
    let initial = Usage { output: response.usage.output.min(1), ..response.usage };
    let message = json!({
        "id": format!("msg_{}", meta.id),
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(&initial),
    });
    let mut events = vec![event("message_start", json!({ "message": message }))];
    let blocks = response.content.iter().filter(|part| block(part).is_some());
    for (index, part) in blocks.enumerate() {
        let delta =
            |delta: Value| event("content_block_delta", json!({ "index": index, "delta": delta }));
        let mut deltas = Vec::new();
        let start = match part {
            Content::Text { text } => {
                let texts = split_pieces(text).into_iter();
                deltas.extend(
                    texts.map(|piece| delta(json!({ "type": "text_delta", "text": piece }))),
                );
                json!({ "type": "text", "text": "", "citations": null })
            }
            Content::Thinking { text, signature } => {
                let thoughts = split_pieces(text).into_iter();
                deltas
                    .extend(thoughts.map(|piece| {
                        delta(json!({ "type": "thinking_delta", "thinking": piece }))
                    }));
                let signature = signature.as_deref().unwrap_or_default();
                deltas.push(delta(json!({ "type": "signature_delta", "signature": signature })));
                json!({ "type": "thinking", "thinking": "", "signature": "" })
            }
            Content::ToolCall(call) => {
                let input = call.arguments.to_string();
                // The first piece is empty, as at the provider.
                for piece in std::iter::once("").chain(split_pieces(&input)) {
                    deltas
                        .push(delta(json!({ "type": "input_json_delta", "partial_json": piece })));
                }
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} })
            }
            Content::Image { .. } | Content::File { .. } | Content::Opaque { .. } => continue,
        };
        events
            .push(event("content_block_start", json!({ "index": index, "content_block": start })));
        if index == 0 {
            events.push(event("ping", json!({})));
        }
        events.append(&mut deltas);
        events.push(event("content_block_stop", json!({ "index": index })));
    }
    let delta = json!({ "stop_reason": stop_reason(&response.finish), "stop_sequence": null });
    events.push(event(
        "message_delta",
        json!({ "delta": delta, "usage": {
            "input_tokens": response.usage.input,
            "cache_creation_input_tokens": response.usage.cache_write,
            "cache_read_input_tokens": response.usage.cache_read,
            "output_tokens": response.usage.output,
        } }),
    ));
    events.push(event("message_stop", json!({})));
    events
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}
