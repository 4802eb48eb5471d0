//! End-to-end tests over HTTP on this machine: the client, the network and the server of the simulated
//! provider, in the formats of OpenAI and Anthropic.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod support;

use bakeoff_core::{
    Content, ErrorKind, FinishReason, Message, OutputFormat, Request, Response, Thinking,
    ToolDefinition,
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
use support::prompt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Barrier;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Providers whose formats the server supports.
const FORMATS: [&str; 2] = ["openai", "anthropic"];

/// Whether to stream.
const STREAMING: [bool; 2] = [false, true];

/// A running server and a new client.
struct TestServer {
    address: SocketAddr,
    client: Client,
}

impl TestServer {
    /// Starts a server; the client does not retry, so that no test waits.
    async fn new() -> TestServer {
        TestServer::with(RetryPolicy::default().max_retries(0)).await
    }

    async fn with(retry: RetryPolicy) -> TestServer {
        let engine = Arc::new(Engine::new(Config::default()));
        let server = Server::bind(engine, ANY_PORT).await.unwrap();
        let address = server.local_addr();
        // The task ends with the runtime of the test.
        tokio::spawn(server.run(std::future::pending()));
        TestServer { address, client: client(retry) }
    }

    fn model(&self, format: &str, name: &str) -> Model {
        model(self.address, format, name)
    }

    async fn call(&self, format: &str, name: &str, request: Request) -> Result<Call, CallError> {
        self.client.call(&self.model(format, name), request, &CallContext::default()).await
    }

    /// Calls the same model in this process.
    async fn call_in_process(&self, name: &str, request: Request) -> Result<Call, CallError> {
        self.client.call(&in_process(name), request, &CallContext::default()).await
    }

    async fn response(&self, format: &str, name: &str, request: Request) -> Response {
        self.call(format, name, request).await.unwrap().response
    }
}

fn client(retry: RetryPolicy) -> Client {
    Client::new(ClientConfig::default().retry(retry))
}

fn model(address: SocketAddr, format: &str, name: &str) -> Model {
    let config =
        ModelConfig::named(format, &format!("sim/{name}")).base_url(format!("http://{address}/v1"));
    Model::resolve(&config, &|_| None).unwrap()
}

/// The same model in this process.
fn in_process(name: &str) -> Model {
    Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap()
}

fn streaming(stream: bool, request: &Request) -> Request {
    Request { stream, ..request.clone() }
}

fn thinking_text(response: &Response) -> String {
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
    let tool = ToolDefinition {
        name: "weather".into(),
        description: "Reports the weather.".into(),
        parameters,
    };
    Request { tools: vec![tool], ..prompt(text) }
}

fn with_thinking(text: &str) -> Request {
    Request { thinking: Some(Thinking::Effort("high".into())), ..prompt(text) }
}

fn with_schema(text: &str) -> Request {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "count": { "type": "integer" } },
        "required": ["name", "count"],
        "additionalProperties": false,
    });
    Request { output: Some(OutputFormat::Schema { name: "shape".into(), schema }), ..prompt(text) }
}

#[tokio::test]
async fn text_response_is_complete() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let call = server.call(format, "echo", prompt("grüezi €😀")).await.unwrap();
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
async fn system_prompt_is_sent() {
    let server = TestServer::new().await;
    // The simulated text depends on the whole prompt.
    let mut with_system = prompt("write");
    with_system.messages.insert(0, Message::system("in verse"));
    let expected =
        server.call_in_process("prose", with_system.clone()).await.unwrap().response.text();
    for format in FORMATS {
        assert_eq!(
            server.response(format, "prose", with_system.clone()).await.text(),
            expected,
            "{format}"
        );
        assert_ne!(
            server.response(format, "prose", prompt("write")).await.text(),
            expected,
            "{format}"
        );
    }
}

/// Returns a streamed response and its deltas.
async fn streamed(
    server: &TestServer,
    format: &str,
    name: &str,
    request: Request,
) -> (Response, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    let note = |delta: &Delta| deltas.lock().unwrap().push(delta.clone());
    let context = CallContext::default().on_delta(&note);
    let model = server.model(format, name);
    let call = server.client.call(&model, streaming(true, &request), &context).await.unwrap();
    (call.response, deltas.into_inner().unwrap())
}

fn joined(deltas: &[Delta], text: impl Fn(&Delta) -> Option<&str>) -> String {
    deltas.iter().filter_map(text).collect()
}

