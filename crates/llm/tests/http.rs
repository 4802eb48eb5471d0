//! From end to end over real HTTP on this machine: the client, the network, and the simulated
//! provider behind its server, in the formats of OpenAI and Anthropic.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod support;

use bakeoff_core::{
    Content, ErrorKind, FinishReason, Message, OutputFormat, Request, Response, Thinking, Tool,
};
use bakeoff_llm::{Call, CallContext, CallError, Client, ClientConfig, Delta, Model, ModelConfig};
use bakeoff_pace::{Limits, RetryPolicy};
use bakeoff_sim::{Config, Engine, Server};
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::ask;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Barrier;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The provider whose format is spoken.
const FORMATS: [&str; 2] = ["openai", "anthropic"];

/// Whether to stream.
const WAYS: [bool; 2] = [false, true];

/// A running server and a client that has never called it.
struct Stage {
    address: SocketAddr,
    client: Client,
}

impl Stage {
    /// Nothing is retried, so that no test waits.
    async fn new() -> Stage {
        Stage::with(RetryPolicy { max_retries: Some(0), ..RetryPolicy::default() }).await
    }

    async fn with(retry: RetryPolicy) -> Stage {
        let engine = Arc::new(Engine::new(Config::default()));
        let server = Server::bind(engine, ANY_PORT).await.unwrap();
        let address = server.local_addr();
        // It ends with the test's runtime.
        tokio::spawn(server.run(std::future::pending()));
        Stage { address, client: client(retry) }
    }

    fn model(&self, format: &str, name: &str) -> Model {
        model(self.address, format, name)
    }

    async fn call(&self, format: &str, name: &str, request: Request) -> Result<Call, CallError> {
        self.client.call(&self.model(format, name), request, &CallContext::default()).await
    }

    /// Calls the same model in this process.
    async fn call_here(&self, name: &str, request: Request) -> Result<Call, CallError> {
        self.client.call(&local(name), request, &CallContext::default()).await
    }

    async fn answer(&self, format: &str, name: &str, request: Request) -> Response {
        self.call(format, name, request).await.unwrap().response
    }
}

fn client(retry: RetryPolicy) -> Client {
    Client::new(ClientConfig { retry, ..ClientConfig::default() })
}

fn model(address: SocketAddr, format: &str, name: &str) -> Model {
    let base_url = Some(format!("http://{address}/v1"));
    let config = ModelConfig { base_url, ..ModelConfig::named(format, &format!("sim/{name}")) };
    Model::resolve(&config, &|_| None).unwrap()
}

/// The same model in this process.
fn local(name: &str) -> Model {
    Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap()
}

fn streaming(stream: bool, request: &Request) -> Request {
    Request { stream, ..request.clone() }
}

fn thoughts(response: &Response) -> String {
    let parts = response.content.iter().filter_map(|part| match part {
        Content::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    parts.collect()
}

fn with_tool(text: &str) -> Request {
    let parameters = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
        "required": ["city", "days"],
    });
    let tool =
        Tool { name: "weather".into(), description: "Tells the weather.".into(), parameters };
    Request { tools: vec![tool], ..ask(text) }
}

fn thinking(text: &str) -> Request {
    Request { thinking: Some(Thinking::Effort("high".into())), ..ask(text) }
}

fn shaped(text: &str) -> Request {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "count": { "type": "integer" } },
        "required": ["name", "count"],
        "additionalProperties": false,
    });
    Request { output: Some(OutputFormat::Schema { name: "shape".into(), schema }), ..ask(text) }
}

#[tokio::test]
async fn a_plain_answer() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let call = stage.call(format, "echo", ask("grüezi €😀")).await.unwrap();
        let response = &call.response;
        assert_eq!(response.text(), "grüezi €😀", "{format}");
        assert_eq!(response.finish, FinishReason::Stop);
        assert_eq!(response.model.as_deref(), Some("sim/echo"));
        assert!(response.usage.input > 0 && response.usage.output > 0, "{:?}", response.usage);
        assert!(!call.cached && call.retries == 0 && call.cost.is_some());
        let id = if format == "openai" { "x-request-id" } else { "request-id" };
        assert!(call.headers.contains_key(id), "{format}: {:?}", call.headers);
    }
}

