//! Anthropic Messages, against recorded bodies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wire_support;

use bakeoff_core::{
    Content, ErrorKind, FinishReason, Message, OutputFormat, Request, Response, Thinking,
    ToolChoice, Usage,
};
use bakeoff_llm::{DecodeError, Delta, StreamError, Wire};
use serde_json::{Value, json};
use wire_support::*;

const WIRE: Wire = Wire::Anthropic;
const USAGE: Usage =
    Usage { input: 12, output: 29, cache_read: 1500, cache_write: 300, reasoning: 0 };

#[test]
fn request_with_all_fields_is_encoded() {
    let assistant = vec![
        thought("Two cities.", Some("c2ln")),
        thought("thinking without a signature", None),
        opaque(json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
        opaque(json!({"reasoning_details": "of another format"})),
        Content::text(""),
        Content::text("I will look."),
        call("call_1", "weather", json!({"city": "Köln"})),
        call("call_2", "weather", json!("{\"city\": ")),
    ];
    let mut request = full_request("claude-sonnet-4-5", assistant, "call_1");
    request.thinking = Some(Thinking::Budget(2048));
    let expected: Value = serde_json::from_slice(&fixture("anthropic/request.json")).unwrap();
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn unset_fields_are_not_sent_except_a_token_limit() {
    let request =
        Request { model: "m".into(), messages: vec![Message::user("hi")], ..Request::default() };
    let content = json!([{"type": "text", "text": "hi"}]);
    assert_eq!(
        encoded(WIRE, &request),
        json!({"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": content}]})
    );
}

#[test]
fn token_limit_exceeds_the_thinking_budget() {
    let limits = |max_tokens, budget| {
        let thinking = Some(Thinking::Budget(budget));
        let body = encoded(WIRE, &Request { max_tokens, thinking, ..Request::default() });
        (body["max_tokens"].as_u64().unwrap(), body["thinking"].clone())
    };
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(limits(None, 1024), (4096, enabled(1024)));
    assert_eq!(limits(None, 4096), (8192, enabled(4096)));
    assert_eq!(limits(Some(2000), 1024), (2000, enabled(1024)));
    assert_eq!(limits(Some(1024), 1024), (2048, enabled(1024)));
    assert_eq!(limits(Some(100), 0), (100, json!({"type": "disabled"})));
    assert_eq!(limits(Some(u64::MAX), u64::MAX).0, u64::MAX);
}

#[test]
fn effort_selects_adaptive_thinking() {
    let request = Request {
        thinking: Some(Thinking::Effort("medium".into())),
        output: Some(OutputFormat::Json),
        ..Request::default()
    };
    let body = encoded(WIRE, &request);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(body["output_config"], json!({"effort": "medium"}));
}

#[test]
fn tool_choice_and_several_system_messages_are_encoded() {
    for (choice, expected) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "any"), (ToolChoice::None, "none")]
    {
        let request = Request { tool_choice: Some(choice), ..Request::default() };
        assert_eq!(encoded(WIRE, &request)["tool_choice"], json!({"type": expected}));
    }
    let request = Request {
        messages: vec![Message::system("a"), Message::user("hi"), Message::system("b")],
        ..Request::default()
    };
    let body = encoded(WIRE, &request);
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(body["system"], json!([text("a"), text("b")]));
    assert_eq!(body["messages"], json!([{"role": "user", "content": [text("hi")]}]));
}

#[test]
fn text_response_is_decoded() {
    let expected = Response {
        id: Some("msg_01Aq9w938a90dw8q".into()),
        model: Some("claude-sonnet-4-5-20250929".into()),
        content: vec![Content::text("The capital of France is Paris.")],
        finish: FinishReason::Stop,
        usage: USAGE,
        extra: object(json!({})),
    };
    assert_eq!(WIRE.decode(&fixture("anthropic/text.json")), Ok(expected));
}

