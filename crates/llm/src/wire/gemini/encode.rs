//! Encoding of requests.

use super::super::body::to_json;
use super::GENERATED_ID_PREFIX;
use bakeoff_core::{Content, ImageSource, Message, OutputFormat, Request, Thinking, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt::Write;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Declarations<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    /// Full JSON Schema; the older field `parameters` supports only a subset.
    parameters_json_schema: &'a Value,
}

#[derive(Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Known(KnownPart<'a>),
    Opaque(&'a Value),
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct KnownPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    file_uri: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Cow<'a, Value>,
}

/// Returns the path, which contains the model and selects streaming.
pub(in crate::wire) fn path(request: &Request) -> String {
    let mut path = String::from("/");
    // A name with a slash already contains its collection, as those of tuned models do.
    if !request.model.contains('/') {
        path.push_str("models/");
    }
    for byte in request.model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(path, "%{byte:02X}")),
        }
    }
    path.push_str(match request.stream {
        true => ":streamGenerateContent?alt=sse",
        false => ":generateContent",
    });
    path
}

pub(in crate::wire) fn encode(request: &Request) -> Vec<u8> {
    let (response_mime_type, response_json_schema) = match &request.output {
        None => (None, None),
        Some(OutputFormat::Json) => (Some("application/json"), None),
        Some(OutputFormat::Schema { schema, .. }) => (Some("application/json"), Some(schema)),
    };
    let config = GenerationConfig {
        max_output_tokens: request.max_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        stop_sequences: &request.stop,
        seed: request.seed,
        response_mime_type,
        response_json_schema,
        thinking_config: request.thinking.as_ref().map(|value| thinking(&request.model, value)),
    };
    let declarations = || Declarations {
        function_declarations: request
            .tools
            .iter()
            .map(|tool| Declaration {
                name: &tool.name,
                description: &tool.description,
                parameters_json_schema: &tool.parameters,
            })
            .collect(),
    };
    let (system, contents) = split_messages(request);
    let body = Body {
        system_instruction: (!system.is_empty()).then_some(Instruction { parts: system }),
        contents,
        tools: (!request.tools.is_empty()).then(|| [declarations()]),
        tool_config: request.tool_choice.as_ref().map(tool_config),
        generation_config: (config != GenerationConfig::default()).then_some(config),
    };
    to_json(&body, &request.extra)
}

/// Encodes thinking. Models up to 2.5 support budgets, later ones levels.
fn thinking(model: &str, thinking: &Thinking) -> Value {
    let has_budgets = model.rsplit('/').next().is_some_and(|name| name.starts_with("gemini-2"));
    let budget = match thinking {
        Thinking::Budget(0) => return json!({"thinkingBudget": 0}),
        Thinking::Budget(tokens) => *tokens,
        Thinking::Effort(level) if !has_budgets => {
            return json!({"thinkingLevel": level, "includeThoughts": true});
        }
        // Google's mapping in its OpenAI-compatible API.
        Thinking::Effort(level) => match level.as_str() {
            "none" => return json!({"thinkingBudget": 0}),
            "minimal" | "low" => 1_024,
            "medium" => 8_192,
            _ => 24_576,
        },
    };
    json!({"thinkingBudget": budget, "includeThoughts": true})
}

fn tool_config(choice: &ToolChoice) -> Value {
    let config = match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    json!({"functionCallingConfig": config})
}

/// Returns the system instruction and the conversation. Consecutive messages with the same role are merged,
/// because all results of the tool calls of one response must be in the next message.
fn split_messages(request: &Request) -> (Vec<Part<'_>>, Vec<WireMessage<'_>>) {
    let mut system = Vec::new();
    let mut messages: Vec<WireMessage<'_>> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let role = match message {
            Message::System { content } => {
                push_parts(content, &mut system);
                continue;
            }
            Message::Assistant { .. } => "model",
            Message::User { .. } | Message::ToolResult { .. } => "user",
        };
        if messages.last().is_none_or(|last| last.role != role) {
            messages.push(WireMessage { role, parts: Vec::new() });
        }
        let Some(wire_message) = messages.last_mut() else { continue };
        if let Message::ToolResult { tool_call_id, name, content, is_error } = message {
            let key = if *is_error { "error" } else { "output" };
            let mut response = json!({"name": name, "response": {key: message.text()}});
            if let Some(id) = provider_id(tool_call_id) {
                response["id"] = json!(id);
            }
            wire_message.parts.push(known(KnownPart {
                function_response: Some(response),
                ..KnownPart::default()
            }));
            let is_media =
                |part: &&Content| matches!(part, Content::Image { .. } | Content::File { .. });
            push_parts(content.iter().filter(is_media), &mut wire_message.parts);
        } else {
            push_parts(message.content(), &mut wire_message.parts);
        }
    }
    (system, messages)
}

fn known(part: KnownPart<'_>) -> Part<'_> {
    Part::Known(part)
}

/// Returns the id if the provider sent it, and `None` for a generated one.
fn provider_id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty() && !id.starts_with(GENERATED_ID_PREFIX))
}

/// Encodes content and appends it to `parts`.
fn push_parts<'a>(content: impl IntoIterator<Item = &'a Content>, parts: &mut Vec<Part<'a>>) {
    // Signature that belongs to the next part.
    let mut pending: Option<&'a str> = None;
    for part in content {
        let mut encoded = KnownPart::default();
        match part {
            Content::Text { text } => encoded.text = Some(text),
            Content::Image { source: ImageSource::Url { url } } => {
                encoded.file_data = Some(File { mime_type: media_type(url), file_uri: url });
            }
            Content::Image { source: ImageSource::Base64 { media_type, data } } => {
                encoded.inline_data = Some(Blob { mime_type: media_type, data });
            }
            Content::File { media_type, data, .. } => {
                let mime_type = match media_type.as_str() {
                    // The API's own name.
                    "audio/mpeg" => "audio/mp3",
                    other => other,
                };
                encoded.inline_data = Some(Blob { mime_type, data });
            }
            Content::Thinking { text, signature } if text.is_empty() => {
                pending = signature.as_deref().or(pending);
                continue;
            }
            Content::Thinking { text, signature } => {
                encoded.text = Some(text);
                encoded.thought = true;
                encoded.thought_signature = signature.as_deref();
                parts.push(known(encoded));
                continue;
            }
            Content::ToolCall(call) => {
                encoded.function_call = Some(Call {
                    id: provider_id(&call.id),
                    name: &call.name,
                    args: match &call.arguments {
                        arguments @ Value::Object(_) => Cow::Borrowed(arguments),
                        Value::Null => Cow::Owned(Value::Object(Map::new())),
                        // The API accepts only objects; other arguments are wrapped so that the model sees
                        // them.
                        other => Cow::Owned(json!({"invalid": other})),
                    },
                });
            }
            // Parts of this format have no type; an object with one is a part of another format.
            Content::Opaque { value } => {
                if value.get("type").is_none() {
                    parts.push(Part::Opaque(value));
                }
                continue;
            }
        }
        encoded.thought_signature = pending.take();
        parts.push(known(encoded));
    }
    if let Some(signature) = pending {
        let part =
            KnownPart { text: Some(""), thought_signature: Some(signature), ..Default::default() };
        parts.push(known(part));
    }
}

/// Returns the media type by file extension, because the API does not always detect it.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, extension) = path.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "heic" => Some("image/heic"),
        _ => None,
    }
}
