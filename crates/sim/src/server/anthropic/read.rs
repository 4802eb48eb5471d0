//! Parsing of Messages requests.

use super::super::read::{body, content, string, texts, tool_name};
use super::super::wire::ParsedRequest;
use bakeoff_core::{
    Content, ImageSource, Message, OutputFormat, Request, Thinking, ToolCall, ToolChoice,
    ToolDefinition,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Supported fields of a request; others are ignored.
#[derive(Deserialize)]
struct Body {
    model: String,
    max_tokens: u64,
    messages: Vec<WireMessage>,
    #[serde(default)]
    system: Value,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    thinking: Option<Value>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    stop_sequences: Option<Value>,
    stream: Option<bool>,
    output_config: Option<Value>,
    output_format: Option<Value>,
}

#[derive(Deserialize)]
struct WireMessage {
    role: String,
    content: Value,
}

/// Parses a request body.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedRequest, String> {
    let fields: Body = body(bytes)?;
    if fields.messages.is_empty() {
        return Err("messages: at least one message is required".into());
    }
    let mut messages = Vec::with_capacity(fields.messages.len() + 1);
    let system = content(fields.system, part)?;
    if !system.is_empty() {
        messages.push(Message::System { content: system });
    }
    for message in fields.messages {
        match message.role.as_str() {
            "user" => user(message.content, &mut messages)?,
            "assistant" => {
                messages.push(Message::Assistant { content: content(message.content, part)? });
            }
            role => return Err(format!("messages: `{role}` is not a role")),
        }
    }
    let config = fields.output_config.unwrap_or_default();
    let effort = config.get("effort").and_then(Value::as_str);
    let format = config.get("format").or(fields.output_format.as_ref());
    let tools = fields.tools.unwrap_or_default();
    let request = Request {
        model: fields.model,
        messages,
        tools: tools.iter().map(tool).collect::<Result<_, _>>()?,
        tool_choice: fields.tool_choice.as_ref().map(tool_choice).transpose()?.flatten(),
        max_tokens: Some(fields.max_tokens),
        temperature: fields.temperature,
        top_p: fields.top_p,
        stop: texts(fields.stop_sequences, "stop_sequences")?,
        seed: None,
        thinking: fields.thinking.map(|value| thinking(&value, effort)).transpose()?.flatten(),
        output: format.map(output).transpose()?.flatten(),
        stream: fields.stream.unwrap_or(false),
        extra: serde_json::Map::new(),
    };
    Ok(ParsedRequest { request, include_usage: true })
}

/// Parses a user message; tool results in it become separate messages.
fn user(value: Value, messages: &mut Vec<Message>) -> Result<(), String> {
    let Value::Array(blocks) = value else {
        messages.push(Message::User { content: content(value, part)? });
        return Ok(());
    };
    let mut parts = Vec::new();
    for block in blocks {
        if block.get("type").and_then(Value::as_str) != Some("tool_result") {
            parts.push(part(block)?);
            continue;
        }
        if !parts.is_empty() {
            messages.push(Message::User { content: std::mem::take(&mut parts) });
        }
        let tool_call_id = string(&block, "tool_use_id")?;
        messages.push(Message::ToolResult {
            name: tool_name(messages, &tool_call_id),
            tool_call_id,
            content: content(block.get("content").cloned().unwrap_or_default(), part)?,
            is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        });
    }
    if !parts.is_empty() {
        messages.push(Message::User { content: parts });
    }
    Ok(())
}

fn part(value: Value) -> Result<Content, String> {
    match string(&value, "type")?.as_str() {
        "text" => Ok(Content::Text { text: string(&value, "text")? }),
        "image" => {
            let source = value.get("source").ok_or("`source` is missing")?;
            match string(source, "type")?.as_str() {
                "base64" => Ok(Content::Image {
                    source: ImageSource::Base64 {
                        media_type: string(source, "media_type")?,
                        data: string(source, "data")?,
                    },
                }),
                "url" => {
                    Ok(Content::Image { source: ImageSource::Url { url: string(source, "url")? } })
                }
                _ => Ok(Content::Opaque { value }),
            }
        }
        "document" => Ok(document(&value).unwrap_or(Content::Opaque { value })),
        "thinking" => Ok(Content::Thinking {
            text: string(&value, "thinking")?,
            signature: value.get("signature").and_then(Value::as_str).map(String::from),
        }),
        "tool_use" => Ok(Content::ToolCall(ToolCall {
            id: string(&value, "id")?,
            name: string(&value, "name")?,
            arguments: value.get("input").cloned().unwrap_or_else(|| json!({})),
        })),
        _ => Ok(Content::Opaque { value }),
    }
}

/// Parses a document in the request; `None` for other sources.
fn document(block: &Value) -> Option<Content> {
    let source = block.get("source").filter(|source| source["type"] == "base64")?;
    Some(Content::File {
        name: string(block, "title").unwrap_or_default(),
        media_type: string(source, "media_type").ok()?,
        data: string(source, "data").ok()?,
    })
}

fn tool(value: &Value) -> Result<ToolDefinition, String> {
    let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
    Ok(ToolDefinition {
        name: string(value, "name")?,
        description: description.to_owned(),
        parameters: value.get("input_schema").cloned().unwrap_or_else(|| json!({})),
    })
}

