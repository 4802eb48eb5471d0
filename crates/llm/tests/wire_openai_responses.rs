//! OpenAI Responses, against recorded bodies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wire_support;

use bakeoff_core::{
    Content, ErrorKind, FinishReason, Message, OutputFormat, Request, Response, Thinking,
    ToolChoice, Usage,
};
use bakeoff_llm::{DecodeError, Delta, StreamError, Wire};
use serde_json::{Map, Value, json};
use std::time::Duration;
use wire_support::*;

const WIRE: Wire = Wire::OpenAiResponses;
const USAGE: Usage =
    Usage { input: 176, output: 80, cache_read: 1024, cache_write: 0, reasoning: 64 };

fn reasoning() -> Value {
    json!({
        "id": "rs_2",
        "type": "reasoning",
        "summary": [
            {"type": "summary_text", "text": "Thinking of France."},
            {"type": "summary_text", "text": "Found it."},
        ],
        "encrypted_content": "gAAAAABo",
    })
}

/// Extra fields: those that Bakeoff does not decode, without echoes of the request and nulls.
fn extra() -> Map<String, Value> {
    object(json!({
        "object": "response",
        "created_at": 1761562400,
        "background": false,
        "billing": {"payer": "developer"},
        "parallel_tool_calls": true,
        "reasoning": {"effort": "low", "summary": null},
        "store": false,
        "temperature": 1.0,
        "top_p": 1.0,
        "truncation": "disabled",
        "metadata": {},
    }))
}

