//! Encoding of requests.

use super::super::TokenLimitField;
use super::super::body::{
    TOOL_ERROR_PREFIX, arguments_to_text, data_url, image_url, only_text, openai_effort, to_json,
};
use bakeoff_core::{Content, Message, OutputFormat, Request, ToolChoice};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// Fields of an earlier response that are sent back unchanged.
    #[serde(flatten)]
    returned: BTreeMap<&'a str, &'a Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Plain(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Known(KnownPart<'a>),
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Url<'a> },
    InputAudio { input_audio: Audio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct Audio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct Url<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

pub(in crate::wire) fn encode(request: &Request, limit_field: TokenLimitField) -> Vec<u8> {
    let (max_tokens, max_completion_tokens) = match limit_field {
        TokenLimitField::MaxTokens => (request.max_tokens, None),
        TokenLimitField::MaxCompletionTokens => (None, request.max_tokens),
    };
    let body = Body {
        model: &request.model,
        messages: request.messages.iter().map(message).collect(),
        tools: request
            .tools
            .iter()
            .map(|tool| ChatTool {
                r#type: "function",
                function: Function {
                    name: &tool.name,
                    description: &tool.description,
                    parameters: &tool.parameters,
                },
            })
            .collect(),
        tool_choice: request.tool_choice.as_ref().map(tool_choice),
        max_tokens,
        max_completion_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        stop: &request.stop,
        seed: request.seed,
        reasoning_effort: request.thinking.as_ref().map(openai_effort),
        response_format: request.output.as_ref().map(response_format),
        stream: request.stream,
        // Without it a streamed response has no usage.
        stream_options: request.stream.then_some(StreamOptions { include_usage: true }),
    };
    to_json(&body, &request.extra)
}

fn message(message: &Message) -> ChatMessage<'_> {
    let plain = |role, content| ChatMessage {
        role,
        content: Some(content),
        tool_calls: Vec::new(),
        tool_call_id: None,
        returned: BTreeMap::new(),
    };
    match message {
        Message::System { content } => plain("system", text(content, "")),
        Message::User { content } => plain("user", text(content, "")),
        Message::Assistant { content } => assistant(content),
        Message::ToolResult { tool_call_id, content, is_error, .. } => ChatMessage {
            tool_call_id: Some(tool_call_id),
            ..plain("tool", text(content, if *is_error { TOOL_ERROR_PREFIX } else { "" }))
        },
    }
}

fn text<'a>(content: &'a [Content], prefix: &'static str) -> Text<'a> {
    if let Some(text) = only_text(content) {
        return Text::Plain(match prefix {
            "" => Cow::Borrowed(text),
            prefix => Cow::Owned(format!("{prefix}{text}")),
        });
    }
    let prefix = Some(prefix)
        .filter(|prefix| !prefix.is_empty())
        .map(|prefix| Part::Known(KnownPart::Text { text: Cow::Borrowed(prefix) }));
    let parts = content.iter().filter_map(|part| match part {
        Content::Text { text } => {
            Some(Part::Known(KnownPart::Text { text: Cow::Borrowed(text.as_str()) }))
        }
        Content::Image { source } => {
            Some(Part::Known(KnownPart::ImageUrl { image_url: Url { url: image_url(source) } }))
        }
        Content::File { name, media_type, data } => {
            Some(Part::Known(match audio_format(media_type) {
                Some(format) => KnownPart::InputAudio { input_audio: Audio { data, format } },
                None => {
                    let file_data = data_url(media_type, data);
                    KnownPart::File { file: File { filename: name, file_data } }
                }
            }))
        }
        Content::Opaque { value } => Some(Part::Opaque(value)),
        Content::Thinking { .. } | Content::ToolCall(_) => None,
    });
    Text::Parts(prefix.into_iter().chain(parts).collect())
}

/// Returns the name of an audio format.
fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" => Some("wav"),
        "audio/mpeg" => Some("mp3"),
        _ => None,
    }
}

/// Encodes an assistant message. Thinking is left out, because the format has no field for it.
fn assistant(content: &[Content]) -> ChatMessage<'_> {
    let (mut tool_calls, mut returned) = (Vec::new(), BTreeMap::new());
    for part in content {
        match part {
            Content::ToolCall(call) => tool_calls.push(Call {
                id: &call.id,
                r#type: "function",
                function: CallFunction {
                    name: &call.name,
                    arguments: arguments_to_text(&call.arguments),
                },
            }),
            // Message fields; an object with a type is a part of another format.
            Content::Opaque { value: Value::Object(fields) } if !fields.contains_key("type") => {
                let reserved = ["role", "content", "tool_calls"];
                returned.extend(
                    fields
                        .iter()
                        .map(|(key, value)| (key.as_str(), value))
                        .filter(|(key, _)| !reserved.contains(key)),
                );
            }
            _ => {}
        }
    }
    let has_text = content.iter().any(|part| matches!(part, Content::Text { .. }));
    let content = (has_text || tool_calls.is_empty())
        .then(|| Text::Plain(Cow::Owned(Content::join_text(content))));
    ChatMessage { role: "assistant", content, tool_calls, tool_call_id: None, returned }
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn response_format(format: &OutputFormat) -> Value {
    match format {
        OutputFormat::Json => json!({"type": "json_object"}),
        OutputFormat::Schema { name, schema } => json!({
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": true},
        }),
    }
}