#[tokio::test]
async fn text_deltas_add_up_to_the_response() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let (response, deltas) = streamed(&server, format, "prose", prompt("write")).await;
        let text = joined(&deltas, |delta| match delta {
            Delta::Text(text) => Some(text),
            _ => None,
        });
        assert!(deltas.len() > 1, "{format}: {deltas:?}");
        assert_eq!(text, response.text(), "{format}");
    }
}

#[tokio::test]
async fn thinking_deltas_add_up_to_the_response() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let (response, deltas) = streamed(&server, format, "prose", with_thinking("write")).await;
        let text = joined(&deltas, |delta| match delta {
            Delta::Thinking(text) => Some(text),
            _ => None,
        });
        assert!(!text.is_empty(), "{format}");
        assert_eq!(text, thinking_text(&response), "{format}");
    }
}

#[tokio::test]
async fn tool_call_deltas_add_up_to_the_response() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let (response, deltas) = streamed(&server, format, "tool", with_tool("Oslo?")).await;
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
async fn tool_call_and_its_result_are_exchanged() {
    let server = TestServer::new().await;
    for format in FORMATS {
        for stream in STREAMING {
            let mut request = streaming(stream, &with_tool("Oslo?"));
            let first = server.response(format, "tool", request.clone()).await;
            assert_eq!(first.finish, FinishReason::ToolCalls, "{format}, stream {stream}");
            let call = first.tool_calls().next().unwrap().clone();
            assert_eq!(call.name, "weather");
            assert!(call.arguments["city"].is_string(), "{:?}", call.arguments);
            assert!(call.arguments["days"].is_i64(), "{:?}", call.arguments);

            request.messages.push(first.into_message());
            request.messages.push(Message::ToolResult {
                tool_call_id: call.id,
                name: call.name,
                content: vec![Content::text("rain, 7 °C")],
                is_error: false,
            });
            let second = server.response(format, "tool", request).await;
            assert_eq!(second.finish, FinishReason::Stop, "{format}, stream {stream}");
            assert_eq!(second.text(), "rain, 7 °C");
        }
    }
}

#[tokio::test]
async fn thinking_is_returned_and_counted_when_requested() {
    let server = TestServer::new().await;
    for format in FORMATS {
        for stream in STREAMING {
            let request = streaming(stream, &with_thinking("hello"));
            let with = server.response(format, "echo", request).await;
            assert!(!thinking_text(&with).is_empty(), "{format}, stream {stream}");
            assert_eq!(with.text(), "hello");
            let without =
                server.response(format, "echo", streaming(stream, &prompt("hello"))).await;
            assert_eq!(thinking_text(&without), "");
            assert!(with.usage.output > without.usage.output, "thinking is not counted");
        }
    }
}

#[tokio::test]
async fn response_follows_the_requested_schema() {
    let server = TestServer::new().await;
    for format in FORMATS {
        for stream in STREAMING {
            let request = streaming(stream, &with_schema("describe"));
            let text = server.response(format, "prose", request).await.text();
            let value: Value = serde_json::from_str(&text).unwrap();
            let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["count", "name"], "{format}, stream {stream}: {text}");
            assert!(value["name"].is_string() && value["count"].is_i64(), "{text}");
        }
    }
}

#[tokio::test]
async fn streamed_and_complete_responses_are_equal() {
    let server = TestServer::new().await;
    let short = Request { max_tokens: Some(5), ..prompt("write") };
    let requests = [
        ("prose", prompt("write")),
        ("prose", with_thinking("write")),
        ("prose", with_schema("write")),
        ("prose", short),
        ("tool", with_tool("Oslo?")),
        ("echo", prompt("")),
    ];
    for format in FORMATS {
        for (name, request) in &requests {
            let whole = server.response(format, name, request.clone()).await;
            let stream = server.response(format, name, streaming(true, request)).await;
            assert_eq!(stream.usage, whole.usage, "{format} {name}");
            assert_eq!(stream.content, whole.content, "{format} {name}");
            assert_eq!(stream.finish, whole.finish, "{format} {name}");
        }
    }
}

#[tokio::test]
async fn token_limit_is_respected() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let request = Request { max_tokens: Some(3), ..prompt(&"word ".repeat(50)) };
        let response = server.response(format, "echo", request).await;
        assert_eq!((response.finish, response.usage.output), (FinishReason::Length, 3), "{format}");
    }
}

