//! Tests of the server over a socket.

use super::*;
use crate::{Config, Faults, HeaderStyle, Profile, Rate, RetryHint, SimModel};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct TestResponse {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl TestResponse {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Returns the data of all JSON events.
    fn events(&self) -> Vec<Value> {
        let data = self.text().lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// Starts a server that runs until the end of the test.
async fn start(config: Config) -> SocketAddr {
    let engine = Arc::new(Engine::new(config));
    let server = Server::bind(engine, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let addr = server.local_addr();
    tokio::spawn(server.run(std::future::pending()));
    addr
}

async fn send(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: impl AsRef<[u8]>,
) -> TestResponse {
    let body = body.as_ref();
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: sim\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    TestResponse { status, head, body: answer[end + 4..].to_vec() }
}

async fn chat(addr: SocketAddr, body: Value) -> TestResponse {
    send(addr, "POST", "/v1/chat/completions", "", body.to_string()).await
}

async fn messages(addr: SocketAddr, body: Value) -> TestResponse {
    send(addr, "POST", "/v1/messages", "", body.to_string()).await
}

fn hello(model: &str) -> Value {
    json!({ "model": model, "max_tokens": 99, "messages": [{ "role": "user", "content": "hello" }] })
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

#[tokio::test]
async fn openai_answers_match_the_format() {
    let addr = start(Config::default()).await;
    let got = chat(addr, hello("sim/echo")).await;
    assert_eq!(got.status, 200);
    assert!(got.head.contains("x-request-id: req_"), "{}", got.head);
    let json = got.json();
    assert!(json["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(json["object"], "chat.completion");
    assert_eq!(json["model"], "sim/echo");
    assert_eq!(json["choices"][0]["message"]["content"], "hello");
    assert_eq!(json["choices"][0]["finish_reason"], "stop");
    assert_eq!(json["usage"]["prompt_tokens"], 2);
    assert_eq!(json["usage"]["completion_tokens"], 2);
    assert_eq!(json["usage"]["total_tokens"], 4);
    assert_eq!(json["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
    let short = send(addr, "POST", "/chat/completions", "", hello("echo").to_string());
    assert_eq!(short.await.status, 200);
}

#[tokio::test]
async fn openai_streams_text_and_usage() {
    let addr = start(Config::default()).await;
    let mut body = streamed(hello("echo"));
    body["messages"][0]["content"] = json!("a text that is longer than one piece, ä bit");
    let got = chat(addr, body.clone()).await;
    assert!(got.head.contains("text/event-stream"));
    assert!(got.text().ends_with("data: [DONE]\n\n"));
    let events = got.events();
    let text: String =
        events.iter().filter_map(|e| e["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "a text that is longer than one piece, ä bit");
    assert!(events.len() > 4);
    assert!(events.iter().all(|event| event.get("usage").is_none()));
    assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "stop");

    body["stream_options"] = json!({ "include_usage": true });
    let events = chat(addr, body).await.events();
    assert!(events[0]["usage"].is_null());
    let last = events.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(11)));
}

#[tokio::test]
async fn openai_streams_tool_calls() {
    let addr = start(Config::default()).await;
    let mut body = hello("tool");
    let parameters = json!({ "properties": { "a_rather_long_name": { "type": "string" } } });
    body["tools"] =
        json!([{ "type": "function", "function": { "name": "f", "parameters": parameters } }]);
    let plain = chat(addr, body.clone()).await.json();
    let choice = &plain["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert!(choice["message"]["content"].is_null());
    let whole = &choice["message"]["tool_calls"][0];
    assert_eq!(whole["function"]["arguments"], r#"{"a_rather_long_name":"hello"}"#);

    let events = chat(addr, streamed(body)).await.events();
    let calls: Vec<&Value> = events
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| call.is_object())
        .collect();
    assert_eq!((&calls[0]["id"], &calls[0]["function"]["name"]), (&whole["id"], &json!("f")));
    let arguments: String =
        calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(whole["function"]["arguments"], arguments);
}

#[tokio::test]
async fn anthropic_answers_match_the_format() {
    let addr = start(Config::default()).await;
    let mut body = hello("echo");
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
    let got = messages(addr, body).await;
    assert_eq!(got.status, 200);
    assert!(got.head.contains("request-id: req_"), "{}", got.head);
    let json = got.json();
    assert!(json["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!((&json["type"], &json["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(json["content"][0]["type"], "thinking");
    assert!(json["content"][0]["signature"].as_str().unwrap().starts_with("sim-"));
    assert_eq!(json["content"][1]["text"], "hello");
    assert_eq!(json["stop_reason"], "end_turn");
    assert_eq!(json["usage"]["input_tokens"], 2);
    assert_eq!(json["usage"]["cache_read_input_tokens"], 0);
}

#[tokio::test]
async fn anthropic_streams_every_block_type() {
    let addr = start(Config::default()).await;
    let mut body = streamed(hello("tool"));
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
    body["tools"] = json!([{ "name": "f", "input_schema": { "properties": { "a": {} } } }]);
    let got = messages(addr, body).await;
    let events = got.events();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["message_start", "content_block_start", "ping"]);
    assert_eq!(kinds[kinds.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let names = got.text().lines().filter_map(|line| line.strip_prefix("event: "));
    assert!(names.eq(kinds.iter().copied()));
    let joined = |kind: &str, key: &str| -> String {
        let deltas = events.iter().map(|event| &event["delta"]);
        deltas
            .filter(|delta| delta["type"] == kind)
            .filter_map(|delta| delta[key].as_str())
            .collect()
    };
    assert!(joined("thinking_delta", "thinking").starts_with("Let me think."));
    assert!(joined("signature_delta", "signature").starts_with("sim-"));
    assert_eq!(joined("input_json_delta", "partial_json"), r#"{"a":"hello"}"#);
    let delta = &events[events.len() - 2];
    assert_eq!(delta["delta"]["stop_reason"], "tool_use");
    assert!(delta["usage"]["output_tokens"].as_u64().unwrap() > 5);

    let events = messages(addr, streamed(hello("echo"))).await.events();
    assert!(events.iter().any(|event| event["delta"]["text"] == "hello"));
}

#[tokio::test]
async fn both_formats_and_the_engine_give_the_same_answer() {
    let config = Config { seed: 5, ..Config::default() };
    let engine = Engine::new(config.clone());
    let addr = start(config).await;
    let request = bakeoff_core::Request {
        model: "novelist".into(),
        messages: vec![
            bakeoff_core::Message::system("be brief"),
            bakeoff_core::Message::user("hello"),
        ],
        ..bakeoff_core::Request::default()
    };
    let text = |trial, ordinal| {
        let ask = crate::SimRequest { request: &request, trial, ordinal, now: Duration::ZERO };
        match engine.respond(&ask).outcome {
            crate::Outcome::Answer(answer) => answer.text(),
            other => panic!("{other:?}"),
        }
    };
    let mut openai = hello("sim/novelist");
    openai["messages"] = json!([
        { "role": "system", "content": "be brief" }, { "role": "user", "content": "hello" }
    ]);
    let mut anthropic = hello("novelist");
    anthropic["system"] = json!("be brief");
    for (header, trial, ordinal) in
        [("", 0, 0), ("x-bakeoff-trial: 2\r\n", 2, 0), ("x-bakeoff-trial: 2/3\r\n", 2, 3)]
    {
        let expected = text(trial, ordinal);
        let got = send(addr, "POST", "/v1/chat/completions", header, openai.to_string());
        assert_eq!(got.await.json()["choices"][0]["message"]["content"], expected);
        let got = send(addr, "POST", "/v1/messages", header, anthropic.to_string());
        assert_eq!(got.await.json()["content"][0]["text"], expected);
    }
    assert_ne!(text(2, 0), text(2, 3));
}

#[tokio::test]
async fn errors_match_the_format_of_each_provider() {
    let addr = start(Config::default()).await;
    for (status, openai, anthropic) in [
        (400, "invalid_request_error", "invalid_request_error"),
        (401, "invalid_request_error", "authentication_error"),
        (429, "requests", "rate_limit_error"),
        (500, "server_error", "api_error"),
        (529, "server_error", "overloaded_error"),
    ] {
        let model = format!("fault-{status}");
        let got = chat(addr, hello(&model)).await;
        assert_eq!((got.status, &got.json()["error"]["type"]), (status, &json!(openai)));
        let got = messages(addr, hello(&model)).await;
        let body = got.json();
        assert_eq!((got.status, &body["error"]["type"]), (status, &json!(anthropic)));
        assert_eq!(body["type"], "error");
        assert!(got.head.contains(body["request_id"].as_str().unwrap()));
    }
    for path in ["/v1/chat/completions", "/v1/messages"] {
        for body in ["", "{", "[]", "null", r#"{"model":1}"#, &"[".repeat(100_000)] {
            let got = send(addr, "POST", path, "", body).await;
            assert_eq!(got.status, 400);
            assert_eq!(got.json()["error"]["type"], "invalid_request_error");
        }
    }
    let got = send(addr, "GET", "/unknown", "", "").await;
    assert_eq!((got.status, &got.json()["error"]["code"]), (404, &json!("unknown_url")));
    assert_eq!(send(addr, "GET", "/v1/messages", "", "").await.status, 405);
}

#[tokio::test]
async fn rejections_carry_status_and_headers() {
    let profile = Profile {
        requests: Some(Rate { rate_per_s: 0.001, burst: 1.0 }),
        headers: HeaderStyle::OpenAi,
        retry_after: RetryHint::Fixed(Duration::from_secs(60)),
        ..Profile::default()
    };
    let addr = start(Config { profile: Some(profile), ..Config::default() }).await;
    let got = chat(addr, hello("echo")).await;
    assert!(got.head.contains("x-ratelimit-remaining-requests: 0"), "{}", got.head);
    let got = chat(addr, hello("echo")).await;
    assert_eq!((got.status, &got.json()["error"]["code"]), (429, &json!("rate_limit_exceeded")));
    assert!(got.head.contains("retry-after: 60"), "{}", got.head);

    let stats = send(addr, "GET", "/stats", "", "").await.json();
    assert_eq!((&stats["requests"], &stats["answered"]), (&json!(2), &json!(1)));
    assert_eq!(stats["refused"]["429"], 1);
}

#[tokio::test]
async fn each_fault_breaks_the_body() {
    let addr = start(Config::default()).await;
    let whole = chat(addr, hello("echo")).await;
    assert!(whole.head.contains("content-length"));
    for path in ["/v1/chat/completions", "/v1/messages"] {
        let get = |body: Value| async move { send(addr, "POST", path, "", body.to_string()).await };
        for fault in ["malformed", "truncated", "nonutf8", "empty"] {
            let model = format!("fault-{fault}");
            let got = get(hello(&model)).await;
            assert_eq!(got.status, 200, "{fault}");
            assert!(serde_json::from_slice::<Value>(&got.body).is_err(), "{fault}");
            // Only a body without a declared length can end early.
            assert_eq!(got.head.contains("content-length"), fault != "truncated", "{fault}");
            assert_eq!(got.body.is_empty(), fault == "empty", "{fault}");
            assert_eq!(std::str::from_utf8(&got.body).is_err(), fault == "nonutf8", "{fault}");

            let got = get(streamed(hello(&model))).await;
            let text = String::from_utf8_lossy(&got.body);
            let complete = text.contains("[DONE]") || text.contains("message_stop");
            assert_eq!(complete, fault == "nonutf8", "{fault}: {text}");
            assert_eq!(std::str::from_utf8(&got.body).is_err(), fault == "nonutf8", "{fault}");
        }
        let huge = get(hello("fault-huge")).await;
        assert!(huge.json().to_string().len() < 1000, "truncated by max_tokens");
    }
}

#[tokio::test]
async fn aborted_body_lacks_the_final_chunk() {
    let addr = start(Config::default()).await;
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let body = hello("fault-truncated").to_string();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let text = String::from_utf8(answer).unwrap();
    assert!(text.contains("transfer-encoding: chunked") && text.contains("msg_"), "{text}");
    assert!(!text.ends_with("0\r\n\r\n"), "{text}");
}

/// Starts a server whose answers have faults.
async fn start_faulty(faults: Faults) -> SocketAddr {
    let profile = Profile { faults, ..Profile::default() };
    start(Config { profile: Some(profile), ..Config::default() }).await
}

/// Opens a connection and sends a request on it.
async fn post(addr: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    write_request(&mut stream).await;
    stream
}

async fn write_request(stream: &mut TcpStream) {
    let body = hello("echo").to_string();
    let length = body.len();
    let request =
        format!("POST /v1/messages HTTP/1.1\r\nhost: sim\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((request + &body).as_bytes()).await.unwrap();
}

#[tokio::test]
async fn reset_connections_carry_no_response() {
    let addr = start_faulty(Faults { reset: 1.0, ..Faults::default() }).await;
    let mut answer = Vec::new();
    let error = post(addr).await.read_to_end(&mut answer).await.unwrap_err();
    assert_eq!((error.kind(), answer.len()), (io::ErrorKind::ConnectionReset, 0));
}

#[tokio::test]
async fn status_201_carries_an_answer() {
    let addr = start_faulty(Faults { status_201: 1.0, ..Faults::default() }).await;
    let got = chat(addr, hello("echo")).await;
    assert_eq!(got.status, 201);
    assert_eq!(got.json()["choices"][0]["message"]["content"], "hello");
    assert_eq!(chat(addr, streamed(hello("echo"))).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn stalled_requests_end_only_with_the_server() {
    let faults = Faults { stall: 1.0, ..Faults::default() };
    let profile = Some(Profile { faults, ..Profile::default() });
    let engine = Arc::new(Engine::new(Config { profile, ..Config::default() }));
    let server = Server::bind(engine, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let addr = server.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn(server.run(async { drop(stopped.await) }));
    let mut stream = post(addr).await;
    while send(addr, "GET", "/stats", "", "").await.json()["broken"] == 0 {}
    let mut byte = [0];
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, stream.read(&mut byte)).await.is_err());
    stop.send(()).unwrap();
    assert!(stream.read(&mut byte).await.is_err());
    run.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_the_first_request_of_a_connection_waits_for_its_set_up() {
    let profile = Some(Profile { connect_ms: 3_600_000.0, ..Profile::default() });
    let addr = start(Config { profile, ..Config::default() }).await;
    let started = Instant::now();
    let mut hours = Vec::new();
    let mut stream = TcpStream::connect(addr).await.unwrap();
    for _ in 0..2 {
        write_request(&mut stream).await;
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 200");
        hours.push(started.elapsed().as_secs() / 3600);
        let mut rest = Vec::new();
        while !rest.ends_with(b"}}") {
            rest.push(stream.read_u8().await.unwrap());
        }
    }
    assert_eq!(hours, [1, 1]);
}

#[tokio::test]
async fn large_requests_are_accepted_up_to_the_limit() {
    let addr = start(Config::default()).await;
    let mut body = hello("echo");
    body["padding"] = json!("x".repeat(20 << 20));
    assert_eq!(chat(addr, body).await.status, 200);

    // The server rejects the request before the body is sent, so the test sends only the header.
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let head = "POST /v1/messages HTTP/1.0\r\nhost: sim\r\ncontent-length: 33554433\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.0 413");
}

#[tokio::test]
async fn models_are_listed_for_both_clients() {
    let models = [("student".to_owned(), SimModel::default())].into();
    let addr = start(Config { models, ..Config::default() }).await;
    let list = send(addr, "GET", "/v1/models", "", "").await.json();
    let entries = list["data"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["id"] == "sim/student"));
    assert!(entries.iter().all(|entry| entry["object"] == "model" && entry["type"] == "model"));
}

#[tokio::test]
async fn shutdown_stops_the_server() {
    let engine = Arc::new(Engine::new(Config::default()));
    let server = Server::bind(engine, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let addr = server.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn(server.run(async { drop(stopped.await) }));
    assert_eq!(chat(addr, hello("echo")).await.status, 200);
    stop.send(()).unwrap();
    run.await.unwrap().unwrap();
    assert!(TcpStream::connect(addr).await.is_err());
}
