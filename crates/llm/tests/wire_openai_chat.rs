//! OpenAI Chat Completions, against recorded bodies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wire_support;

use bakeoff_core::{
    Content, ErrorKind, FinishReason, Message, OutputFormat, Request, Response, Thinking,
    ToolChoice, Usage,
};
use bakeoff_llm::{DecodeError, Delta, StreamError, TokenLimitField, Wire};
use serde_json::{Value, json};
use std::time::Duration;
use wire_support::*;

const WIRE: Wire = Wire::OpenAiChat;

#[test]
fn request_with_all_fields_is_encoded() {
    let assistant = vec![
        thought("Two cities.", None),
        Content::text("I will look."),
        call("call_1", "weather", json!({"city": "Köln"})),
        call("call_2", "weather", json!("{\"city\": ")),
    ];
    let request = full_request("gpt-4o-mini", assistant, "call_1");
    let expected: serde_json::Value =
        serde_json::from_slice(&fixture("openai_chat/request.json")).unwrap();
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn unset_fields_are_not_sent() {
    let request =
        Request { model: "m".into(), messages: vec![Message::user("hi")], ..Request::default() };
    let expected = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn token_limit_is_sent_in_the_field_of_the_provider() {
    let request = Request { model: "m".into(), max_tokens: Some(5), ..Request::default() };
    let cases = [
        (TokenLimitField::MaxTokens, "max_tokens"),
        (TokenLimitField::MaxCompletionTokens, "max_completion_tokens"),
    ];
    for (field, name) in cases {
        let body: Value = serde_json::from_slice(&WIRE.encode_with(&request, field)).unwrap();
        assert_eq!(body, json!({"model": "m", "messages": [], name: 5}));
    }
}

#[test]
fn tool_choice_output_format_and_effort_are_encoded() {
    let field = |request: Request, name: &str| encoded(WIRE, &request)[name].clone();
    for (choice, expected) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
    {
        let request = Request { tool_choice: Some(choice), ..Request::default() };
        assert_eq!(field(request, "tool_choice"), expected);
    }
    let request = Request { output: Some(OutputFormat::Json), ..Request::default() };
    assert_eq!(field(request, "response_format"), json!({"type": "json_object"}));
    let request = Request { thinking: Some(Thinking::Budget(0)), ..Request::default() };
    assert_eq!(field(request, "reasoning_effort"), "none");
}

#[test]
fn text_response_is_decoded() {
    let expected = Response {
        id: Some("chatcmpl-CVbFN8KqDdYlVZIVAMzVxx".into()),
        model: Some("gpt-4o-mini-2024-07-18".into()),
        content: vec![Content::text("The capital of France is Paris.")],
        finish: FinishReason::Stop,
        usage: Usage { input: 93, output: 8, cache_read: 1024, ..Usage::default() },
        extra: object(json!({
            "object": "chat.completion",
            "created": 1761562000,
            "service_tier": "default",
            "system_fingerprint": "fp_560af6e559",
        })),
    };
    assert_eq!(WIRE.decode(&fixture("openai_chat/text.json")), Ok(expected));
}

#[test]
fn tool_calls_are_decoded_and_invalid_json_is_kept() {
    let response = WIRE.decode(&fixture("openai_chat/tools.json")).unwrap();
    assert_eq!(
        response.content,
        [
            call("call_abc", "weather", json!({"city": "Paris"})),
            call("call_def", "weather", json!("{\"city\": Rome}")),
        ]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
    assert_eq!(response.usage, Usage { input: 82, output: 17, ..Usage::default() });
}

#[test]
fn thinking_is_decoded_and_its_details_are_sent_back() {
    let response = WIRE.decode(&fixture("openai_chat/thinking.json")).unwrap();
    let details = json!([{
        "type": "reasoning.text", "text": "Compare the tenths: 9 > 1.", "format": "unknown", "index": 0,
    }]);
    assert_eq!(
        response.content,
        [
            thought("Compare the tenths: 9 > 1.", None),
            opaque(json!({"reasoning_details": details})),
            Content::text("9.9 is larger."),
        ]
    );
    assert_eq!(response.usage, Usage { input: 15, output: 40, reasoning: 31, ..Usage::default() });
    let request = Request { messages: vec![response.into_message()], ..Request::default() };
    assert_eq!(
        encoded(WIRE, &request)["messages"],
        json!([{"role": "assistant", "content": "9.9 is larger.", "reasoning_details": details}])
    );
}

#[test]
fn deviations_of_compatible_servers_are_accepted() {
    let content = |json: serde_json::Value| {
        let body = json!({"choices": [{"message": json, "finish_reason": "stop"}]});
        let response = WIRE.decode(body.to_string().as_bytes()).unwrap();
        (response.content, response.finish)
    };
    let stop = FinishReason::Stop;
    assert_eq!(content(json!({"content": null})), (vec![], stop.clone()));
    assert_eq!(content(json!({})), (vec![], stop.clone()));
    assert_eq!(
        content(json!({"content": null, "refusal": "No."})),
        (vec![Content::text("No.")], stop.clone())
    );
    assert_eq!(
        content(json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "Yes."},
        ]})),
        (vec![thought("Hm.", None), Content::text("Yes.")], stop)
    );
    assert_eq!(
        content(
            json!({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"id": ""}]})
        ),
        (
            vec![call("call_0", "f", json!({"a": 1})), call("call_1", "", json!({}))],
            FinishReason::ToolCalls
        )
    );
    let sloppy = br#"{"choices": [{"message": {"content": "x"}}], "usage": null, "error": null}"#;
    let response = WIRE.decode(sloppy).unwrap();
    assert_eq!(response.finish, FinishReason::Other("missing".into()));
    assert_eq!(response.usage, Usage::default());
}

