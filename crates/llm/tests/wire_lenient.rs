//! Tolerant decoding: what compatible servers send instead of the documented types, plain and streamed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wire_support;

use bakeoff_core::{Content, FinishReason, Response, Usage};
use bakeoff_llm::Wire::{self, Anthropic, Gemini, OpenAiChat, OpenAiResponses};
use serde_json::{Value, json};
use wire_support::*;

const BOM: &str = "\u{feff}";

fn decode(wire: Wire, body: &Value) -> Response {
    wire.decode(body.to_string().as_bytes()).unwrap_or_else(|error| panic!("{wire}: {error}"))
}

/// Decodes a stream of one event per value.
fn stream(wire: Wire, events: &[Value]) -> Response {
    let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    if wire == OpenAiChat {
        text.push_str("data: [DONE]\n\n");
    }
    match decode_chunks(wire, &[text.as_bytes()]) {
        Ok((_, response)) => response,
        Err(error) => panic!("{wire}: {error}"),
    }
}

/// Bodies with integer ids, counts as text and floats, and tool arguments in the unusual form.
fn loose_body(wire: Wire) -> Value {
    match wire {
        OpenAiChat => json!({
            "id": 17, "model": 4, "choices": [{"index": "0", "finish_reason": "tool_calls", "message": {
                "role": "assistant",
                "content": [{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}],
                "tool_calls": [{"id": 5, "index": 0.0, "function": {
                    "name": "weather", "arguments": {"city": "Paris"}}}],
            }}],
            "usage": {"prompt_tokens": "12", "completion_tokens": 3.0, "total_tokens": "15",
                "prompt_tokens_details": "none", "completion_tokens_details": []},
        }),
        OpenAiResponses => json!({
            "id": 17, "model": 4, "status": "completed", "output": [
                {"id": 1, "type": "message", "role": "assistant", "content": "Paris"},
                {"id": 2, "type": "function_call", "call_id": 5, "name": "weather",
                 "arguments": {"city": "Paris"}},
            ],
            "usage": {"input_tokens": "12", "output_tokens": 3.0, "input_tokens_details": "none",
                "output_tokens_details": 1},
        }),
        Anthropic => json!({
            "id": 17, "type": "message", "role": "assistant", "model": 4, "content": [
                {"type": "text", "text": "Paris"},
                {"type": "tool_use", "id": 5, "name": "weather", "input": "{\"city\": \"Paris\"}"},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": "12", "output_tokens": 3.0, "output_tokens_details": []},
        }),
        Gemini => json!({
            "responseId": 17, "modelVersion": 4, "candidates": [{"index": "0", "finishReason": "STOP",
                "content": {"role": "model", "parts": [
                    {"text": "Paris", "thought": "no"},
                    {"functionCall": {"id": 5, "name": "weather", "args": "{\"city\": \"Paris\"}"}},
                ]}}],
            "usageMetadata": {"promptTokenCount": "12", "candidatesTokenCount": 3.0},
        }),
    }
}

/// The same responses as streams.
fn loose_stream(wire: Wire) -> Vec<Value> {
    let body = loose_body(wire);
    match wire {
        OpenAiChat => {
            let message = &body["choices"][0]["message"];
            vec![
                json!({"id": 17, "model": 4, "choices": [{"index": 0.0, "delta": {"content": message["content"]}}]}),
                json!({"id": 17, "choices": [{"index": "0", "delta": {"tool_calls": message["tool_calls"]}}],
                    "usage": null}),
                json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
                json!({"choices": [], "usage": body["usage"]}),
            ]
        }
        OpenAiResponses => vec![
            json!({"type": "response.created", "response": {"id": 17}}),
            json!({"type": "response.output_item.added", "output_index": "1", "item": body["output"][1]}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1.0,
                "delta": {"city": "Paris"}}),
            json!({"type": "response.completed", "response": body}),
        ],
        Anthropic => vec![
            json!({"type": "message_start", "message": {"id": 17, "model": 4, "usage": body["usage"]}}),
            json!({"type": "content_block_start", "index": "0",
                "content_block": {"type": "text", "text": null}}),
            json!({"type": "content_block_delta", "index": 0.0,
                "delta": {"type": "text_delta", "text": "Paris"}}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": 5, "name": "weather", "input": null}}),
            json!({"type": "content_block_delta", "index": "1",
                "delta": {"type": "input_json_delta", "partial_json": {"city": "Paris"}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": "3"}}),
            json!({"type": "message_stop"}),
        ],
        Gemini => {
            let candidate = |part: &Value, reason: Value| json!([{"index": 0.0, "content": {"parts": [part]}, "finishReason": reason}]);
            let parts = &body["candidates"][0]["content"]["parts"];
            vec![
                json!({"responseId": 17, "modelVersion": 4, "candidates": candidate(&parts[0], json!(null))}),
                json!({"candidates": candidate(&parts[1], json!("STOP")), "usageMetadata": body["usageMetadata"]}),
            ]
        }
    }
}

#[test]
fn integer_ids_loose_counts_and_unusual_arguments_are_accepted() {
    let expected = Response {
        id: Some("17".into()),
        model: Some("4".into()),
        content: vec![Content::text("Paris"), call("5", "weather", json!({"city": "Paris"}))],
        finish: FinishReason::ToolCalls,
        usage: Usage { input: 12, output: 3, ..Usage::default() },
        extra: object(json!({})),
    };
    for wire in Wire::ALL {
        assert_eq!(decode(wire, &loose_body(wire)), expected, "{wire}");
        assert_eq!(stream(wire, &loose_stream(wire)), expected, "{wire}, streamed");
    }
}

#[test]
fn byte_order_mark_is_skipped() {
    for (wire, name) in [
        (OpenAiChat, "openai_chat/text"),
        (OpenAiResponses, "openai_responses/text"),
        (Anthropic, "anthropic/text"),
        (Gemini, "gemini/text"),
    ] {
        let body = fixture(&format!("{name}.json"));
        let marked = [BOM.as_bytes(), &body].concat();
        assert_eq!(wire.decode(&marked), wire.decode(&body), "{wire}");
        let events = fixture(&format!("{name}.sse"));
        let marked = [BOM.as_bytes(), &events].concat();
        let whole = decode_chunks(wire, &[&events]).unwrap();
        assert_eq!(decode_chunks(wire, &[&marked]).unwrap(), whole, "{wire}");
        for cut in 1..4 {
            let (left, right) = marked.split_at(cut);
            assert_eq!(decode_chunks(wire, &[left, right]).unwrap(), whole, "{wire}");
        }
    }
    let marked = format!("data: {BOM}{}\n\ndata: [DONE]\n\n", json!({"id": "x", "choices": []}));
    let (_, response) = decode_chunks(OpenAiChat, &[marked.as_bytes()]).unwrap();
    assert_eq!(response.id.as_deref(), Some("x"), "in the data of an event");
}

#[test]
fn absent_usage_content_and_finish_reason_are_accepted() {
    let missing = FinishReason::Other("missing".into());
    let bodies = [
        (
            OpenAiChat,
            json!({"choices": [{"message": {"content": null, "tool_calls": null}, "finish_reason": null}],
            "usage": null}),
            missing.clone(),
        ),
        (OpenAiChat, json!({"choices": [{"message": {}}], "usage": "unknown"}), missing.clone()),
        (
            OpenAiResponses,
            json!({"status": "completed", "output": null, "usage": null}),
            FinishReason::Stop,
        ),
        (
            OpenAiResponses,
            json!({"output": [{"type": "message", "content": null}]}),
            FinishReason::Stop,
        ),
        (
            Anthropic,
            json!({"type": "message", "content": null, "stop_reason": "end_turn", "usage": null}),
            FinishReason::Stop,
        ),
        (Anthropic, json!({"content": [], "stop_reason": null}), missing.clone()),
        (
            Gemini,
            json!({"candidates": [{"content": null}], "usageMetadata": null}),
            missing.clone(),
        ),
        (
            Gemini,
            json!({"candidates": [{"content": {"parts": null}, "finishReason": "STOP"}]}),
            FinishReason::Stop,
        ),
    ];
    for (wire, body, finish) in bodies {
        let response = decode(wire, &body);
        assert_eq!((response.content, response.finish), (vec![], finish), "{body}");
        assert_eq!(response.usage, Usage::default(), "{body}");
    }
    let streams = [
        (
            OpenAiChat,
            vec![
                json!({"choices": [{"delta": {"content": null}, "finish_reason": null}], "usage": null}),
            ],
            missing.clone(),
        ),
        (
            OpenAiChat,
            vec![json!({"choices": null}), json!({"choices": [{"delta": null}]})],
            missing.clone(),
        ),
        (
            OpenAiResponses,
            vec![json!({"type": "response.completed",
            "response": {"status": "completed", "output": null, "usage": null}})],
            FinishReason::Stop,
        ),
        (
            Anthropic,
            vec![
                json!({"type": "message_start", "message": null}),
                json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": null}),
                json!({"type": "message_stop"}),
            ],
            missing,
        ),
        (
            Gemini,
            vec![
                json!({"candidates": null, "usageMetadata": null}),
                json!({"candidates": [{"content": null, "finishReason": "STOP"}]}),
            ],
            FinishReason::Stop,
        ),
    ];
    for (wire, events, finish) in streams {
        let response = stream(wire, &events);
        assert_eq!((response.content, response.finish), (vec![], finish), "{events:?}");
        assert_eq!(response.usage, Usage::default(), "{events:?}");
    }
}

#[test]
fn unknown_content_is_kept_as_it_was_sent() {
    let part = json!({"type": "hologram", "depth": 3});
    let untyped = json!({"depth": 3});
    let bodies = [
        (
            OpenAiChat,
            json!({"choices": [{"message": {"content": [part, {"type": "text", "text": "Paris"}]},
            "finish_reason": "stop"}]}),
            &part,
        ),
        (
            OpenAiResponses,
            json!({"status": "completed", "output": [part,
            {"type": "message", "content": [{"type": "output_text", "text": "Paris"}]}]}),
            &part,
        ),
        (
            OpenAiResponses,
            json!({"status": "completed", "output": [untyped,
            {"type": "message", "content": [{"type": "output_text", "text": "Paris"}]}]}),
            &untyped,
        ),
        (
            Anthropic,
            json!({"content": [part, {"type": "text", "text": "Paris"}], "stop_reason": "end_turn"}),
            &part,
        ),
        (
            Anthropic,
            json!({"content": [untyped, {"type": "text", "text": "Paris"}], "stop_reason": "end_turn"}),
            &untyped,
        ),
        (
            Gemini,
            json!({"candidates": [{"content": {"parts": [untyped, {"text": "Paris"}]}, "finishReason": "STOP"}]}),
            &untyped,
        ),
    ];
    for (wire, body, unknown) in bodies {
        let response = decode(wire, &body);
        assert_eq!(response.text(), "Paris", "{wire}");
        assert!(response.content.contains(&opaque(unknown.clone())), "{wire}: {response:?}");
        assert_eq!(response.finish, FinishReason::Stop, "{wire}");
    }
    let streams = [
        (OpenAiChat, vec![json!({"choices": [{"delta": {"content": [part]}}]})]),
        (
            OpenAiResponses,
            vec![
                json!({"type": "response.hologram.delta", "delta": 7}),
                json!({"type": "response.output_item.done", "item": part}),
                json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
            ],
        ),
        (
            Anthropic,
            vec![
                json!({"type": "hologram", "index": 0}),
                json!({"type": "content_block_start", "index": 0, "content_block": part}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "depth_delta", "depth": 4}}),
                json!({"type": "message_stop"}),
            ],
        ),
    ];
    for (wire, events) in streams {
        assert_eq!(stream(wire, &events).content, [opaque(part.clone())], "{wire}");
    }
    let events =
        [json!({"candidates": [{"content": {"parts": [untyped]}, "finishReason": "STOP"}]})];
    assert_eq!(stream(Gemini, &events).content, [opaque(untyped)]);
}

#[test]
fn plain_text_content_of_a_message_is_accepted() {
    let body = json!({"content": "Paris", "stop_reason": "end_turn"});
    assert_eq!(decode(Anthropic, &body).text(), "Paris");
    let body = json!({"choices": [{"message": {"content": 42}, "finish_reason": "stop"}]});
    assert_eq!(decode(OpenAiChat, &body).text(), "42");
}

#[test]
fn block_without_start_event_is_accepted() {
    let delta = |index: u64, kind: &str, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {kind: text}});
    let response = stream(
        Anthropic,
        &[
            delta(0, "thinking", "Hm."),
            delta(0, "signature", "c2ln"),
            delta(1, "text", "Par"),
            delta(1, "text", "is"),
            delta(2, "partial_json", "{}"),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(response.content, [thought("Hm.", Some("c2ln")), Content::text("Paris")]);
}

/// Replaces every value of a body by values of other types.
fn variants(body: &Value) -> Vec<Value> {
    fn paths(value: &Value, path: &mut String, found: &mut Vec<String>) {
        found.push(path.clone());
        let length = path.len();
        let mut visit = |key: String, value: &Value| {
            path.push('/');
            path.push_str(&key);
            paths(value, path, found);
            path.truncate(length);
        };
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| visit(key.clone(), value))
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| visit(index.to_string(), item));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    paths(body, &mut String::new(), &mut found);
    let values = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!("x"),
        json!([]),
        json!([[1]]),
        json!({"a": {}}),
    ];
    let mut variants = Vec::new();
    for path in found {
        for value in &values {
            let mut variant = body.clone();
            *variant.pointer_mut(&path).unwrap() = value.clone();
            variants.push(variant);
        }
    }
    variants
}

