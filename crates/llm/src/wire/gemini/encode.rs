//! Requests.

use super::super::body::to_json;
use super::MADE_UP_ID;
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
    contents: Vec<Turn<'a>>,
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
struct Turn<'a> {
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
    /// Full JSON Schema; the older `parameters` takes only a part of it.
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

/// The model stands in the path here, and so does the wish for a stream.
pub(in crate::wire) fn path(request: &Request) -> String {
    let mut path = String::from("/");
    // Tuned models have a collection of their own, and some write the default one out.
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
        thinking_config: request.thinking.as_ref().map(|how| thinking(&request.model, how)),
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
    let (system, contents) = turns(request);
    let body = Body {
        system_instruction: (!system.is_empty()).then_some(Instruction { parts: system }),
        contents,
        tools: (!request.tools.is_empty()).then(|| [declarations()]),
        tool_config: request.tool_choice.as_ref().map(tool_config),
        generation_config: (config != GenerationConfig::default()).then_some(config),
    };
    to_json(&body, &request.extra)
}

/// Models up to 2.5 take budgets, later ones levels.
fn thinking(model: &str, thinking: &Thinking) -> Value {
    let takes_budgets = model.rsplit('/').next().is_some_and(|name| name.starts_with("gemini-2"));
    let budget = match thinking {
        Thinking::Budget(0) => return json!({"thinkingBudget": 0}),
        Thinking::Budget(tokens) => *tokens,
        Thinking::Effort(level) if !takes_budgets => {
            return json!({"thinkingLevel": level, "includeThoughts": true});
        }
        // Google's own table for its OpenAI-compatible door.
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

/// The instructions, and the turns. Neighbours of one role become one turn: all results of one
/// answer's calls must stand in the turn after it.
fn turns(request: &Request) -> (Vec<Part<'_>>, Vec<Turn<'_>>) {
    let mut system = Vec::new();
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let role = match message {
            Message::System { content } => {
                parts(content, &mut system);
                continue;
            }
            Message::Assistant { .. } => "model",
            Message::User { .. } | Message::ToolResult { .. } => "user",
        };
        if turns.last().is_none_or(|turn| turn.role != role) {
            turns.push(Turn { role, parts: Vec::new() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        if let Message::ToolResult { tool_call_id, name, content, is_error } = message {
            let key = if *is_error { "error" } else { "output" };
            let mut response = json!({"name": name, "response": {key: message.text()}});
            if let Some(id) = own_id(tool_call_id) {
                response["id"] = json!(id);
            }
            turn.parts.push(known(KnownPart {
                function_response: Some(response),
                ..KnownPart::default()
            }));
            let images = content.iter().filter(|part| matches!(part, Content::Image { .. }));
            parts(images, &mut turn.parts);
        } else {
            parts(message.content(), &mut turn.parts);
        }
    }
    (system, turns)
}

fn known(part: KnownPart<'_>) -> Part<'_> {
    Part::Known(part)
}

/// The id, if the provider gave it.
fn own_id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty() && !id.starts_with(MADE_UP_ID))
}

fn parts<'a>(content: impl IntoIterator<Item = &'a Content>, parts: &mut Vec<Part<'a>>) {
    let mut proof: Option<&'a str> = None;
    for part in content {
        let mut sent = KnownPart::default();
        match part {
            Content::Text { text } => sent.text = Some(text),
            Content::Image { source: ImageSource::Url { url } } => {
                sent.file_data = Some(File { mime_type: image_type(url), file_uri: url });
            }
            Content::Image { source: ImageSource::Base64 { media_type, data } } => {
                sent.inline_data = Some(Blob { mime_type: media_type, data });
            }
            Content::Thinking { text, signature } if text.is_empty() => {
                proof = signature.as_deref().or(proof);
                continue;
            }
            Content::Thinking { text, signature } => {
                sent.text = Some(text);
                sent.thought = true;
                sent.thought_signature = signature.as_deref();
                parts.push(known(sent));
                continue;
            }
            Content::ToolCall(call) => {
                sent.function_call = Some(Call {
                    id: own_id(&call.id),
                    name: &call.name,
                    args: match &call.arguments {
                        arguments @ Value::Object(_) => Cow::Borrowed(arguments),
                        Value::Null => Cow::Owned(Value::Object(Map::new())),
                        // Only objects are taken; what the model wrote stays to be seen.
                        other => Cow::Owned(json!({"invalid": other})),
                    },
                });
            }
            // Parts have no type here; what has one was made by another format.
            Content::Opaque { value } => {
                if value.get("type").is_none() {
                    parts.push(Part::Opaque(value));
                }
                continue;
            }
        }
        sent.thought_signature = proof.take();
        parts.push(known(sent));
    }
    if let Some(proof) = proof {
        let part =
            KnownPart { text: Some(""), thought_signature: Some(proof), ..Default::default() };
        parts.push(known(part));
    }
}

/// The type of an image, told by its name: the API cannot always tell by itself.
fn image_type(url: &str) -> Option<&'static str> {
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
