//! Parsing of Chat Completions requests.

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
    messages: Vec<WireMessage>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    stop: Option<Value>,
    seed: Option<i64>,
    reasoning_effort: Option<String>,
    response_format: Option<Value>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage {
    role: String,
    #[serde(default)]
    content: Value,
    tool_calls: Option<Vec<WireCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct WireCall {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

/// Parses a request body.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedRequest, String> {
    let fields: Body = body(bytes)?;
    if fields.messages.is_empty() {
        return Err("`messages` must not be empty".into());
    }
    let mut messages = Vec::with_capacity(fields.messages.len());
    for message in fields.messages {
        let message = convert_message(message, &messages)?;
        messages.push(message);
    }
    let tools = fields.tools.unwrap_or_default();
    let request = Request {
        model: fields.model,
        messages,
        tools: tools.into_iter().filter_map(tool).collect::<Result<_, _>>()?,
        tool_choice: fields.tool_choice.map(tool_choice).transpose()?.flatten(),
        max_tokens: fields.max_completion_tokens.or(fields.max_tokens),
        temperature: fields.temperature,
        top_p: fields.top_p,
        stop: texts(fields.stop, "stop")?,
        seed: fields.seed.and_then(|seed| u64::try_from(seed).ok()),
        thinking: fields.reasoning_effort.map(Thinking::Effort),
        output: fields.response_format.map(output).transpose()?.flatten(),
        stream: fields.stream.unwrap_or(false),
        extra: serde_json::Map::new(),
    };
    let include_usage = fields.stream_options.and_then(|options| options.include_usage);
    Ok(ParsedRequest { request, include_usage: include_usage.unwrap_or(false) })
}

fn convert_message(message: WireMessage, before: &[Message]) -> Result<Message, String> {
    let mut content = content(message.content, part)?;
    match message.role.as_str() {
        "system" | "developer" => Ok(Message::System { content }),
        "user" => Ok(Message::User { content }),
        "assistant" => {
            for WireCall { id, function: Function { name, arguments } } in
                message.tool_calls.unwrap_or_default()
            {
                let arguments =
                    serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                content.push(Content::ToolCall(ToolCall { id, name, arguments }));
            }
            Ok(Message::Assistant { content })
        }
        "tool" => {
            let tool_call_id = message.tool_call_id.ok_or("`tool_call_id` is missing")?;
            let name = tool_name(before, &tool_call_id);
            Ok(Message::ToolResult { tool_call_id, name, content, is_error: false })
        }
        role => Err(format!("`{role}` is not a role")),
    }
}

fn part(value: Value) -> Result<Content, String> {
    match string(&value, "type")?.as_str() {
        "text" => Ok(Content::Text { text: string(&value, "text")? }),
        "image_url" => {
            let image = value.get("image_url").ok_or("`image_url` is missing")?;
            Ok(Content::Image { source: image_source(string(image, "url")?) })
        }
        "input_audio" => Ok(audio(&value).unwrap_or(Content::Opaque { value })),
        "file" => Ok(file(&value).unwrap_or(Content::Opaque { value })),
        _ => Ok(Content::Opaque { value }),
    }
}

fn image_source(url: String) -> ImageSource {
    match inline_data(&url) {
        Some((media_type, data)) => {
            ImageSource::Base64 { media_type: media_type.into(), data: data.into() }
        }
        None => ImageSource::Url { url },
    }
}

/// Parses a recording.
fn audio(part: &Value) -> Option<Content> {
    let audio = part.get("input_audio")?;
    let media_type = match audio.get("format")?.as_str()? {
        "mp3" => "audio/mpeg".to_owned(),
        format => format!("audio/{format}"),
    };
    let data = audio.get("data")?.as_str()?.to_owned();
    Some(Content::File { name: String::new(), media_type, data })
}

/// Parses a document in the request; `None` for one that the provider stores.
fn file(part: &Value) -> Option<Content> {
    let file = part.get("file")?;
    let (media_type, data) = inline_data(file.get("file_data")?.as_str()?)?;
    let name = string(file, "filename").unwrap_or_default();
    Some(Content::File { name, media_type: media_type.into(), data: data.into() })
}

/// Returns the media type and the base64 data of a `data:` URL.
fn inline_data(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Parses a tool; returns `None` for types other than functions, which the simulated models never call.
fn tool(value: Value) -> Option<Result<ToolDefinition, String>> {
    let function = value.get("function")?;
    let text = |key| function.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(string(function, "name").map(|name| ToolDefinition {
        name,
        description: text("description"),
        parameters: function.get("parameters").cloned().unwrap_or_else(|| json!({})),
    }))
}

fn tool_choice(value: Value) -> Result<Option<ToolChoice>, String> {
    match &value {
        Value::Null => Ok(None),
        Value::String(choice) => match choice.as_str() {
            "auto" => Ok(Some(ToolChoice::Auto)),
            "required" => Ok(Some(ToolChoice::Required)),
            "none" => Ok(Some(ToolChoice::None)),
            choice => Err(format!("`{choice}` is not a tool choice")),
        },
        value => {
            let function = value.get("function").ok_or("`tool_choice.function` is missing")?;
            Ok(Some(ToolChoice::Tool(string(function, "name")?)))
        }
    }
}

fn output(value: Value) -> Result<Option<OutputFormat>, String> {
    if value.is_null() {
        return Ok(None);
    }
    match string(&value, "type")?.as_str() {
        "text" => Ok(None),
        "json_object" => Ok(Some(OutputFormat::Json)),
        "json_schema" => {
            let format = value.get("json_schema").ok_or("`json_schema` is missing")?;
            let schema = format.get("schema").cloned().unwrap_or_else(|| json!({}));
            Ok(Some(OutputFormat::Schema { name: string(format, "name")?, schema }))
        }
        kind => Err(format!("`{kind}` is not a response format")),
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
            "messages": [
                { "role": "developer", "content": "be brief" },
                { "role": "user", "content": [
                    { "type": "text", "text": "look" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    { "type": "image_url", "image_url": { "url": "https://x/y.png" } },
                    { "type": "input_audio", "input_audio": {} },
                ] },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "1", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } },
                    { "id": "2", "type": "function", "function": { "name": "g", "arguments": "{" } },
                ] },
                { "role": "tool", "tool_call_id": "1", "content": "done" },
            ],
            "tools": [
                { "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } },
                { "type": "custom", "custom": { "name": "c" } },
            ],
            "tool_choice": { "type": "function", "function": { "name": "f" } },
            "max_tokens": 9, "max_completion_tokens": 7, "temperature": 0.5, "top_p": 0.9,
            "stop": "END", "seed": 3, "reasoning_effort": "low", "stream": true, "user": "u",
            "response_format": { "type": "json_schema", "json_schema": { "name": "s", "schema": {} } },
        }))
        .unwrap();
        let call = |id: &str, name: &str, arguments: Value| {
            Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
        };
        let base64 = ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() };
        let expected = Request {
            model: "m".into(),
            messages: vec![
                Message::system("be brief"),
                Message::User {
                    content: vec![
                        Content::text("look"),
                        Content::Image { source: base64 },
                        Content::Image {
                            source: ImageSource::Url { url: "https://x/y.png".into() },
                        },
                        Content::Opaque {
                            value: json!({ "type": "input_audio", "input_audio": {} }),
                        },
                    ],
                },
                Message::Assistant {
                    content: vec![call("1", "f", json!({ "a": 1 })), call("2", "g", json!("{"))],
                },
                Message::ToolResult {
                    tool_call_id: "1".into(),
                    name: "f".into(),
                    content: vec![Content::text("done")],
                    is_error: false,
                },
            ],
            tools: vec![ToolDefinition {
                name: "f".into(),
                description: String::new(),
                parameters: json!({ "type": "object" }),
            }],
            tool_choice: Some(ToolChoice::Tool("f".into())),
            max_tokens: Some(7),
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(3),
            thinking: Some(Thinking::Effort("low".into())),
            output: Some(OutputFormat::Schema { name: "s".into(), schema: json!({}) }),
            stream: true,
            extra: serde_json::Map::new(),
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn invalid_requests_are_rejected_with_a_reason() {
        let user = json!([{ "role": "user", "content": "hi" }]);
        for (body, part) in [
            (json!({ "messages": user }), "missing field `model`"),
            (json!({ "model": 3, "messages": user }), "invalid type: integer"),
            (json!({ "model": "m", "messages": [] }), "must not be empty"),
            (json!({ "model": "m", "messages": [{ "role": "bot" }] }), "not a role"),
            (json!({ "model": "m", "messages": [{ "role": "user", "content": 3 }] }), "`content`"),
            (json!({ "model": "m", "messages": [{ "role": "user", "content": [3] }] }), "`type`"),
            (json!({ "model": "m", "messages": [{ "role": "tool" }] }), "`tool_call_id`"),
            (json!({ "model": "m", "messages": user, "max_tokens": -1 }), "-1"),
            (json!({ "model": "m", "messages": user, "stop": [1] }), "`stop`"),
            (json!({ "model": "m", "messages": user, "tool_choice": "maybe" }), "maybe"),
            (json!({ "model": "m", "messages": user, "tools": [{ "function": {} }] }), "`name`"),
            (
                json!({ "model": "m", "messages": user, "response_format": { "type": "xml" } }),
                "xml",
            ),
        ] {
            let error = request(body).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(parse(b"{").unwrap_err().contains("could not parse"));
        assert!(parse(&[0xff]).is_err());
    }
}
