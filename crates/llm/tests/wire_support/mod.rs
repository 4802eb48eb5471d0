//! Helpers for the tests of the four formats: a conversation with all kinds of content, and properties of
//! every stream.

#![allow(dead_code, reason = "each test file uses only a part")]

use bakeoff_core::{
    Content, ErrorKind, ImageSource, Message, OutputFormat, Request, Response, Thinking, ToolCall,
    ToolChoice, ToolDefinition, one_line,
};
use bakeoff_llm::{Delta, StreamError, Wire, classify};
use http::HeaderMap;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

pub(crate) fn encoded(wire: Wire, request: &Request) -> Value {
    serde_json::from_slice(&wire.encode(request)).unwrap()
}

pub(crate) fn call(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
}

pub(crate) fn thought(text: &str, signature: Option<&str>) -> Content {
    Content::Thinking { text: text.into(), signature: signature.map(Into::into) }
}

pub(crate) fn opaque(value: Value) -> Content {
    Content::Opaque { value }
}

/// A conversation with all kinds of content. `assistant` is the assistant message with its two tool calls.
pub(crate) fn full_request(model: &str, assistant: Vec<Content>, first_call: &str) -> Request {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let image = |source| Content::Image { source };
    let result = |id: &str, text: &str, is_error| Message::ToolResult {
        tool_call_id: id.into(),
        name: "weather".into(),
        content: vec![Content::text(text)],
        is_error,
    };
    Request {
        model: model.into(),
        messages: vec![
            Message::system("You are terse."),
            Message::User {
                content: vec![
                    Content::text("What is the weather here and there?"),
                    image(ImageSource::Url { url: "https://example.com/here.png".into() }),
                    image(ImageSource::Base64 {
                        media_type: "image/jpeg".into(),
                        data: "/9j/4AAQ".into(),
                    }),
                ],
            },
            Message::Assistant { content: assistant },
            result(first_call, "12 °C", false),
            result("call_2", "arguments are not JSON", true),
            Message::user("And now?"),
        ],
        tools: vec![ToolDefinition {
            name: "weather".into(),
            description: "Weather of a city".into(),
            parameters: schema.clone(),
        }],
        tool_choice: Some(ToolChoice::Tool("weather".into())),
        max_tokens: Some(256),
        temperature: Some(0.5),
        top_p: Some(0.9),
        stop: vec!["END".into(), "\n\n".into()],
        seed: Some(7),
        thinking: Some(Thinking::Effort("low".into())),
        output: Some(OutputFormat::Schema { name: "place".into(), schema }),
        stream: true,
        extra: object(json!({"logit_bias": {"50256": -100}})),
    }
}

pub(crate) fn decode_chunks(
    wire: Wire,
    chunks: &[&[u8]],
) -> Result<(Vec<Delta>, Response), StreamError> {
    let mut decoder = wire.stream();
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(decoder.feed(chunk)?);
    }
    Ok((deltas, decoder.finish()?))
}

/// Decodes a stream. Also checks that chunk boundaries do not matter, that a stream cut before `terminal` is
/// incomplete, and that damage never causes a panic.
pub(crate) fn decode_stream(wire: Wire, name: &str, terminal: &str) -> (Vec<Delta>, Response) {
    let bytes = fixture(name);
    let whole = decode_chunks(wire, &[&bytes]).unwrap();
    assert_eq!(decode_chunks(wire, &bytes.chunks(1).collect::<Vec<_>>()).unwrap(), whole);
    for position in 0..bytes.len() {
        let (left, right) = bytes.split_at(position);
        assert_eq!(decode_chunks(wire, &[left, right]).unwrap(), whole, "split at {position}");
    }
    let text = String::from_utf8(bytes.clone()).unwrap();
    let end = text.find(terminal).expect("the terminal event is in the stream");
    for length in 0..bytes.len() {
        match decode_chunks(wire, &[&bytes[..length]]) {
            Ok((_, early)) => {
                assert!(length > end, "complete after {length} of {end} bytes");
                assert_eq!((&early.content, &early.finish), (&whole.1.content, &whole.1.finish));
            }
            Err(error) => assert_eq!(error, StreamError::Truncated, "after {length} bytes"),
        }
    }
    for seed in 0..2000_u64 {
        let mut damaged = bytes.clone();
        // A multiplicative hash spreads positions and values.
        let hash = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let position = (hash >> 16) as usize % damaged.len();
        damaged[position] = hash as u8;
        let _ = decode_chunks(wire, &[&damaged]);
    }
    whole
}

/// Checks that damaged and truncated bodies never cause a panic, and that errors stay short.
pub(crate) fn check_damaged_bodies(wire: Wire, name: &str) {
    let bytes = fixture(name);
    for length in 0..bytes.len() {
        if wire.decode(&bytes[..length]).is_ok() {
            // Only the final line feed may be missing.
            assert_eq!(length, bytes.len() - 1);
        }
    }
    for position in 0..bytes.len() {
        for byte in *b"0n{[\"x" {
            let mut damaged = bytes.clone();
            damaged[position] = byte;
            if let Err(error) = wire.decode(&damaged) {
                assert!(error.to_string().len() < 2000, "{error}");
            }
        }
    }
}

pub(crate) fn check_classification(wire: Wire, folder: &str, cases: &[(&str, u16, ErrorKind)]) {
    for (name, status, kind) in cases {
        let body = fixture(&format!("{folder}/errors/{name}.json"));
        let failure = classify(wire, *status, &HeaderMap::new(), &body, SystemTime::UNIX_EPOCH);
        assert_eq!(failure.kind, *kind, "{name}");
        let value: Value = serde_json::from_slice(&body).unwrap();
        let message = value["error"]["message"].as_str().map(one_line);
        assert_eq!(Some(failure.message), message, "{name}");
    }
}
