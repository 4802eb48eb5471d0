//! Encoding of requests.

use super::super::body::{
    TOOL_ERROR_PREFIX, arguments_to_text, data_url, image_url, only_text, openai_effort, to_json,
};
use super::marked_phase;
use bakeoff_core::{Content, Message, OutputFormat, Request, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    /// Always false: responses are never fetched again.
    store: bool,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct FunctionTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Always false. Strict is the default of this format, unlike Chat Completions, and rejects most schemas.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Parts<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Call {
        r#type: &'static str,
        call_id: &'a str,
        name: &'a str,
        arguments: Cow<'a, str>,
    },
    Output {
        r#type: &'static str,
        call_id: &'a str,
        output: Parts<'a>,
    },
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Parts<'a> {
    Plain(Cow<'a, str>),
    List(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        r#type: &'static str,
        text: &'a str,
    },
    /// The detail is mandatory in this format, unlike Chat Completions.
    Image {
        r#type: &'static str,
        image_url: Cow<'a, str>,
        detail: &'static str,
    },
    File {
        r#type: &'static str,
        filename: &'a str,
        file_data: String,
    },
    Opaque(&'a Value),
}

/// Field to include in the response: without the store, reasoning can be sent back only in this form.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

pub(in crate::wire) fn encode(request: &Request) -> Vec<u8> {
    let mut input = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        push_items(message, &mut input);
    }
    // Models without reasoning reject the request for encrypted reasoning.
    let has_reasoning = request.thinking.is_some()
        || is_reasoning_model(&request.model)
        || request.messages.iter().flat_map(Message::content).any(is_encrypted_reasoning);
    let body = Body {
        model: &request.model,
        input,
        tools: request
            .tools
            .iter()
            .map(|tool| FunctionTool {
                r#type: "function",
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
                strict: false,
            })
            .collect(),
        tool_choice: request.tool_choice.as_ref().map(tool_choice),
        max_output_tokens: request.max_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        reasoning: request
            .thinking
            .as_ref()
            .map(|thinking| Reasoning { effort: openai_effort(thinking) }),
        text: request.output.as_ref().map(text_format),
        store: false,
        include: if has_reasoning { &[ENCRYPTED_REASONING] } else { &[] },
        stream: request.stream,
    };
    match (has_reasoning, request.extra.get("include")) {
        (true, Some(Value::Array(include))) => {
            to_json(&body, &with_encrypted_reasoning(&request.extra, include))
        }
        _ => to_json(&body, &request.extra),
    }
}

/// Whether the name is that of an OpenAI reasoning model: `o3`, `gpt-5.1`, `codex-mini-latest`, also
/// fine-tuned, but not `gpt-5-chat-latest`.
fn is_reasoning_model(model: &str) -> bool {
    let name = model.strip_prefix("ft:").unwrap_or(model);
    let number = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse::<u32>().ok()
    };
    let is_numbered = number("o").is_some() || number("gpt-").is_some_and(|number| number >= 5);
    (is_numbered && !name.contains("-chat")) || name.starts_with("codex-")
}

fn is_encrypted_reasoning(part: &Content) -> bool {
    match part {
        Content::Opaque { value } => value["encrypted_content"].is_string(),
        _ => false,
    }
}

/// Adds encrypted reasoning to the user's `include`, which replaces that of the body.
fn with_encrypted_reasoning(extra: &Map<String, Value>, include: &[Value]) -> Map<String, Value> {
    let mut include = include.to_vec();
    if !include.iter().any(|field| field == ENCRYPTED_REASONING) {
        include.push(ENCRYPTED_REASONING.into());
    }
    let mut extra = extra.clone();
    extra.insert("include".to_owned(), Value::Array(include));
    extra
}

fn push_items<'a>(message: &'a Message, input: &mut Vec<Item<'a>>) {
    match message {
        Message::System { content } => {
            input.push(message_item("system", content));
        }
        Message::User { content } => {
            input.push(message_item("user", content));
        }
        Message::Assistant { content } => {
            // Phase of the following texts, up to the next item of another type.
            let mut phase = None;
            input.extend(content.iter().filter_map(|part| match part {
                // Parts of the type `output_text` would need the id of their message.
                Content::Text { text } => Some(Item::Message {
                    role: "assistant",
                    content: Parts::Plain(Cow::Borrowed(text)),
                    phase,
                }),
                Content::ToolCall(call) => {
                    phase = None;
                    Some(Item::Call {
                        r#type: "function_call",
                        call_id: &call.id,
                        name: &call.name,
                        arguments: arguments_to_text(&call.arguments),
                    })
                }
                Content::Opaque { value } => {
                    phase = marked_phase(value);
                    (phase.is_none() && can_send_back(value)).then_some(Item::Opaque(value))
                }
                // Thinking is sent back as the opaque item that it was decoded from.
                Content::Thinking { .. } | Content::Image { .. } | Content::File { .. } => None,
            }));
        }
        Message::ToolResult { tool_call_id, content, is_error, .. } => input.push(Item::Output {
            r#type: "function_call_output",
            call_id: tool_call_id,
            output: parts(content, if *is_error { TOOL_ERROR_PREFIX } else { "" }),
        }),
    }
}

fn message_item<'a>(role: &'static str, content: &'a [Content]) -> Item<'a> {
    Item::Message { role, content: parts(content, ""), phase: None }
}

/// Whether an item can be sent back. Reasoning without encrypted content refers to the store, which is not
/// used.
fn can_send_back(item: &Value) -> bool {
    match item["type"].as_str() {
        Some("reasoning") => item["encrypted_content"].is_string(),
        kind => kind.is_some(),
    }
}

fn parts<'a>(content: &'a [Content], prefix: &'static str) -> Parts<'a> {
    if let Some(text) = only_text(content) {
        return Parts::Plain(match prefix {
            "" => Cow::Borrowed(text),
            prefix => Cow::Owned(format!("{prefix}{text}")),
        });
    }
    let prefix = Some(prefix)
        .filter(|prefix| !prefix.is_empty())
        .map(|text| Part::Text { r#type: "input_text", text });
    let parts = content.iter().filter_map(|part| match part {
        Content::Text { text } => Some(Part::Text { r#type: "input_text", text }),
        Content::Image { source } => {
            let image_url = image_url(source);
            Some(Part::Image { r#type: "input_image", image_url, detail: "auto" })
        }
        Content::File { name, media_type, data } => {
            let file_data = data_url(media_type, data);
            Some(Part::File { r#type: "input_file", filename: name, file_data })
        }
        Content::Opaque { value } => Some(Part::Opaque(value)),
        Content::Thinking { .. } | Content::ToolCall(_) => None,
    });
    Parts::List(prefix.into_iter().chain(parts).collect())
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
    }
}

fn text_format(format: &OutputFormat) -> Value {
    match format {
        OutputFormat::Json => json!({"format": {"type": "json_object"}}),
        OutputFormat::Schema { name, schema } => json!({
            "format": {"type": "json_schema", "name": name, "schema": schema, "strict": true},
        }),
    }
}