#[tokio::test]
async fn the_system_prompt_arrives() {
    let stage = Stage::new().await;
    // What the simulated author writes depends on every word it was told.
    let mut told = ask("write");
    told.messages.insert(0, Message::system("in verse"));
    let expected = stage.call_here("prose", told.clone()).await.unwrap().response.text();
    for format in FORMATS {
        assert_eq!(stage.answer(format, "prose", told.clone()).await.text(), expected, "{format}");
        assert_ne!(stage.answer(format, "prose", ask("write")).await.text(), expected, "{format}");
    }
}

/// A streamed answer and its pieces.
async fn streamed(
    stage: &Stage,
    format: &str,
    name: &str,
    request: Request,
) -> (Response, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    let note = |delta: &Delta| deltas.lock().unwrap().push(delta.clone());
    let context = CallContext { on_delta: Some(&note), ..CallContext::default() };
    let model = stage.model(format, name);
    let call = stage.client.call(&model, streaming(true, &request), &context).await.unwrap();
    (call.response, deltas.into_inner().unwrap())
}

fn joined(deltas: &[Delta], piece: impl Fn(&Delta) -> Option<&str>) -> String {
    deltas.iter().filter_map(piece).collect()
}

#[tokio::test]
async fn the_pieces_of_a_stream_are_its_text() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let (response, deltas) = streamed(&stage, format, "prose", ask("write")).await;
        let text = joined(&deltas, |delta| match delta {
            Delta::Text(text) => Some(text),
            _ => None,
        });
        assert!(deltas.len() > 1, "{format}: {deltas:?}");
        assert_eq!(text, response.text(), "{format}");
    }
}

#[tokio::test]
async fn the_pieces_of_a_stream_are_its_thoughts() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let (response, deltas) = streamed(&stage, format, "prose", thinking("write")).await;
        let text = joined(&deltas, |delta| match delta {
            Delta::Thinking(text) => Some(text),
            _ => None,
        });
        assert!(!text.is_empty(), "{format}");
        assert_eq!(text, thoughts(&response), "{format}");
    }
}

#[tokio::test]
async fn the_pieces_of_a_stream_are_its_tool_call() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let (response, deltas) = streamed(&stage, format, "tool", with_tool("Oslo?")).await;
        let call = response.tool_calls().next().unwrap();
        let start = Delta::ToolCallStart { index: 0, id: call.id.clone(), name: "weather".into() };
        assert!(deltas.contains(&start), "{format}: {deltas:?}");
        let json = joined(&deltas, |delta| match delta {
            Delta::ToolCallArguments { json, .. } => Some(json),
            _ => None,
        });
        let arguments: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(arguments, call.arguments, "{format}");
    }
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_read() {
    let stage = Stage::new().await;
    for format in FORMATS {
        for stream in WAYS {
            let mut request = streaming(stream, &with_tool("Oslo?"));
            let asked = stage.answer(format, "tool", request.clone()).await;
            assert_eq!(asked.finish, FinishReason::ToolCalls, "{format}, stream {stream}");
            let call = asked.tool_calls().next().unwrap().clone();
            assert_eq!(call.name, "weather");
            assert!(call.arguments["city"].is_string(), "{:?}", call.arguments);
            assert!(call.arguments["days"].is_i64(), "{:?}", call.arguments);

            request.messages.push(asked.into_message());
            request.messages.push(Message::ToolResult {
                tool_call_id: call.id,
                name: call.name,
                content: vec![Content::text("rain, 7 °C")],
                is_error: false,
            });
            let told = stage.answer(format, "tool", request).await;
            assert_eq!(told.finish, FinishReason::Stop, "{format}, stream {stream}");
            assert_eq!(told.text(), "rain, 7 °C");
        }
    }
}