fn tool_choice(value: &Value) -> Result<Option<ToolChoice>, String> {
    if value.is_null() {
        return Ok(None);
    }
    match string(value, "type")?.as_str() {
        "auto" => Ok(Some(ToolChoice::Auto)),
        "any" => Ok(Some(ToolChoice::Required)),
        "none" => Ok(Some(ToolChoice::None)),
        "tool" => Ok(Some(ToolChoice::Tool(string(value, "name")?))),
        kind => Err(format!("tool_choice: `{kind}` is not a tool choice")),
    }
}

fn thinking(value: &Value, effort: Option<&str>) -> Result<Option<Thinking>, String> {
    if value.is_null() {
        return Ok(None);
    }
    match string(value, "type")?.as_str() {
        "disabled" => Ok(Some(Thinking::Budget(0))),
        "adaptive" => Ok(Some(Thinking::Effort(effort.unwrap_or("high").to_owned()))),
        "enabled" => match value.get("budget_tokens").and_then(Value::as_u64) {
            Some(budget) => Ok(Some(Thinking::Budget(budget))),
            None => Err("thinking: `budget_tokens` must be a whole number".into()),
        },
        kind => Err(format!("thinking: `{kind}` is not a thinking type")),
    }
}

fn output(value: &Value) -> Result<Option<OutputFormat>, String> {
    if value.is_null() {
        return Ok(None);
    }
    match string(value, "type")?.as_str() {
        "json_schema" => {
            let schema = value.get("schema").cloned().unwrap_or_else(|| json!({}));
            Ok(Some(OutputFormat::Schema { name: String::new(), schema }))
        }
        kind => Err(format!("output_config: `{kind}` is not a format")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: Value) -> Result<Request, String> {
        parse(value.to_string().as_bytes()).map(|call| call.request)
    }

    #[test]
    fn parses_every_field() {
        let parsed = request(json!({
            "model": "m",
            "max_tokens": 7,
            "system": [{ "type": "text", "text": "be brief" }],
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "look" },
                    { "type": "image", "source":
                        { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                    { "type": "document", "source": {} },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "s" },
                    { "type": "tool_use", "id": "1", "name": "f", "input": { "a": 1 } },
                ] },
                { "role": "user", "content": [
                    { "type": "text", "text": "here" },
                    { "type": "tool_result", "tool_use_id": "1", "content": "bad", "is_error": true },
                    { "type": "text", "text": "go on" },
                ] },
            ],
            "tools": [{ "name": "f", "description": "d", "input_schema": { "type": "object" } }],
            "tool_choice": { "type": "any" },
            "thinking": { "type": "enabled", "budget_tokens": 1024 },
            "stop_sequences": ["END"], "stream": true, "temperature": 0.5, "top_p": 0.9,
            "metadata": {},
            "output_config": { "format": { "type": "json_schema", "schema": {} } },
        }))
        .unwrap();
        let base64 = ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() };
        let expected = Request {
            model: "m".into(),
            messages: vec![
                Message::system("be brief"),
                Message::User {
                    content: vec![
                        Content::text("look"),
                        Content::Image { source: base64 },
                        Content::Opaque { value: json!({ "type": "document", "source": {} }) },
                    ],
                },
                Message::Assistant {
                    content: vec![
                        Content::Thinking { text: "hm".into(), signature: Some("s".into()) },
                        Content::ToolCall(ToolCall {
                            id: "1".into(),
                            name: "f".into(),
                            arguments: json!({ "a": 1 }),
                        }),
                    ],
                },
                Message::user("here"),
                Message::ToolResult {
                    tool_call_id: "1".into(),
                    name: "f".into(),
                    content: vec![Content::text("bad")],
                    is_error: true,
                },
                Message::user("go on"),
            ],
            tools: vec![ToolDefinition {
                name: "f".into(),
                description: "d".into(),
                parameters: json!({ "type": "object" }),
            }],
            tool_choice: Some(ToolChoice::Required),
            max_tokens: Some(7),
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: None,
            thinking: Some(Thinking::Budget(1024)),
            output: Some(OutputFormat::Schema { name: String::new(), schema: json!({}) }),
            stream: true,
            extra: serde_json::Map::new(),
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn invalid_requests_are_rejected_with_a_reason() {
        let with = |key: &str, value: Value| {
            let mut body = json!({
                "model": "m", "max_tokens": 1, "messages": [{ "role": "user", "content": "hi" }]
            });
            body[key] = value;
            request(body)
        };
        assert!(with("user", json!("fine")).is_ok());
        for (key, value, part) in [
            ("max_tokens", Value::Null, "expected u64"),
            ("messages", json!([]), "at least one"),
            ("messages", json!([{ "role": "system", "content": "x" }]), "not a role"),
            ("messages", json!([{ "role": "user" }]), "missing field `content`"),
            ("messages", json!([{ "role": "user", "content": [{ "type": "tool_result" }] }]), "id"),
            ("system", json!(3), "`content`"),
            ("thinking", json!({ "type": "enabled" }), "budget_tokens"),
            ("tool_choice", json!({ "type": "maybe" }), "maybe"),
            ("tools", json!([{}]), "`name`"),
        ] {
            let error = with(key, value).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