#[tokio::test]
async fn every_status_has_the_same_kind_over_http_and_in_process() {
    use ErrorKind::*;
    let server = TestServer::new().await;
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
        let in_process = server.call_in_process(&name, prompt("hello")).await.unwrap_err().failure;
        // These errors stop the pool and have no status.
        let status = (!matches!(kind, Quota | Auth)).then_some(status);
        assert_eq!((in_process.kind, in_process.status), (kind, status), "in process");
        for format in FORMATS {
            for stream in STREAMING {
                let request = streaming(stream, &prompt("hello"));
                let failure = server.call(format, &name, request).await.unwrap_err().failure;
                assert_eq!((failure.kind, failure.status), (kind, status), "{format}");
                // The messages name the variable of the API key and the address, which differ.
                let neutral = |message: &str| {
                    let (message, _) = message.split_once(" (http://").unwrap_or((message, ""));
                    let message = message.trim_end_matches('.');
                    let words = message.split(' ').filter(|word| !word.ends_with("_API_KEY"));
                    words.collect::<Vec<_>>().join(" ")
                };
                let expected = neutral(&in_process.message);
                assert_eq!(neutral(&failure.message), expected, "{format}, {status:?}");
            }
        }
    }
}

/// Returns kind and message of the error of this model.
async fn fault(server: &TestServer, format: &str, name: &str, stream: bool) -> (ErrorKind, String) {
    // Anthropic's format has a default token limit, which would prevent an oversized response.
    let request = Request { max_tokens: Some(u64::from(u32::MAX)), ..prompt("hello") };
    let error = server.call(format, name, streaming(stream, &request)).await.unwrap_err();
    (error.failure.kind, error.to_string())
}

#[tokio::test]
async fn undecodable_body_is_malformed() {
    let server = TestServer::new().await;
    let invalid = "invalid ";
    let table = [
        ("fault-malformed", false, invalid),
        ("fault-malformed", true, invalid),
        ("fault-nonutf8", false, invalid),
        ("fault-nonutf8", true, "server-sent event is not UTF-8"),
        ("fault-empty", false, invalid),
        ("fault-huge", false, "response exceeds 8 MiB"),
        ("fault-huge", true, "response exceeds 8 MiB"),
    ];
    for format in FORMATS {
        for (name, stream, part) in table {
            let (kind, message) = fault(&server, format, name, stream).await;
            let what = format!("{format}, {name}, stream {stream}: {message}");
            assert_eq!(kind, ErrorKind::MalformedResponse, "{what}");
            assert!(message.contains(part), "{what}");
        }
    }
}

#[tokio::test]
async fn interrupted_body_is_transient() {
    let server = TestServer::new().await;
    let lost = format!("lost connection to {}", server.address);
    let table = [
        ("fault-truncated", false, lost.as_str()),
        ("fault-truncated", true, "stream ended before the response was complete"),
        ("fault-empty", true, "stream ended before the response was complete"),
    ];
    for format in FORMATS {
        for (name, stream, part) in table {
            let (kind, message) = fault(&server, format, name, stream).await;
            let what = format!("{format}, {name}, stream {stream}: {message}");
            assert_eq!(kind, ErrorKind::Transient, "{what}");
            assert!(message.contains(part), "{what}");
        }
    }
}

#[tokio::test]
async fn faults_have_the_same_kind_in_process() {
    let server = TestServer::new().await;
    for name in ["fault-malformed", "fault-truncated", "fault-nonutf8", "fault-empty"] {
        let here = server.call_in_process(name, prompt("hello")).await.unwrap_err().failure.kind;
        for format in FORMATS {
            assert_eq!(fault(&server, format, name, false).await.0, here, "{format}, {name}");
        }
    }
}

#[tokio::test]
async fn flaky_server_is_retried() {
    let retry = RetryPolicy::default().base(Duration::ZERO);
    let server = TestServer::with(retry).await;
    for format in FORMATS {
        let mut retries = 0;
        for trial in 0..16 {
            let context = CallContext::default().trial(trial);
            let model = server.model(format, "flaky-0.3");
            let call = server.client.call(&model, prompt("hello"), &context).await.unwrap();
            assert_eq!(call.response.text(), "hello");
            retries += call.retries;
        }
        assert!(retries > 0, "{format}");
    }
}

/// Returns the texts of two calls per trial.
async fn texts(client: &Client, model: &Model, request: &Request, trials: u32) -> Vec<String> {
    let mut texts = Vec::new();
    for trial in 0..trials {
        let context = CallContext::default().trial(trial);
        for _ in 0..2 {
            let call = client.call(model, request.clone(), &context).await.unwrap();
            texts.push(call.response.text());
        }
    }
    texts
}

#[tokio::test]
async fn trial_has_the_same_responses_over_http_and_in_process() {
    let server = TestServer::new().await;
    for name in ["prose", "pass-0.5"] {
        let expected = texts(&server.client, &in_process(name), &prompt("write"), 16).await;
        for format in FORMATS {
            for stream in STREAMING {
                let request = streaming(stream, &prompt("write"));
                let texts_over_http =
                    texts(&server.client, &server.model(format, name), &request, 16).await;
                assert_eq!(texts_over_http, expected, "{format}, {name}, stream {stream}");
            }
        }
    }
}