#[test]
fn error_names_the_missing_field() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "EOF"),
        (b"<html>", "expected value"),
        (b"[]", "expected an object"),
        (b"{}", "`choices` is missing"),
        (br#"{"choices": []}"#, "`choices[0]` is missing"),
        (br#"{"choices": [{"finish_reason": "stop"}]}"#, "`choices[0].message` is missing"),
    ];
    for (body, problem) in cases {
        let error = WIRE.decode(body).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    let wrong = WIRE.decode(br#"{"choices": [{"message": "Paris"}]}"#);
    assert!(matches!(wrong, Err(DecodeError::Malformed { .. })), "{wrong:?}");
    let long = format!("{{\"choices\": \"{}\"}}", "ü".repeat(900));
    let Err(DecodeError::Malformed { start, .. }) = WIRE.decode(long.as_bytes()) else {
        panic!("decoded")
    };
    assert_eq!(start.chars().count(), 200);
}

#[test]
fn error_object_with_success_status_is_an_error() {
    let Err(DecodeError::Provider(failure)) =
        WIRE.decode(&fixture("openai_chat/error_object.json"))
    else {
        panic!("not a provider error")
    };
    assert_eq!(failure.kind, ErrorKind::RateLimit);
    assert_eq!(failure.status, Some(429));
    assert_eq!(failure.retry_after, Some(Duration::from_millis(1200)));
    let choice =
        br#"{"choices": [{"error": {"code": 502, "message": "reset"}, "finish_reason": "error"}]}"#;
    let Err(DecodeError::Provider(failure)) = WIRE.decode(choice) else {
        panic!("not a provider error")
    };
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Transient, "reset"));
}