#[test]
fn request_with_all_fields_is_encoded() {
    let assistant = vec![
        thought("Two cities.", None),
        opaque(json!({"id": "rs_0", "type": "reasoning", "summary": []})),
        opaque(
            json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB"}),
        ),
        opaque(json!({"executableCode": "of another format"})),
        Content::text("I will look."),
        call("call_1", "weather", json!({"city": "Köln"})),
        call("call_2", "weather", json!("{\"city\": ")),
    ];
    let request = full_request("gpt-5-mini", assistant, "call_1");
    let expected: Value =
        serde_json::from_slice(&fixture("openai_responses/request.json")).unwrap();
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn unset_fields_are_not_sent() {
    let request = Request {
        model: "gpt-4o".into(),
        messages: vec![Message::user("hi")],
        ..Request::default()
    };
    let input = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(encoded(WIRE, &request), json!({"model": "gpt-4o", "input": input, "store": false}));
}

#[test]
fn encrypted_reasoning_is_requested_only_from_reasoning_models() {
    for (model, thinking, is_requested) in [
        ("gpt-4o", None, false),
        ("gpt-5-chat-latest", None, false),
        ("gpt-5.1-chat-latest", None, false),
        ("gpt-image-1", None, false),
        ("omni-moderation", None, false),
        ("gpt-5", None, true),
        ("gpt-5.1-codex-mini", None, true),
        ("o3", None, true),
        ("ft:o4-mini-2025-04-16:team", None, true),
        ("codex-mini-latest", None, true),
        ("my-model", Some(Thinking::Effort("high".into())), true),
    ] {
        let request = Request { model: model.into(), thinking, ..Request::default() };
        assert_eq!(encoded(WIRE, &request).get("include").is_some(), is_requested, "{model}");
    }
}

#[test]
fn tool_choice_and_output_format_are_encoded() {
    for (choice, expected) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
    {
        let request = Request { tool_choice: Some(choice), ..Request::default() };
        assert_eq!(encoded(WIRE, &request)["tool_choice"], expected);
    }
    let request = Request { output: Some(OutputFormat::Json), ..Request::default() };
    assert_eq!(encoded(WIRE, &request)["text"], json!({"format": {"type": "json_object"}}));
}

#[test]
fn text_response_is_decoded() {
    let expected = Response {
        id: Some("resp_68ff".into()),
        model: Some("gpt-5-mini-2025-08-07".into()),
        content: vec![Content::text("Paris, où sinon? 🗼")],
        finish: FinishReason::Stop,
        usage: USAGE,
        extra: extra(),
    };
    assert_eq!(WIRE.decode(&fixture("openai_responses/text.json")), Ok(expected));
}

#[test]
fn tool_calls_are_decoded_and_invalid_json_is_kept() {
    let response = WIRE.decode(&fixture("openai_responses/tools.json")).unwrap();
    assert_eq!(
        response.content,
        [
            call("call_abc", "weather", json!({"city": "Paris"})),
            call("call_def", "weather", json!("{\"city\": Rome}")),
        ]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn reasoning_and_unknown_items_are_kept_and_sent_back() {
    let response = WIRE.decode(&fixture("openai_responses/thinking.json")).unwrap();
    let search = json!({
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "capital of France"},
    });
    assert_eq!(
        response.content,
        [
            thought("Thinking of France.\n\nFound it.", None),
            opaque(reasoning()),
            opaque(search.clone()),
            Content::text("Paris, où sinon? 🗼"),
        ]
    );
    let request = Request { messages: vec![response.into_message()], ..Request::default() };
    let message = json!({"role": "assistant", "content": "Paris, où sinon? 🗼"});
    assert_eq!(encoded(WIRE, &request)["input"], json!([reasoning(), search, message]));
}

#[test]
fn finish_reason_is_decoded() {
    let response = WIRE.decode(&fixture("openai_responses/incomplete.json")).unwrap();
    assert_eq!(response.finish, FinishReason::Length);
    let finish = |body: Value| WIRE.decode(body.to_string().as_bytes()).unwrap().finish;
    let incomplete = |reason: &str| json!({"output": [], "status": "incomplete", "incomplete_details": {"reason": reason}});
    assert_eq!(finish(incomplete("content_filter")), FinishReason::ContentFilter);
    assert_eq!(finish(incomplete("bored")), FinishReason::Other("bored".into()));
    let cancelled = json!({"output": [], "status": "cancelled"});
    assert_eq!(finish(cancelled), FinishReason::Other("cancelled".into()));
    assert_eq!(finish(json!({"output": []})), FinishReason::Stop);
}

#[test]
fn error_names_the_missing_field() {
    let cases: [(&[u8], &str); 4] = [
        (b"null", "expected an object"),
        (b"{}", "`output` is missing"),
        (br#"{"output": [{]}"#, "key must be a string"),
        (br#"{"output": "Paris"}"#, "invalid type"),
    ];
    for (body, problem) in cases {
        let error = WIRE.decode(body).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn error_object_with_success_status_is_an_error() {
    let Err(DecodeError::Provider(failure)) =
        WIRE.decode(&fixture("openai_responses/error_object.json"))
    else {
        panic!("not a provider error")
    };
    assert_eq!(failure.kind, ErrorKind::RateLimit);
    assert_eq!(failure.code.as_deref(), Some("rate_limit_exceeded"));
    assert_eq!(failure.retry_after, Some(Duration::from_millis(1200)));
}

#[test]
fn text_stream_is_decoded() {
    let (deltas, response) =
        decode_stream(WIRE, "openai_responses/text.sse", "event: response.completed");
    assert_eq!(deltas, ["Paris, o", "ù sinon? 🗼"].map(|text| Delta::Text(text.into())));
    let whole = WIRE.decode(&fixture("openai_responses/text.json")).unwrap();
    assert_eq!(response, whole);
}

#[test]
fn stream_with_thinking_and_tool_calls_is_decoded() {
    let (deltas, response) =
        decode_stream(WIRE, "openai_responses/tools.sse", "event: response.completed");
    let json = |json: &str| Delta::ToolCallArguments { index: 0, json: json.into() };
    assert_eq!(
        deltas,
        [
            Delta::Thinking("Thinking of France.".into()),
            Delta::ToolCallStart { index: 0, id: "call_abc".into(), name: "weather".into() },
            json("{\"city\":"),
            json("\"Paris\"}"),
        ]
    );
    assert_eq!(
        response.content,
        [
            thought("Thinking of France.\n\nFound it.", None),
            opaque(reasoning()),
            call("call_abc", "weather", json!({"city": "Paris"})),
        ]
    );
    assert_eq!((response.finish, response.usage), (FinishReason::ToolCalls, USAGE));
}

#[test]
fn final_event_without_output_keeps_earlier_items() {
    let (_, response) =
        decode_stream(WIRE, "openai_responses/sparse_end.sse", "event: response.completed");
    assert_eq!(response.text(), "Paris, où sinon? 🗼");
}

#[test]
fn error_event_in_the_stream_is_an_error() {
    for (name, kind) in [("failed", ErrorKind::Transient), ("error", ErrorKind::RateLimit)] {
        let bytes = fixture(&format!("openai_responses/{name}.sse"));
        let Err(StreamError::Provider(failure)) = decode_chunks(WIRE, &[&bytes]) else {
            panic!("{name}: not a provider error")
        };
        assert_eq!(failure.kind, kind, "{name}");
    }
}

#[test]
fn error_bodies_are_classified() {
    use ErrorKind::*;
    check_classification(
        WIRE,
        "openai_responses",
        &[
            ("rate_limit", 429, RateLimit),
            ("quota", 429, Quota),
            ("transient", 500, Transient),
            ("auth", 401, Auth),
            ("context_overflow", 400, ContextOverflow),
            ("content_filter", 400, ContentFilter),
            ("invalid_request", 404, InvalidRequest),
        ],
    );
}

#[test]
fn damaged_bodies_never_panic() {
    for name in ["text", "tools", "thinking", "incomplete"] {
        check_damaged_bodies(WIRE, &format!("openai_responses/{name}.json"));
    }
}

/// Assistant message of a response to a tool request, plain and streamed.
fn reasoning_turns() -> [Message; 2] {
    let whole: Value = json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5-mini",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA-1",
             "content": null, "status": null},
            {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1",
             "name": "weather", "arguments": "{\"city\":\"Paris\"}"},
            {"id": "rs_2", "type": "reasoning", "encrypted_content": "gAAAA-2",
             "summary": [{"type": "summary_text", "text": "And Rome."}]},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
             "phase": "commentary",
             "content": [{"type": "output_text", "text": "Two cities.", "annotations": []}]},
            {"id": "fc_2", "type": "function_call", "status": "completed", "call_id": "call_2",
             "name": "weather", "arguments": "{\"city\":\"Rome\"}"},
            {"id": "msg_2", "type": "message", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Wait.", "annotations": []}]},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14},
    });
    let plain = WIRE.decode(whole.to_string().as_bytes()).unwrap();
    // A server that sends the items only as they are completed; the content of an item that was just added
    // is not final.
    let mut stream = String::new();
    for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
        let added = json!({"type": item["type"], "id": item["id"], "call_id": item["call_id"],
            "name": item["name"], "encrypted_content": "incomplete"});
        for (kind, item) in [("added", &added), ("done", item)] {
            let kind = format!("response.output_item.{kind}");
            let data = json!({"type": kind, "output_index": index, "item": item});
            stream.push_str(&format!("event: {kind}\ndata: {data}\n\n"));
        }
    }
    let mut end = whole.clone();
    end["output"] = json!([]);
    let data = json!({"type": "response.completed", "response": end});
    stream.push_str(&format!("event: response.completed\ndata: {data}\n\n"));
    let (_, streamed) = decode_chunks(WIRE, &[stream.as_bytes()]).unwrap();
    assert_eq!(streamed, plain);
    [plain, streamed].map(Response::into_message)
}

#[test]
fn encrypted_reasoning_is_sent_back_before_its_tool_calls() {
    for assistant in reasoning_turns() {
        let result = |id: &str| Message::ToolResult {
            tool_call_id: id.into(),
            name: "weather".into(),
            content: vec![Content::text("12 °C")],
            is_error: false,
        };
        let messages = vec![Message::user("hi"), assistant, result("call_1"), result("call_2")];
        // The model's name does not show that it reasons; its earlier response does.
        let request = Request { model: "my-model".into(), messages, ..Request::default() };
        let body = encoded(WIRE, &request);
        assert_eq!(body["store"], false);
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        let call = |id: &str, city: &str| {
            let arguments = format!("{{\"city\":\"{city}\"}}");
            json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": arguments})
        };
        let output =
            |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "12 °C"});
        assert_eq!(
            body["input"],
            json!([
                {"role": "user", "content": "hi"},
                {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA-1"},
                call("call_1", "Paris"),
                {"id": "rs_2", "type": "reasoning", "encrypted_content": "gAAAA-2",
                 "summary": [{"type": "summary_text", "text": "And Rome."}]},
                {"role": "assistant", "phase": "commentary", "content": "Two cities."},
                call("call_2", "Rome"),
                {"role": "assistant", "content": "Wait."},
                output("call_1"),
                output("call_2"),
            ])
        );
    }
}

#[test]
fn included_fields_of_the_user_keep_encrypted_reasoning() {
    let include = |model: &str, fields: Value| {
        let extra = object(json!({"include": fields}));
        let request = Request { model: model.into(), extra, ..Request::default() };
        encoded(WIRE, &request)["include"].clone()
    };
    let (logprobs, reasoning) = ("message.output_text.logprobs", "reasoning.encrypted_content");
    assert_eq!(include("gpt-5", json!([logprobs])), json!([logprobs, reasoning]));
    assert_eq!(include("gpt-5", json!([reasoning])), json!([reasoning]));
    assert_eq!(include("gpt-4o", json!([logprobs])), json!([logprobs]));
    assert_eq!(include("gpt-5", json!(null)), json!(null));
}