#[tokio::test]
async fn trials_and_repetitions_are_separate_samples() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let texts_over_http =
            texts(&server.client, &server.model(format, "pass-0.5"), &prompt("?"), 64).await;
        let trials: HashSet<&String> = texts_over_http.iter().step_by(2).collect();
        assert_eq!(trials.len(), 2, "{format}: all trials are equal");
        let has_different_repetitions = texts_over_http.chunks(2).any(|pair| pair[0] != pair[1]);
        assert!(has_different_repetitions, "{format}: all repetitions are equal");
    }
}

#[tokio::test]
async fn tool_calls_are_the_same_over_http_and_in_process() {
    let server = TestServer::new().await;
    let in_process = server.call_in_process("tool", with_tool("Oslo?")).await.unwrap().response;
    for format in FORMATS {
        let over_http = server.response(format, "tool", with_tool("Oslo?")).await;
        assert!(over_http.tool_calls().eq(in_process.tool_calls()), "{format}: {over_http:?}");
        assert_eq!(over_http.finish, in_process.finish);
    }
}

#[tokio::test]
async fn two_hundred_fifty_concurrent_calls_succeed() {
    let server = TestServer::new().await;
    for format in FORMATS {
        let model = server.model(format, "echo").with_limits(Limits::fixed(250));
        let calls = (0..250).map(|number| {
            let (client, model) = (&server.client, &model);
            async move {
                let text = format!("number {number}");
                let call = client.call(model, prompt(&text), &CallContext::default()).await;
                (call.map(|call| call.response.text()), text)
            }
        });
        for (text, expected) in join_all(calls).await {
            assert_eq!(text, Ok(expected), "{format}");
        }
    }
}

/// Reads one request, waits for the others, and responds.
async fn respond_together(mut stream: TcpStream, together: &Barrier) {
    let mut read = Vec::new();
    // The body is JSON and comes last, so the request is complete when it ends with a brace.
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
async fn two_hundred_fifty_calls_are_in_flight_at_once() {
    const CALLS: u32 = 250;
    let listener = TcpListener::bind(ANY_PORT).await.unwrap();
    let address = listener.local_addr().unwrap();
    let together = Arc::new(Barrier::new(CALLS as usize));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let together = Arc::clone(&together);
            tokio::spawn(async move { respond_together(stream, &together).await });
        }
    });
    // No call is answered before the last request has arrived; the timeout applies if that never happens.
    let timeout = Duration::from_secs(60);
    let client = client(RetryPolicy::default().max_retries(0).timeout(timeout));
    let model = model(address, "openai", "echo").with_limits(Limits::fixed(CALLS));
    let context = CallContext::default();
    let calls = (0..CALLS).map(|_| client.call(&model, prompt("hello"), &context));
    for call in try_join_all(calls).await.unwrap() {
        assert_eq!(call.response.text(), "together");
    }
}

#[tokio::test]
async fn connection_error_names_the_address() {
    // The port is bound, so that no other process can use it, but not listened on.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(ANY_PORT).unwrap();
    let address = socket.local_addr().unwrap();
    let client = client(RetryPolicy::default().max_retries(0));
    for format in FORMATS {
        let model = model(address, format, "echo");
        let error =
            client.call(&model, prompt("hello"), &CallContext::default()).await.unwrap_err();
        assert_eq!(error.failure.kind, ErrorKind::Transient);
        let message = error.to_string();
        assert!(message.starts_with(&format!("cannot connect to {address}: ")), "{message}");
    }
}

#[tokio::test]
async fn unknown_path_is_an_invalid_request() {
    let server = TestServer::new().await;
    let base_url = format!("http://{}/v2", server.address);
    // The message does not contain the query, which may have a key.
    let config = ModelConfig::named("openai", "sim/echo").base_url(base_url).query("key", "secret");
    let model = Model::resolve(&config, &|_| None).unwrap();
    let result = server.client.call(&model, prompt("hello"), &CallContext::default()).await;
    let failure = result.unwrap_err().failure;
    assert_eq!((failure.kind, failure.status), (ErrorKind::InvalidRequest, Some(404)));
    let path = "/v2/chat/completions";
    let expected = format!(
        "Invalid URL (POST {path}) (http://{}{path}); check base_url and the model name",
        server.address
    );
    assert_eq!(failure.message, expected);
}