#[tokio::test]
async fn a_model_thinks_when_it_is_told_to() {
    let stage = Stage::new().await;
    for format in FORMATS {
        for stream in WAYS {
            let request = streaming(stream, &thinking("hello"));
            let thought = stage.answer(format, "echo", request).await;
            assert!(!thoughts(&thought).is_empty(), "{format}, stream {stream}");
            assert_eq!(thought.text(), "hello");
            let quick = stage.answer(format, "echo", streaming(stream, &ask("hello"))).await;
            assert_eq!(thoughts(&quick), "");
            assert!(thought.usage.output > quick.usage.output, "thinking is not counted");
        }
    }
}

#[tokio::test]
async fn an_answer_has_the_shape_that_was_asked_for() {
    let stage = Stage::new().await;
    for format in FORMATS {
        for stream in WAYS {
            let request = streaming(stream, &shaped("describe"));
            let text = stage.answer(format, "prose", request).await.text();
            let value: Value = serde_json::from_str(&text).unwrap();
            let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["count", "name"], "{format}, stream {stream}: {text}");
            assert!(value["name"].is_string() && value["count"].is_i64(), "{text}");
        }
    }
}

#[tokio::test]
async fn a_stream_and_a_whole_answer_are_the_same() {
    let stage = Stage::new().await;
    let short = Request { max_tokens: Some(5), ..ask("write") };
    let requests = [
        ("prose", ask("write")),
        ("prose", thinking("write")),
        ("prose", shaped("write")),
        ("prose", short),
        ("tool", with_tool("Oslo?")),
        ("echo", ask("")),
    ];
    for format in FORMATS {
        for (name, request) in &requests {
            let whole = stage.answer(format, name, request.clone()).await;
            let stream = stage.answer(format, name, streaming(true, request)).await;
            assert_eq!(stream.usage, whole.usage, "{format} {name}");
            assert_eq!(stream.content, whole.content, "{format} {name}");
            assert_eq!(stream.finish, whole.finish, "{format} {name}");
        }
    }
}

#[tokio::test]
async fn a_bound_on_tokens_is_kept() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let request = Request { max_tokens: Some(3), ..ask(&"word ".repeat(50)) };
        let response = stage.answer(format, "echo", request).await;
        assert_eq!((response.finish, response.usage.output), (FinishReason::Length, 3), "{format}");
    }
}

#[tokio::test]
async fn every_error_of_the_server_is_of_its_kind() {
    use ErrorKind::*;
    let stage = Stage::new().await;
    let table = [
        (301, InvalidRequest),
        (400, InvalidRequest),
        (401, Auth),
        (402, Quota),
        (403, Auth),
        (404, InvalidRequest),
        (408, Transient),
        (409, Transient),
        (413, ContextOverflow),
        (422, InvalidRequest),
        (429, RateLimit),
        (500, Transient),
        (502, Transient),
        (503, Transient),
        (529, Transient),
    ];
    for (status, kind) in table {
        let name = format!("fault-{status}");
        let here = stage.call_here(&name, ask("hello")).await.unwrap_err().failure;
        assert_eq!((here.kind, here.status), (kind, Some(status)), "in this process");
        for format in FORMATS {
            for stream in WAYS {
                let request = streaming(stream, &ask("hello"));
                let failure = stage.call(format, &name, request).await.unwrap_err().failure;
                // Once a quota is known to be used up, nobody asks again.
                let status = failure.status.or((kind == Quota).then_some(status));
                assert_eq!((failure.kind, status), (kind, here.status), "{format}");
                assert_eq!(failure.message, here.message, "{format}, {status:?}");
            }
        }
    }
}