#[test]
fn values_of_any_type_never_panic_and_minor_ones_are_tolerated() {
    for wire in Wire::ALL {
        let body = loose_body(wire);
        for variant in variants(&body) {
            let _ = wire.decode(variant.to_string().as_bytes());
        }
        for (at, event) in loose_stream(wire).iter().enumerate() {
            for variant in variants(event) {
                let mut events = loose_stream(wire);
                events[at] = variant;
                let text: String =
                    events.iter().map(|event| format!("data: {event}\n\n")).collect();
                let _ = decode_chunks(wire, &[text.as_bytes()]);
            }
        }
        // Ids, names and usage do not decide whether there is a response.
        let usage = if wire == Gemini { "usageMetadata" } else { "usage" };
        for key in ["id", "responseId", "model", "modelVersion", usage] {
            for value in [json!(null), json!(true), json!("x"), json!([1]), json!({"a": 1})] {
                let mut body = loose_body(wire);
                if body.get(key).is_some() {
                    body[key] = value;
                }
                assert_eq!(decode(wire, &body).text(), "Paris", "{wire}: {body}");
            }
        }
    }
}

#[test]
fn implausible_usage_is_unknown() {
    let replace = |value: &Value, count: &str| -> Value {
        serde_json::from_str(&value.to_string().replace("\"12\"", count)).unwrap()
    };
    for count in [
        "18446744073709551615",
        "18446744073709551614",
        "-1",
        "-1e300",
        "1e300",
        "\"-5\"",
        "2000000000",
    ] {
        for wire in Wire::ALL {
            let plain = decode(wire, &replace(&loose_body(wire), count));
            assert_eq!(plain.usage, Usage::default(), "{wire} {count}");
            assert_eq!(plain.text(), decode(wire, &loose_body(wire)).text(), "{wire} {count}");
            let events: Vec<Value> =
                loose_stream(wire).iter().map(|event| replace(event, count)).collect();
            assert_eq!(stream(wire, &events).usage, Usage::default(), "{wire} {count}");
        }
    }
    let cached = json!({"id": "a", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": -1}}});
    assert_eq!(decode(OpenAiChat, &cached).usage, Usage::default());
}
