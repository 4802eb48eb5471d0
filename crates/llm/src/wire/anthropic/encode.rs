//! Encoding of requests.

use super::super::body::{only_text, to_json};
use bakeoff_core::{Content, ImageSource, Message, OutputFormat, Request, Thinking, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Token limit for requests without one. The API requires a limit, and every model supports this one.
const DEFAULT_MAX_TOKENS: u64 = 4096;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Blocks<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolDefinition<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct ToolDefinition<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Blocks<'a> {
    Plain(&'a str),
    List(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Known(KnownBlock<'a>),
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum KnownBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        title: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Blocks<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Url { url: &'a str },
    Base64 { media_type: &'a str, data: &'a str },
}

pub(in crate::wire) fn encode(request: &Request) -> Vec<u8> {
    let effort = match &request.thinking {
        Some(Thinking::Effort(effort)) => Some(effort.as_str()),
        _ => None,
    };
    let format = match &request.output {
        Some(OutputFormat::Schema { schema, .. }) => Some(Format { r#type: "json_schema", schema }),
        _ => None,
    };
    let body = Body {
        model: &request.model,
        max_tokens: max_tokens(request),
        system: system(request),
        messages: wire_messages(request),
        tools: request
            .tools
            .iter()
            .map(|tool| ToolDefinition {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.parameters,
            })
            .collect(),
        tool_choice: request.tool_choice.as_ref().map(tool_choice),
        temperature: request.temperature,
        top_p: request.top_p,
        stop_sequences: &request.stop,
        thinking: request.thinking.as_ref().map(thinking),
        output_config: (effort.is_some() || format.is_some())
            .then_some(OutputConfig { effort, format }),
        stream: request.stream,
    };
    to_json(&body, &request.extra)
}

/// Returns the token limit. In this format it includes thinking and must exceed the thinking budget; a
/// smaller limit is taken as the limit of the output without thinking.
fn max_tokens(request: &Request) -> u64 {
    let limit = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    match request.thinking {
        Some(Thinking::Budget(budget)) if limit <= budget => budget.saturating_add(limit),
        _ => limit,
    }
}

fn thinking(thinking: &Thinking) -> Value {
    match thinking {
        Thinking::Budget(0) => json!({"type": "disabled"}),
        Thinking::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
        // An effort applies only to adaptive thinking.
        Thinking::Effort(_) => json!({"type": "adaptive"}),
    }
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
    }
}

/// Collects the system messages, which this format separates from the conversation.
fn system(request: &Request) -> Option<Blocks<'_>> {
    let mut systems = request.messages.iter().filter_map(|message| match message {
        Message::System { content } => Some(content.as_slice()),
        _ => None,
    });
    let first = systems.next()?;
    let rest: Vec<_> = systems.collect();
    if let (Some(text), true) = (only_text(first), rest.is_empty()) {
        return Some(Blocks::Plain(text));
    }
    let all = std::iter::once(first).chain(rest).flatten();
    Some(Blocks::List(all.filter_map(block).collect()))
}

/// Encodes the conversation. Consecutive messages with the same role are merged, because all results of the
/// tool calls of one response must be in the next message.
fn wire_messages(request: &Request) -> Vec<WireMessage<'_>> {
    let mut messages: Vec<WireMessage<'_>> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let (role, content) = match message {
            Message::System { .. } => continue,
            Message::User { content } => ("user", content.iter().filter_map(block).collect()),
            Message::Assistant { content } => {
                ("assistant", content.iter().filter_map(block).collect())
            }
            Message::ToolResult { tool_call_id, content, is_error, .. } => {
                let result = KnownBlock::ToolResult {
                    tool_use_id: tool_call_id,
                    content: match only_text(content) {
                        Some(text) => Blocks::Plain(text),
                        None => Blocks::List(content.iter().filter_map(block).collect()),
                    },
                    is_error: *is_error,
                };
                ("user", vec![Block::Known(result)])
            }
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => messages.push(WireMessage { role, content }),
        }
    }
    messages
}

fn block(part: &Content) -> Option<Block<'_>> {
    Some(Block::Known(match part {
        // The API rejects empty text blocks.
        Content::Text { text } if text.is_empty() => return None,
        Content::Text { text } => KnownBlock::Text { text },
        Content::Image { source: ImageSource::Url { url } } => {
            KnownBlock::Image { source: Source::Url { url } }
        }
        Content::Image { source: ImageSource::Base64 { media_type, data } } => {
            KnownBlock::Image { source: Source::Base64 { media_type, data } }
        }
        Content::File { name, media_type, data } => {
            KnownBlock::Document { source: Source::Base64 { media_type, data }, title: name }
        }
        // The API rejects thinking without a signature, and accepts messages without their thinking.
        Content::Thinking { signature: None, .. } => return None,
        Content::Thinking { text, signature: Some(signature) } => {
            KnownBlock::Thinking { thinking: text, signature }
        }
        Content::ToolCall(call) => KnownBlock::ToolUse {
            id: &call.id,
            name: &call.name,
            input: match &call.arguments {
                arguments @ Value::Object(_) => Cow::Borrowed(arguments),
                Value::Null => Cow::Owned(Value::Object(Map::new())),
                // The API accepts only objects; other arguments are wrapped so that the model sees them.
                other => Cow::Owned(json!({"invalid": other})),
            },
        },
        Content::Opaque { value } if value["type"].is_string() => {
            return Some(Block::Opaque(value));
        }
        Content::Opaque { .. } => return None,
    }))
}
