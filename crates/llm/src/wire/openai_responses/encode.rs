//! Encoding of requests.

use super::super::body::{
    TOOL_ERROR_PREFIX, arguments_to_text, image_url, is_openai_reasoning, only_text, openai_effort,
    to_json,
};
use bakeoff_core::{Content, Message, OutputFormat, Request, ToolChoice};
use serde::Serialize;
use serde_json::{Value, json};
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
    Message { role: &'static str, content: Parts<'a> },
    Call { r#type: &'static str, call_id: &'a str, name: &'a str, arguments: Cow<'a, str> },
    Output { r#type: &'static str, call_id: &'a str, output: Parts<'a> },
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
    Text { r#type: &'static str, text: &'a str },
    Image { r#type: &'static str, image_url: Cow<'a, str> },
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
    let is_chat = request.model.starts_with("gpt-5-chat");
    let has_reasoning =
        request.thinking.is_some() || (is_openai_reasoning(&request.model) && !is_chat);
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
    to_json(&body, &request.extra)
}

fn push_items<'a>(message: &'a Message, input: &mut Vec<Item<'a>>) {
    match message {
        Message::System { content } => {
            input.push(Item::Message { role: "system", content: parts(content, "") });
        }
        Message::User { content } => {
            input.push(Item::Message { role: "user", content: parts(content, "") });
        }
        Message::Assistant { content } => {
            input.extend(content.iter().filter_map(|part| match part {
                Content::Text { text } => Some(Item::Message {
                    role: "assistant",
                    content: Parts::List(vec![Part::Text { r#type: "output_text", text }]),
                }),
                Content::ToolCall(call) => Some(Item::Call {
                    r#type: "function_call",
                    call_id: &call.id,
                    name: &call.name,
                    arguments: arguments_to_text(&call.arguments),
                }),
                Content::Opaque { value } if can_send_back(value) => Some(Item::Opaque(value)),
                // Thinking is sent back as the opaque item that it was decoded from.
                Content::Opaque { .. } | Content::Thinking { .. } | Content::Image { .. } => None,
            }));
        }
        Message::ToolResult { tool_call_id, content, is_error, .. } => input.push(Item::Output {
            r#type: "function_call_output",
            call_id: tool_call_id,
            output: parts(content, if *is_error { TOOL_ERROR_PREFIX } else { "" }),
        }),
    }
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
            Some(Part::Image { r#type: "input_image", image_url: image_url(source) })
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
