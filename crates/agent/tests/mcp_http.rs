//! MCP servers over streamable HTTP.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use bakeoff_agent::{McpError, McpServer, McpServers, ToolContext, Workbench};
use bakeoff_core::{Content, Redactor};
use bakeoff_llm::{HttpRequest, HttpResponse, Transport, TransportError, TransportErrorKind};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

type Handler = dyn Fn(&str, &Value) -> (u16, &'static str, String) + Send + Sync;

/// A server in this process: status, content type and body by JSON-RPC method.
struct FakeServer {
    handler: Box<Handler>,
    /// Method, headers and JSON-RPC method of each request.
    requests: Mutex<Vec<(Method, HeaderMap, String)>>,
}

impl std::fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeServer")
    }
}

impl FakeServer {
    fn new(
        handler: impl Fn(&str, &Value) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> Arc<FakeServer> {
        Arc::new(FakeServer { handler: Box::new(handler), requests: Mutex::default() })
    }

    async fn start(self: &Arc<Self>, headers: &[(&str, &str)]) -> Result<McpServers, McpError> {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let url = "https://shop.example/mcp?key=k";
        let server = McpServer::http("shop", url, &headers, &|name| {
            (name == "SHOP_TOKEN").then(|| "token-of-the-shop".to_owned())
        });
        let mut bench = Workbench::in_folder(std::env::temp_dir());
        bench.transport = Some(Arc::clone(self) as _);
        McpServers::start(&[server.unwrap()], &bench, Duration::from_secs(30)).await
    }
}

impl Transport for FakeServer {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        self.requests.lock().unwrap().push((
            request.method.clone(),
            request.headers.clone(),
            method.clone(),
        ));
        let (status, kind, body) = (self.handler)(&method, &message);
        if status == 0 {
            let error = TransportError::new(TransportErrorKind::Connect, "connection refused");
            return std::future::ready(Err(error)).boxed();
        }
        let mut headers = HeaderMap::new();
        headers.insert("content-type", kind.parse().unwrap());
        if method == "initialize" {
            headers.insert("mcp-session-id", "s-1".parse().unwrap());
        }
        let body = stream::iter([Ok(Bytes::from(body))]).boxed();
        let status = StatusCode::from_u16(status).unwrap();
        std::future::ready(Ok(HttpResponse { status, headers, body })).boxed()
    }
}

const JSON: &str = "application/json";

fn result(message: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
}

/// Replies of a server with one tool. Tools are listed as an event stream.
fn shop(method: &str, message: &Value) -> (u16, &'static str, String) {
    match method {
        "initialize" => {
            let version = &message["params"]["protocolVersion"];
            let info = json!({ "name": "shop", "version": "1" });
            let capabilities = json!({ "tools": {} });
            let body = json!({
                "protocolVersion": version, "capabilities": capabilities, "serverInfo": info
            });
            (200, JSON, result(message, body))
        }
        "tools/list" => {
            let tool = json!({ "name": "stock", "inputSchema": { "type": "object" } });
            let body = result(message, json!({ "tools": [tool] }));
            (200, "text/event-stream", format!("event: message\ndata: {body}\n\n"))
        }
        "tools/call" => {
            let text = format!("12 boxes of {}", message["params"]["arguments"]["item"]);
            let content = json!([{ "type": "text", "text": text }]);
            (200, JSON, result(message, json!({ "content": content })))
        }
        "notifications/initialized" => (202, JSON, String::new()),
        _ => (400, "text/plain", "unknown method".to_owned()),
    }
}

async fn call(servers: &McpServers, arguments: Value) -> Result<String, String> {
    let context = ToolContext::detached(CancellationToken::new());
    let output = servers.tools()[0].execute(arguments, context).await;
    output.map(|output| Content::join_text(&output.content)).map_err(|error| error.to_string())
}

#[tokio::test]
async fn tools_of_a_server_over_http_are_listed_and_called() {
    let server = FakeServer::new(shop);
    let servers = server.start(&[("authorization", "Bearer $SHOP_TOKEN")]).await.unwrap();
    assert_eq!(servers.tools()[0].definition().name, "shop__stock");
    let answer = call(&servers, json!({ "item": "tea" })).await;
    assert_eq!(answer.as_deref(), Ok("12 boxes of \"tea\""));
    servers.close().await;
    let requests = server.requests.lock().unwrap();
    let last = requests.iter().rfind(|(_, _, method)| method == "tools/call").unwrap();
    assert_eq!(last.1["authorization"], "Bearer token-of-the-shop");
    assert_eq!(last.1["mcp-session-id"], "s-1");
    assert_eq!(last.1["accept"], "application/json, text/event-stream");
    assert!(requests.iter().any(|(method, ..)| *method == Method::DELETE), "the session ends");
}

#[tokio::test]
async fn unusable_server_is_reported_with_its_response() {
    for (status, kind, body, expected) in [
        (500, "text/plain", "out of cheese", "HTTP 500 Internal Server Error: out of cheese"),
        (401, JSON, "", "HTTP 401 Unauthorized"),
        (404, "text/html", "<html>no such page", "HTTP 404 Not Found: <html>no such page"),
        (200, "text/html", "<html>Welcome", "text/html"),
        (200, JSON, "{}", "HTTP 200 OK: {}"),
        (0, "", "", "connection refused"),
    ] {
        let server = FakeServer::new(move |_, _| (status, kind, body.to_owned()));
        let error = server.start(&[]).await.unwrap_err().to_string();
        assert!(error.starts_with("the MCP server `shop` did not initialize: "), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn server_that_fails_later_is_an_error_of_the_call() {
    let server = FakeServer::new(|method, message| match method {
        "tools/call" => (503, "text/plain", "closed for today".to_owned()),
        _ => shop(method, message),
    });
    let servers = server.start(&[]).await.unwrap();
    let error = call(&servers, json!({})).await.unwrap_err();
    assert!(error.contains("closed for today"), "{error}");
}

#[test]
fn secrets_of_a_server_are_known_to_the_redactor() {
    let environment = |name: &str| (name == "TOKEN").then(|| "token-of-the-shop".to_owned());
    let pairs = [("AUTH".to_owned(), "$TOKEN".to_owned())];
    let http = McpServer::http("a", "https://a.example", &pairs, &environment).unwrap();
    let program = McpServer::new("b", vec!["sh".into()]).environment(&pairs, &environment).unwrap();
    for server in [http, program] {
        let mut redactor = Redactor::default();
        server.add_secrets(&mut redactor);
        assert_eq!(redactor.scrub("it is token-of-the-shop".to_owned()), "it is [redacted]");
        assert!(!format!("{server:?}").contains("token-of-the-shop"), "{server:?}");
    }
    assert!(McpServer::http("a", "shop", &[], &environment).is_err());
    assert!(McpServer::http("a", "https://a.example", &pairs, &|_| None).is_err());
}
