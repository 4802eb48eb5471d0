//! Parts of a response that have no place in it are kept in `extra`, at their paths in the body.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wire_support;

use bakeoff_core::{Content, Response};
use bakeoff_llm::Wire::{self, Anthropic, Gemini, OpenAiChat, OpenAiResponses};
use serde_json::{Value, json};
use wire_support::*;

fn decode(wire: Wire, body: &Value) -> Response {
    wire.decode(body.to_string().as_bytes()).unwrap()
}

fn stream(wire: Wire, events: &[Value]) -> Response {
    let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    if wire == OpenAiChat {
        text.push_str("data: [DONE]\n\n");
    }
    let (deltas, response) = decode_chunks(wire, &[text.as_bytes()]).unwrap();
    assert!(!format!("{deltas:?}").contains("Rome"), "deltas of further choices: {deltas:?}");
    response
}

fn token(token: &str, logprob: f64) -> Value {
    json!({"token": token, "logprob": logprob, "bytes": null, "top_logprobs": []})
}

#[test]
fn chat_keeps_logprobs_annotations_and_further_choices() {
    let annotation =
        json!({"type": "url_citation", "url_citation": {"url": "https://example.com"}});
    let rome = json!({"role": "assistant", "content": "Rome", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]});
    let body = json!({
        "id": "x", "model": "m", "object": "chat.completion",
        "choices": [
            {"index": 0, "finish_reason": "stop",
             "logprobs": {"content": [token("Par", -0.1), token("is", -0.2)], "refusal": null},
             "message": {"role": "assistant", "content": "Paris", "refusal": null,
                "annotations": [annotation], "audio": null}},
            {"index": 1, "finish_reason": "length", "message": rome},
        ],
    });
    let response = decode(OpenAiChat, &body);
    assert_eq!(response.content, [Content::text("Paris")]);
    let mut choices = json!([
        {"index": 0, "logprobs": {"content": [token("Par", -0.1), token("is", -0.2)], "refusal": null},
         "message": {"annotations": [annotation]}},
        {"index": 1, "finish_reason": "length", "message": rome},
    ]);
    assert_eq!(response.extra["choices"], choices);

    let chunk = |index: u64, delta: Value, logprobs: Value, reason: Value| {
        json!({"id": "x", "model": "m", "object": "chat.completion", "choices": [
            {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}]})
    };
    let none = || json!(null);
    let streamed = stream(
        OpenAiChat,
        &[
            chunk(0, json!({"role": "assistant", "content": "", "refusal": null}), none(), none()),
            chunk(
                0,
                json!({"content": "Par"}),
                json!({"content": [token("Par", -0.1)], "refusal": null}),
                none(),
            ),
            chunk(1, json!({"content": "Ro"}), none(), none()),
            chunk(
                0,
                json!({"content": "is"}),
                json!({"content": [token("is", -0.2)], "refusal": null}),
                none(),
            ),
            chunk(
                1,
                json!({"content": "me", "tool_calls": [{"index": 0, "id": "c1",
            "function": {"name": "weather", "arguments": "{}"}}]}),
                none(),
                none(),
            ),
            chunk(0, json!({"annotations": [annotation]}), none(), json!("stop")),
            chunk(1, json!({}), none(), json!("length")),
        ],
    );
    choices[0]["logprobs"].as_object_mut().unwrap().remove("refusal");
    let mut kept = streamed.extra["choices"].clone();
    kept[0]["logprobs"].as_object_mut().unwrap().remove("refusal");
    assert_eq!(kept, choices);
    assert_eq!((streamed.content, streamed.finish), (response.content, response.finish));
}

#[test]
fn stream_that_ends_within_a_further_choice_is_truncated() {
    let events = [
        json!({"choices": [{"index": 0, "delta": {"content": "Paris"}, "finish_reason": "stop"}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "Ro"}}]}),
    ];
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    assert!(decode_chunks(OpenAiChat, &[text.as_bytes()]).is_err());
}

