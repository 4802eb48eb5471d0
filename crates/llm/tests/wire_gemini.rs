//! Google Gemini, against recorded bodies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wire_support;

use bakeoff_core::{
    Content, ErrorKind, FinishReason, ImageSource, Message, OutputFormat, Request, Response,
    Thinking, ToolChoice, Usage,
};
use bakeoff_llm::{DecodeError, Delta, StreamError, Wire};
use serde_json::{Value, json};
use wire_support::*;

const WIRE: Wire = Wire::Gemini;
const USAGE: Usage =
    Usage { input: 30, output: 58, cache_read: 1000, cache_write: 0, reasoning: 50 };

#[test]
fn request_with_all_fields_is_encoded() {
    let assistant = vec![
        thought("Two cities.", None),
        Content::text("I will look."),
        thought("", Some("c2ln")),
        call("bakeoff-call-x-0", "weather", json!({"city": "Köln"})),
        call("call_2", "weather", json!("{\"city\": ")),
        opaque(json!({"type": "redacted_thinking", "data": "of another format"})),
        opaque(json!({"executableCode": {"language": "PYTHON", "code": "1"}})),
    ];
    let mut request = full_request("gemini-3-flash", assistant, "bakeoff-call-x-0");
    request.extra = object(json!({"safetySettings": [], "generationConfig": {"topK": 40}}));
    let expected: Value = serde_json::from_slice(&fixture("gemini/request.json")).unwrap();
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn unset_fields_are_not_sent() {
    let request =
        Request { model: "m".into(), messages: vec![Message::user("hi")], ..Request::default() };
    let expected = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    assert_eq!(encoded(WIRE, &request), expected);
}

#[test]
fn thinking_config_depends_on_the_model() {
    let config = |model: &str, thinking: Thinking| {
        let request =
            Request { model: model.into(), thinking: Some(thinking), ..Request::default() };
        encoded(WIRE, &request)["generationConfig"]["thinkingConfig"].clone()
    };
    let effort = |effort: &str| Thinking::Effort(effort.into());
    let budget = |tokens: u64| json!({"thinkingBudget": tokens, "includeThoughts": true});
    assert_eq!(
        config("gemini-3-pro", effort("high")),
        json!({"thinkingLevel": "high", "includeThoughts": true})
    );
    assert_eq!(config("gemini-2.5-flash", effort("low")), budget(1024));
    assert_eq!(config("models/gemini-2.5-pro", effort("medium")), budget(8192));
    assert_eq!(config("gemini-2.5-pro", effort("high")), budget(24576));
    assert_eq!(config("gemini-2.5-flash", effort("none")), json!({"thinkingBudget": 0}));
    assert_eq!(config("gemini-3-pro", Thinking::Budget(99)), budget(99));
    assert_eq!(config("gemini-2.5-flash", Thinking::Budget(0)), json!({"thinkingBudget": 0}));
}

#[test]
fn tool_choice_and_output_format_are_encoded() {
    for (choice, mode) in
        [(ToolChoice::Auto, "AUTO"), (ToolChoice::Required, "ANY"), (ToolChoice::None, "NONE")]
    {
        let request = Request { tool_choice: Some(choice), ..Request::default() };
        let expected = json!({"functionCallingConfig": {"mode": mode}});
        assert_eq!(encoded(WIRE, &request)["toolConfig"], expected);
    }
    let request = Request { output: Some(OutputFormat::Json), ..Request::default() };
    assert_eq!(
        encoded(WIRE, &request)["generationConfig"],
        json!({"responseMimeType": "application/json"})
    );
}

#[test]
fn text_response_is_decoded() {
    let expected = Response {
        id: Some("mZ0aaL".into()),
        model: Some("gemini-3-flash".into()),
        content: vec![Content::text("The capital of France is Paris.")],
        finish: FinishReason::Stop,
        usage: USAGE,
        extra: object(json!({"createTime": "2026-01-01T00:00:00Z"})),
    };
    assert_eq!(WIRE.decode(&fixture("gemini/text.json")), Ok(expected));
}

#[test]
fn tool_calls_get_generated_ids_and_signatures_are_sent_back() {
    let response = WIRE.decode(&fixture("gemini/tools.json")).unwrap();
    assert_eq!(
        response.content,
        [
            thought("", Some("CpQB")),
            call("bakeoff-call-mZ0aaL-0", "weather", json!({"city": "Paris"})),
            call("bakeoff-call-mZ0aaL-1", "weather", json!({"city": "Rome"})),
            call("fc-9", "time", json!({})),
        ]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let request = Request { messages: vec![response.into_message()], ..Request::default() };
    assert_eq!(
        encoded(WIRE, &request)["contents"][0]["parts"],
        json!([
            {"functionCall": {"name": "weather", "args": {"city": "Paris"}}, "thoughtSignature": "CpQB"},
            {"functionCall": {"name": "weather", "args": {"city": "Rome"}}},
            {"functionCall": {"id": "fc-9", "name": "time", "args": {}}},
        ])
    );
}

#[test]
fn thinking_images_and_unknown_parts_are_decoded() {
    let response = WIRE.decode(&fixture("gemini/thinking.json")).unwrap();
    let source = ImageSource::Base64 { media_type: "image/png".into(), data: "iVBOR".into() };
    assert_eq!(
        response.content,
        [
            thought("Compare tenths.", None),
            thought("", Some("CpQB")),
            Content::text("9.9 is larger."),
            opaque(json!({"executableCode": {"language": "PYTHON", "code": "9.9 > 9.11"}})),
            Content::Image { source },
        ]
    );
    assert_eq!(response.finish, FinishReason::Length);
}

#[test]
fn blocked_response_is_filtered_and_blocked_prompt_is_an_error() {
    let safety = WIRE.decode(&fixture("gemini/safety.json")).unwrap();
    assert_eq!((safety.content, safety.finish), (vec![], FinishReason::ContentFilter));
    assert_eq!(safety.usage, Usage { input: 9, ..Usage::default() });
    let Err(DecodeError::Provider(failure)) = WIRE.decode(&fixture("gemini/blocked.json")) else {
        panic!("not a provider error")
    };
    assert_eq!(failure.kind, ErrorKind::ContentFilter);
    assert_eq!(failure.message, "prompt blocked: PROHIBITED_CONTENT");
    let event =
        [b"data: ".as_slice(), br#"{"promptFeedback":{"blockReason":"OTHER"}}"#, b"\n\n"].concat();
    assert!(matches!(decode_chunks(WIRE, &[&event]), Err(StreamError::Provider(_))));
}

#[test]
fn error_names_the_missing_field() {
    let cases: [(&[u8], &str); 4] = [
        (b"5", "expected an object"),
        (b"{}", "`candidates` is missing"),
        (br#"{"candidates": []}"#, "`candidates[0]` is missing"),
        (br#"{"candidates": [{"content": {"parts": [7]}}]}"#, "invalid type"),
    ];
    for (body, problem) in cases {
        let error = WIRE.decode(body).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    let reason = WIRE.decode(br#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}"#);
    let expected = FinishReason::Other("MALFORMED_FUNCTION_CALL".into());
    assert_eq!(reason.unwrap().finish, expected);
}

#[test]
fn error_object_with_success_status_is_an_error() {
    let Err(DecodeError::Provider(failure)) = WIRE.decode(&fixture("gemini/error_object.json"))
    else {
        panic!("not a provider error")
    };
    assert_eq!((failure.kind, failure.status), (ErrorKind::Transient, Some(503)));
    assert_eq!(failure.code.as_deref(), Some("UNAVAILABLE"));
}

#[test]
fn text_stream_is_decoded() {
    let (deltas, response) = decode_stream(WIRE, "gemini/text.sse", r#""finishReason":"STOP""#);
    assert_eq!(deltas, ["Grüße", " aus", " 東京 🗼"].map(|text| Delta::Text(text.into())));
    let expected = Response {
        id: Some("mZ0aaL".into()),
        model: Some("gemini-3-flash".into()),
        content: vec![Content::text("Grüße aus 東京 🗼")],
        finish: FinishReason::Stop,
        usage: USAGE,
        extra: object(json!({})),
    };
    assert_eq!(response, expected);
}

#[test]
fn stream_with_thinking_and_tool_calls_is_decoded() {
    let (deltas, response) = decode_stream(WIRE, "gemini/tools.sse", r#""finishReason":"STOP""#);
    let (first, second) = ("bakeoff-call-mZ0aaL-0", "bakeoff-call-mZ0aaL-1");
    let start = |index, id: &str, name: &str| Delta::ToolCallStart {
        index,
        id: id.into(),
        name: name.into(),
    };
    let json = |index, json: &str| Delta::ToolCallArguments { index, json: json.into() };
    assert_eq!(
        deltas,
        [
            Delta::Thinking("Two ".into()),
            Delta::Thinking("calls.".into()),
            Delta::Text("I will look.".into()),
            start(0, first, "weather"),
            json(0, r#"{"city":"Köln"}"#),
            start(1, second, "time"),
            json(1, "{}"),
        ]
    );
    assert_eq!(
        response.content,
        [
            thought("Two calls.", None),
            Content::text("I will look."),
            thought("", Some("CpQB")),
            call(first, "weather", json!({"city": "Köln"})),
            call(second, "time", json!({})),
            thought("", Some("CpQC")),
        ]
    );
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let request = Request { messages: vec![response.into_message()], ..Request::default() };
    let parts = encoded(WIRE, &request)["contents"][0]["parts"].clone();
    assert_eq!(parts[4], json!({"text": "", "thoughtSignature": "CpQC"}));
}

#[test]
fn error_event_in_the_stream_is_an_error() {
    let Err(StreamError::Provider(failure)) = decode_chunks(WIRE, &[&fixture("gemini/error.sse")])
    else {
        panic!("not a provider error")
    };
    assert_eq!((failure.kind, failure.status), (ErrorKind::Transient, Some(503)));
}

#[test]
fn error_bodies_are_classified() {
    use ErrorKind::*;
    check_classification(
        WIRE,
        "gemini",
        &[
            ("rate_limit", 429, RateLimit),
            ("quota", 429, Quota),
            ("transient", 503, Transient),
            ("auth", 400, Auth),
            ("context_overflow", 400, ContextOverflow),
            ("invalid_request", 404, InvalidRequest),
        ],
    );
}

#[test]
fn damaged_bodies_never_panic() {
    for name in ["text", "tools", "thinking", "safety"] {
        check_damaged_bodies(WIRE, &format!("gemini/{name}.json"));
    }
}
