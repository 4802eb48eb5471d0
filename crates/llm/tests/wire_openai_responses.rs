//! OpenAI's Responses, against bodies as they come over the network.

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

/// The fields that are neither Bakeoff's nor long echoes of the request nor null.
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
fn encodes_everything() {
    let said = vec![
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
    let request = full_request("gpt-5-mini", said, "call_1");
    let expected: Value =
        serde_json::from_slice(&fixture("openai_responses/request.json")).unwrap();
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn sends_only_what_was_asked() {
    let request = Request {
        model: "gpt-4o".into(),
        messages: vec![Message::user("hi")],
        ..Request::default()
    };
    let input = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(encoded(WIRE, &request), json!({"model": "gpt-4o", "input": input, "store": false}));
}

#[test]
fn only_models_that_reason_are_asked_for_their_reasoning() {
    for (model, thinking, asked) in [
        ("gpt-4o", None, false),
        ("gpt-5-chat-latest", None, false),
        ("gpt-5", None, true),
        ("o3", None, true),
        ("my-model", Some(Thinking::Effort("high".into())), true),
    ] {
        let request = Request { model: model.into(), thinking, ..Request::default() };
        assert_eq!(encoded(WIRE, &request).get("include").is_some(), asked, "{model}");
    }
}

#[test]
fn choices_and_formats() {
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
fn decodes_text() {
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
fn decodes_tool_calls_and_keeps_what_is_not_json() {
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
fn reasoning_and_unknown_items_are_kept_and_travel_back() {
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
    let said = json!({
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Paris, où sinon? 🗼"}],
    });
    assert_eq!(encoded(WIRE, &request)["input"], json!([reasoning(), search, said]));
}

#[test]
fn why_it_stopped() {
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
fn what_is_missing_is_named() {
    let cases: [(&[u8], &str); 4] = [
        (b"null", "expected an object"),
        (b"{}", "`output` is missing"),
        (br#"{"output": [{}]}"#, "missing field `type`"),
        (br#"{"output": [{"type": 1}]}"#, "invalid type"),
    ];
    for (body, problem) in cases {
        let error = WIRE.decode(body).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn an_error_sent_as_an_answer_is_an_error() {
    let Err(DecodeError::Provider(failure)) =
        WIRE.decode(&fixture("openai_responses/error_in_answer.json"))
    else {
        panic!("not a provider's error")
    };
    assert_eq!(failure.kind, ErrorKind::RateLimit);
    assert_eq!(failure.code.as_deref(), Some("rate_limit_exceeded"));
    assert_eq!(failure.retry_after, Some(Duration::from_millis(1200)));
}

#[test]
fn streams_text() {
    let (deltas, response) = stream(WIRE, "openai_responses/text.sse", "event: response.completed");
    assert_eq!(deltas, ["Paris, o", "ù sinon? 🗼"].map(|piece| Delta::Text(piece.into())));
    let whole = WIRE.decode(&fixture("openai_responses/text.json")).unwrap();
    assert_eq!(response, whole);
}

#[test]
fn streams_thinking_and_tool_calls() {
    let (deltas, response) =
        stream(WIRE, "openai_responses/tools.sse", "event: response.completed");
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
fn an_end_that_leaves_the_output_out_does_not_lose_it() {
    let (_, response) =
        stream(WIRE, "openai_responses/sparse_end.sse", "event: response.completed");
    assert_eq!(response.text(), "Paris, où sinon? 🗼");
}

#[test]
fn an_error_in_the_stream_is_an_error() {
    for (name, kind) in [("failed", ErrorKind::Transient), ("error", ErrorKind::RateLimit)] {
        let bytes = fixture(&format!("openai_responses/{name}.sse"));
        let Err(StreamError::Provider(failure)) = stream_in(WIRE, &[&bytes]) else {
            panic!("{name}: not a provider's error")
        };
        assert_eq!(failure.kind, kind, "{name}");
    }
}

#[test]
fn errors_are_classified() {
    use ErrorKind::*;
    classified(
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
fn damage_never_panics() {
    for name in ["text", "tools", "thinking", "incomplete"] {
        survives_damage(WIRE, &format!("openai_responses/{name}.json"));
    }
}