#[test]
fn responses_keep_logprobs_and_annotations() {
    let annotation = json!({"type": "url_citation", "url": "https://example.com", "start_index": 0,
        "end_index": 5, "title": "Paris"});
    let body = json!({
        "id": "x", "model": "m", "status": "completed",
        "output": [
            {"id": "ws_1", "type": "web_search_call", "status": "completed"},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "So: ", "annotations": [], "logprobs": []},
                {"type": "output_text", "text": "Paris", "annotations": [annotation],
                 "logprobs": [token("Paris", -0.1)]},
                {"type": "hologram", "depth": 3},
            ]},
        ],
    });
    let expected = json!([{"index": 1, "content": [
        {"index": 1, "annotations": [annotation], "logprobs": [token("Paris", -0.1)]},
        {"type": "hologram", "depth": 3},
    ]}]);
    let response = decode(OpenAiResponses, &body);
    assert_eq!((response.text().as_str(), &response.extra["output"]), ("So: Paris", &expected));
    let streamed =
        stream(OpenAiResponses, &[json!({"type": "response.completed", "response": body})]);
    assert_eq!(streamed, response);
}

#[test]
fn anthropic_keeps_citations() {
    let citation =
        |text: &str| json!({"type": "char_location", "cited_text": text, "document_index": 0});
    let body = json!({
        "id": "x", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "text", "text": "It is "},
            {"type": "text", "text": "Paris", "citations": [citation("a"), citation("b")]},
        ],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    });
    let expected = json!({"content": [{"index": 1, "citations": [citation("a"), citation("b")]}]});
    let response = decode(Anthropic, &body);
    assert_eq!(response.text(), "It is Paris");
    assert_eq!(Value::Object(response.extra.clone()), expected);
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let streamed = stream(
        Anthropic,
        &[
            json!({"type": "message_start", "message": {"id": "x", "model": "m", "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            start(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "It is "})),
            start(1, json!({"type": "text", "text": "", "citations": []})),
            delta(1, json!({"type": "citations_delta", "citation": citation("a")})),
            delta(1, json!({"type": "text_delta", "text": "Paris"})),
            delta(1, json!({"type": "citations_delta", "citation": citation("b")})),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(streamed, response);
}

#[test]
fn gemini_keeps_grounding_logprobs_and_further_candidates() {
    let grounding = json!({"webSearchQueries": ["capital of France"],
        "groundingChunks": [{"web": {"uri": "https://example.com"}}]});
    let text = |text: &str| json!({"role": "model", "parts": [{"text": text}]});
    let chosen = |tokens: &[&str]| {
        let tokens: Vec<Value> = tokens.iter().map(|token| json!({"token": token})).collect();
        json!({"chosenCandidates": tokens})
    };
    let rome = json!({"index": 1, "finishReason": "STOP", "content": text("Rome")});
    let body = json!({
        "candidates": [
            {"index": 0, "finishReason": "STOP", "content": text("Paris"), "avgLogprobs": -0.25,
             "groundingMetadata": grounding, "logprobsResult": chosen(&["Par", "is"]), "safetyRatings": []},
            rome,
        ],
    });
    let response = decode(Gemini, &body);
    let expected = json!([
        {"index": 0, "avgLogprobs": -0.25, "groundingMetadata": grounding,
         "logprobsResult": chosen(&["Par", "is"])},
        rome,
    ]);
    assert_eq!((response.text().as_str(), &response.extra["candidates"]), ("Paris", &expected));
    let streamed = stream(
        Gemini,
        &[
            json!({"candidates": [{"index": 0, "content": text("Par"), "logprobsResult": chosen(&["Par"]),
            "groundingMetadata": {}}]}),
            json!({"candidates": [{"index": 1, "content": text("Rome")}]}),
            json!({"candidates": [{"index": 0, "content": text("is"), "logprobsResult": chosen(&["is"]),
            "avgLogprobs": -0.25, "groundingMetadata": grounding, "finishReason": "STOP"}]}),
            json!({"candidates": [{"index": 1, "finishReason": "STOP"}]}),
        ],
    );
    assert_eq!(streamed, response);
}

#[test]
fn ordinary_responses_have_no_choice_in_extra() {
    for (wire, name, member) in [
        (OpenAiChat, "openai_chat/text", "choices"),
        (OpenAiResponses, "openai_responses/text", "output"),
        (Anthropic, "anthropic/text", "content"),
        (Gemini, "gemini/text", "candidates"),
    ] {
        let response = wire.decode(&fixture(&format!("{name}.json"))).unwrap();
        assert!(!response.extra.contains_key(member), "{wire}: {:?}", response.extra);
        let (_, streamed) = decode_chunks(wire, &[&fixture(&format!("{name}.sse"))]).unwrap();
        assert!(!streamed.extra.contains_key(member), "{wire}: {:?}", streamed.extra);
    }
}