/// The kind and message of what this model gives.
async fn fault(stage: &Stage, format: &str, name: &str, stream: bool) -> (ErrorKind, String) {
    // Anthropic's format always has a bound, and nothing is huge within the default one.
    let request = Request { max_tokens: Some(u64::from(u32::MAX)), ..ask("hello") };
    let error = stage.call(format, name, streaming(stream, &request)).await.unwrap_err();
    (error.failure.kind, error.to_string())
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_malformed() {
    let stage = Stage::new().await;
    let promise = "is not what the format promises";
    let table = [
        ("fault-malformed", false, promise),
        ("fault-malformed", true, promise),
        ("fault-nonutf8", false, promise),
        ("fault-nonutf8", true, "a server-sent event is not UTF-8"),
        ("fault-empty", false, promise),
        ("fault-huge", false, "the answer is longer than 8 MiB"),
        ("fault-huge", true, "the answer is longer than 8 MiB"),
    ];
    for format in FORMATS {
        for (name, stream, part) in table {
            let (kind, message) = fault(&stage, format, name, stream).await;
            let what = format!("{format}, {name}, stream {stream}: {message}");
            assert_eq!(kind, ErrorKind::MalformedResponse, "{what}");
            assert!(message.contains(part), "{what}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_lost() {
    let stage = Stage::new().await;
    let lost = format!("lost the connection to {}", stage.address);
    let table = [
        ("fault-truncated", false, lost.as_str()),
        ("fault-truncated", true, "the stream ended before the answer did"),
        ("fault-empty", true, "the stream ended before the answer did"),
    ];
    for format in FORMATS {
        for (name, stream, part) in table {
            let (kind, message) = fault(&stage, format, name, stream).await;
            let what = format!("{format}, {name}, stream {stream}: {message}");
            assert_eq!(kind, ErrorKind::Transient, "{what}");
            assert!(message.contains(part), "{what}");
        }
    }
}

#[tokio::test]
async fn faults_are_of_the_same_kind_in_this_process() {
    let stage = Stage::new().await;
    for name in ["fault-malformed", "fault-truncated", "fault-nonutf8", "fault-empty"] {
        let here = stage.call_here(name, ask("hello")).await.unwrap_err().failure.kind;
        for format in FORMATS {
            assert_eq!(fault(&stage, format, name, false).await.0, here, "{format}, {name}");
        }
    }
}

#[tokio::test]
async fn a_server_that_fails_now_and_then_is_asked_again() {
    let retry = RetryPolicy { base: Duration::ZERO, ..RetryPolicy::default() };
    let stage = Stage::with(retry).await;
    for format in FORMATS {
        let mut retries = 0;
        for trial in 0..16 {
            let context = CallContext { trial, ..CallContext::default() };
            let model = stage.model(format, "flaky-0.3");
            let call = stage.client.call(&model, ask("hello"), &context).await.unwrap();
            assert_eq!(call.response.text(), "hello");
            retries += call.retries;
        }
        assert!(retries > 0, "{format}");
    }
}

/// The text of every answer in the trials, and of the repetitions in them.
async fn texts(client: &Client, model: &Model, request: &Request, trials: u32) -> Vec<String> {
    let mut texts = Vec::new();
    for trial in 0..trials {
        let context = CallContext { trial, ..CallContext::default() };
        for _ in 0..2 {
            let call = client.call(model, request.clone(), &context).await.unwrap();
            texts.push(call.response.text());
        }
    }
    texts
}

#[tokio::test]
async fn a_trial_has_the_same_answers_wherever_it_is_asked() {
    let stage = Stage::new().await;
    for name in ["prose", "pass-0.5"] {
        let expected = texts(&stage.client, &local(name), &ask("write"), 16).await;
        for format in FORMATS {
            for stream in WAYS {
                let request = streaming(stream, &ask("write"));
                let given = texts(&stage.client, &stage.model(format, name), &request, 16).await;
                assert_eq!(given, expected, "{format}, {name}, stream {stream}");
            }
        }
    }
}

#[tokio::test]
async fn trials_and_repetitions_have_answers_of_their_own() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let given = texts(&stage.client, &stage.model(format, "pass-0.5"), &ask("?"), 64).await;
        let trials: HashSet<&String> = given.iter().step_by(2).collect();
        assert_eq!(trials.len(), 2, "{format}: all trials say the same");
        let repeats = given.chunks(2).any(|pair| pair[0] != pair[1]);
        assert!(repeats, "{format}: repetitions always say the same");
    }
}

#[tokio::test]
async fn a_tool_conversation_is_the_same_wherever_it_is_held() {
    let stage = Stage::new().await;
    let here = stage.call_here("tool", with_tool("Oslo?")).await.unwrap().response;
    for format in FORMATS {
        let there = stage.answer(format, "tool", with_tool("Oslo?")).await;
        assert!(there.tool_calls().eq(here.tool_calls()), "{format}: {there:?}");
        assert_eq!(there.finish, here.finish);
    }
}

#[tokio::test]
async fn two_hundred_and_fifty_calls_at_once_are_all_answered() {
    let stage = Stage::new().await;
    for format in FORMATS {
        let model = stage.model(format, "echo").with_limits(Limits::fixed(250));
        let calls = (0..250).map(|number| {
            let (client, model) = (&stage.client, &model);
            async move {
                let text = format!("number {number}");
                let call = client.call(model, ask(&text), &CallContext::default()).await;
                (call.map(|call| call.response.text()), text)
            }
        });
        for (said, expected) in join_all(calls).await {
            assert_eq!(said, Ok(expected), "{format}");
        }
    }
}

/// Reads one request, waits for the others, and answers.
async fn answer_together(mut stream: TcpStream, together: &Barrier) {
    let mut read = Vec::new();
    // The body is JSON and comes last, so the request is whole when it ends with its brace.
    while !(read.windows(4).any(|end| end == b"\r\n\r\n") && read.ends_with(b"}")) {
        if stream.read_buf(&mut read).await.unwrap() == 0 {
            return;
        }
    }
    together.wait().await;
    let body = support::chat_body("together").to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

#[tokio::test]
async fn two_hundred_and_fifty_calls_are_in_flight_at_the_same_time() {
    const MANY: u32 = 250;
    let listener = TcpListener::bind(ANY_PORT).await.unwrap();
    let address = listener.local_addr().unwrap();
    let together = Arc::new(Barrier::new(MANY as usize));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let together = Arc::clone(&together);
            tokio::spawn(async move { answer_together(stream, &together).await });
        }
    });
    // Nobody is answered before the last has asked; the deadline is for when that never happens.
    let timeout = Duration::from_secs(60);
    let client = client(RetryPolicy { max_retries: Some(0), timeout, ..RetryPolicy::default() });
    let model = model(address, "openai", "echo").with_limits(Limits::fixed(MANY));
    let context = CallContext::default();
    let calls = (0..MANY).map(|_| client.call(&model, ask("hello"), &context));
    for call in try_join_all(calls).await.unwrap() {
        assert_eq!(call.response.text(), "together");
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named() {
    // Taken, so that nobody else can have it, and never listened on.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(ANY_PORT).unwrap();
    let address = socket.local_addr().unwrap();
    let client = client(RetryPolicy { max_retries: Some(0), ..RetryPolicy::default() });
    for format in FORMATS {
        let model = model(address, format, "echo");
        let error = client.call(&model, ask("hello"), &CallContext::default()).await.unwrap_err();
        assert_eq!(error.failure.kind, ErrorKind::Transient);
        let message = error.to_string();
        assert!(message.starts_with(&format!("cannot connect to {address}: ")), "{message}");
    }
}

#[tokio::test]
async fn a_path_that_is_not_there_is_an_invalid_request() {
    let stage = Stage::new().await;
    let base_url = Some(format!("http://{}/v2", stage.address));
    let config = ModelConfig { base_url, ..ModelConfig::named("openai", "sim/echo") };
    let model = Model::resolve(&config, &|_| None).unwrap();
    let error = stage.client.call(&model, ask("hello"), &CallContext::default()).await;
    let failure = error.unwrap_err().failure;
    assert_eq!((failure.kind, failure.status), (ErrorKind::InvalidRequest, Some(404)));
    assert_eq!(failure.message, "Invalid URL (POST /v2/chat/completions)");
}