#[test]
fn text_stream_is_decoded() {
    let (deltas, response) =
        decode_stream(WIRE, "openai_chat/text.sse", r#""finish_reason":"stop""#);
    assert_eq!(deltas, ["Grüße", " aus", " 東京 🗼"].map(|text| Delta::Text(text.into())));
    let expected = Response {
        id: Some("chatcmpl-CVbHs".into()),
        model: Some("gpt-4o-mini-2024-07-18".into()),
        content: vec![Content::text("Grüße aus 東京 🗼")],
        finish: FinishReason::Stop,
        usage: Usage { input: 19, output: 6, ..Usage::default() },
        extra: object(json!({
            "object": "chat.completion.chunk",
            "created": 1761562300,
            "service_tier": "default",
            "system_fingerprint": "fp_560af6e559",
        })),
    };
    assert_eq!(response, expected);
}

#[test]
fn tool_call_stream_is_decoded() {
    let (deltas, response) =
        decode_stream(WIRE, "openai_chat/tools.sse", r#""finish_reason":"tool_calls""#);
    let start = |index, id: &str, name: &str| Delta::ToolCallStart {
        index,
        id: id.into(),
        name: name.into(),
    };
    let json = |index, json: &str| Delta::ToolCallArguments { index, json: json.into() };
    assert_eq!(
        deltas,
        [
            start(0, "call_1", "weather"),
            json(0, "{\"ci"),
            json(0, "ty\":\"Köln\"}"),
            start(1, "call_2", "time"),
            json(1, "{}"),
        ]
    );
    assert_eq!(
        response.content,
        [call("call_1", "weather", json!({"city": "Köln"})), call("call_2", "time", json!({}))]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn thinking_stream_is_decoded() {
    let (deltas, response) =
        decode_stream(WIRE, "openai_chat/thinking.sse", r#""finish_reason":"length""#);
    assert_eq!(
        deltas[..2],
        [Delta::Thinking("Compare".into()), Delta::Thinking(" tenths.".into())]
    );
    assert_eq!(
        response.content,
        [
            thought("Compare tenths.", None),
            opaque(json!({"reasoning_details": [{"type": "reasoning.text", "text": "Compare"}]})),
            Content::text("9.9"),
        ]
    );
    assert_eq!(response.finish, FinishReason::Length);
    assert_eq!(response.usage, Usage { input: 15, output: 9, reasoning: 5, ..Usage::default() });
}

#[test]
fn tool_calls_without_index_are_separated_by_id() {
    let chunk = |call: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n")
    };
    let text = [
        chunk(r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#),
        chunk(r#"{"id":"b","function":{"name":"g","arguments":"{\"x\""}}"#),
        chunk(r#"{"function":{"arguments":":1}"}}"#),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let (_, response) = decode_chunks(WIRE, &[text.as_bytes()]).unwrap();
    assert_eq!(response.content, [call("a", "f", json!({})), call("b", "g", json!({"x": 1}))]);
}

#[test]
fn error_event_in_the_stream_is_an_error() {
    let Err(StreamError::Provider(failure)) =
        decode_chunks(WIRE, &[&fixture("openai_chat/error.sse")])
    else {
        panic!("not a provider error")
    };
    assert_eq!((failure.kind, failure.status), (ErrorKind::Transient, Some(502)));
    let named =
        b"event: error\ndata: {\"message\": \"slow down\", \"code\": \"rate_limit_exceeded\"}\n\n";
    let Err(StreamError::Provider(failure)) = decode_chunks(WIRE, &[named]) else {
        panic!("not a provider error")
    };
    assert_eq!(failure.kind, ErrorKind::RateLimit);
}

#[test]
fn stream_error_persists() {
    let mut decoder = WIRE.stream();
    let error = decoder.feed(b"data: {\n\n").unwrap_err();
    assert!(matches!(error, StreamError::Malformed { .. }));
    assert_eq!(decoder.feed(&fixture("openai_chat/text.sse")), Err(error.clone()));
    assert_eq!(decoder.finish(), Err(error));
}

#[test]
fn error_bodies_are_classified() {
    use ErrorKind::*;
    check_classification(
        WIRE,
        "openai_chat",
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
    for name in ["text", "tools", "thinking"] {
        check_damaged_bodies(WIRE, &format!("openai_chat/{name}.json"));
    }
}