#[test]
fn tool_calls_are_decoded() {
    let response = WIRE.decode(&fixture("anthropic/tools.json")).unwrap();
    assert_eq!(
        response.content,
        [Content::text("I will look."), call("toolu_01", "weather", json!({"city": "Paris"}))]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn thinking_is_kept_and_sent_back() {
    let response = WIRE.decode(&fixture("anthropic/thinking.json")).unwrap();
    let redacted = json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"});
    assert_eq!(
        response.content,
        [
            thought("9 > 1.", Some("EqQBCgIYAhIM")),
            opaque(redacted.clone()),
            Content::text("9.9 is larger."),
        ]
    );
    assert_eq!(response.finish, FinishReason::Stop);
    assert_eq!(response.extra, object(json!({"stop_sequence": "END"})));
    let request = Request { messages: vec![response.into_message()], ..Request::default() };
    let thinking = json!({"type": "thinking", "thinking": "9 > 1.", "signature": "EqQBCgIYAhIM"});
    assert_eq!(
        encoded(WIRE, &request)["messages"][0]["content"],
        json!([thinking, redacted, {"type": "text", "text": "9.9 is larger."}])
    );
}

#[test]
fn finish_reason_is_decoded() {
    let refusal = WIRE.decode(&fixture("anthropic/refusal.json")).unwrap();
    assert_eq!((refusal.content, refusal.finish), (vec![], FinishReason::ContentFilter));
    let finish = |reason: Value| {
        let body = json!({"content": [], "stop_reason": reason}).to_string();
        WIRE.decode(body.as_bytes()).unwrap().finish
    };
    assert_eq!(finish(json!("max_tokens")), FinishReason::Length);
    assert_eq!(finish(json!("model_context_window_exceeded")), FinishReason::Length);
    assert_eq!(finish(json!("pause_turn")), FinishReason::Other("pause_turn".into()));
    assert_eq!(finish(json!(null)), FinishReason::Other("missing".into()));
}

#[test]
fn error_names_the_missing_field() {
    let cases: [(&[u8], &str); 4] = [
        (b"\"no\"", "expected an object"),
        (b"{}", "no list of blocks in `content`"),
        (br#"{"content": [{]}"#, "key must be a string"),
        (br#"{"content": "text"}"#, "no list of blocks in `content`"),
    ];
    for (body, problem) in cases {
        let error = WIRE.decode(body).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn error_object_with_success_status_is_an_error() {
    let Err(DecodeError::Provider(failure)) = WIRE.decode(&fixture("anthropic/error_object.json"))
    else {
        panic!("not a provider error")
    };
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Transient, "Overloaded"));
}

#[test]
fn text_stream_is_decoded() {
    let (deltas, response) = decode_stream(WIRE, "anthropic/text.sse", "event: message_stop");
    assert_eq!(deltas, ["Grüße", " aus 東京 🗼"].map(|text| Delta::Text(text.into())));
    let expected = Response {
        id: Some("msg_01Aq9w938a90dw8q".into()),
        model: Some("claude-sonnet-4-5-20250929".into()),
        content: vec![Content::text("Grüße aus 東京 🗼")],
        finish: FinishReason::Stop,
        usage: Usage { output: 15, ..USAGE },
        extra: object(json!({})),
    };
    assert_eq!(response, expected);
}

#[test]
fn stream_with_thinking_and_tool_calls_is_decoded() {
    let (deltas, response) = decode_stream(WIRE, "anthropic/tools.sse", "event: message_stop");
    let start = |index, id: &str, name: &str| Delta::ToolCallStart {
        index,
        id: id.into(),
        name: name.into(),
    };
    let json = |json: &str| Delta::ToolCallArguments { index: 0, json: json.into() };
    assert_eq!(
        deltas,
        [
            Delta::Thinking("Two ".into()),
            Delta::Thinking("calls.".into()),
            start(0, "toolu_01", "weather"),
            json("{\"city\": \"Kö"),
            json("ln\"}"),
            start(1, "toolu_02", "time"),
        ]
    );
    let search = json!({
        "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"},
    });
    assert_eq!(
        response.content,
        [
            thought("Two calls.", Some("EqQBCgIYAhIM")),
            opaque(json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
            call("toolu_01", "weather", json!({"city": "Köln"})),
            call("toolu_02", "time", json!({})),
            opaque(search),
        ]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
    assert_eq!(response.usage, Usage { output: 89, ..USAGE });
}

#[test]
fn error_event_in_the_stream_is_an_error() {
    let Err(StreamError::Provider(failure)) =
        decode_chunks(WIRE, &[&fixture("anthropic/error.sse")])
    else {
        panic!("not a provider error")
    };
    assert_eq!(failure.kind, ErrorKind::Transient);
    assert_eq!(failure.code.as_deref(), Some("overloaded_error"));
}

#[test]
fn error_bodies_are_classified() {
    use ErrorKind::*;
    check_classification(
        WIRE,
        "anthropic",
        &[
            ("rate_limit", 429, RateLimit),
            ("quota", 400, Quota),
            ("transient", 529, Transient),
            ("auth", 401, Auth),
            ("context_overflow", 400, ContextOverflow),
            ("content_filter", 400, ContentFilter),
            ("invalid_request", 404, InvalidRequest),
        ],
    );
}

#[test]
fn damaged_bodies_never_panic() {
    for name in ["text", "tools", "thinking"] {
        check_damaged_bodies(WIRE, &format!("anthropic/{name}.json"));
    }
}
