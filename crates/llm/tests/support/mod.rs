//! Helpers for the client tests: a transport with scripted replies that records its requests.

#![allow(dead_code, reason = "each test file uses only a part")]

use bakeoff_core::{ErrorKind, Message, Request};
use bakeoff_llm::{
    CallError, Client, ClientConfig, HttpRequest, HttpResponse, Model, ModelConfig, Transport,
    TransportError, TransportErrorKind,
};
use bakeoff_pace::{Limits, RetryPolicy};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// API key in the environment of the tests.
pub(crate) const KEY: &str = "sk-the-key-of-the-tests-0123456789";

/// Scripted reply of the fake server.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// Status and headers; `None` never responds.
    head: Option<Result<(u16, HeaderMap), TransportError>>,
    chunks: Vec<Result<Bytes, TransportError>>,
    /// Time from the headers to the first chunk of the body.
    delay: Duration,
    /// Whether the body never ends.
    is_endless: bool,
}

impl Reply {
    pub(crate) fn status(status: u16, body: impl Into<Bytes>) -> Reply {
        Reply {
            head: Some(Ok((status, HeaderMap::new()))),
            chunks: vec![Ok(body.into())],
            delay: Duration::ZERO,
            is_endless: false,
        }
        .header("content-type", "application/json")
    }

    /// A successful response with this text.
    pub(crate) fn text(text: &str) -> Reply {
        Reply::status(200, chat_body(text).to_string())
    }

    /// An error in OpenAI's format.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Reply {
        let body = json!({ "error": { "code": code, "message": message } });
        Reply::status(status, body.to_string())
    }

    pub(crate) fn throttled(retry_after: &str) -> Reply {
        Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", retry_after)
    }

    /// A body with these chunks.
    pub(crate) fn chunks(chunks: Vec<Result<Bytes, TransportError>>) -> Reply {
        Reply { chunks, ..Reply::status(200, "") }
    }

    pub(crate) fn events(body: impl Into<Bytes>) -> Reply {
        Reply::status(200, body).header("content-type", "text/event-stream")
    }

    /// A connection that fails before the response.
    pub(crate) fn connection_error(message: &str) -> Reply {
        Reply { head: Some(Err(connection_lost(message))), ..Reply::status(0, "") }
    }

    /// A connection that cannot be established.
    pub(crate) fn unreachable(kind: TransportErrorKind, message: &str) -> Reply {
        Reply { head: Some(Err(TransportError::new(kind, message))), ..Reply::status(0, "") }
    }

    /// No response at all.
    pub(crate) fn no_response() -> Reply {
        Reply { head: None, ..Reply::status(0, "") }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Reply {
        if let Some(Ok((current, _))) = &mut self.head {
            *current = status;
        }
        self
    }

    /// Keeps the body open after its last chunk.
    pub(crate) fn endless(self) -> Reply {
        Reply { is_endless: true, ..self }
    }

    pub(crate) fn after(self, delay: Duration) -> Reply {
        Reply { delay, ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Reply {
        if let Some(Ok((_, headers))) = &mut self.head {
            let value = HeaderValue::from_str(value).unwrap();
            headers.insert(HeaderName::from_static(name), value);
        }
        self
    }
}

/// An error for a lost connection.
pub(crate) fn connection_lost(message: &str) -> TransportError {
    TransportError::new(TransportErrorKind::ConnectionLost, message)
}

/// A Chat Completions response with 10 input and 5 output tokens.
pub(crate) fn chat_body(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1",
        "model": "the-model",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": text },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}

/// The same response as events, each with its blank line.
pub(crate) fn chat_events(texts: &[&str]) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "chatcmpl-1", "choices": [choice] }))
    };
    let mut events: Vec<String> =
        texts.iter().map(|text| chunk(json!({ "content": text }), Value::Null)).collect();
    events.push(chunk(json!({}), json!("stop")));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct SentRequest {
    pub(crate) at: Instant,
    pub(crate) request: HttpRequest,
}

impl SentRequest {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.request.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the text of the user message.
    pub(crate) fn user_text(&self) -> String {
        self.body()["messages"][0]["content"].as_str().unwrap().to_owned()
    }
}

type ReplyFunction = dyn Fn(usize) -> Reply + Send + Sync;

/// A server in this process with scripted replies.
pub(crate) struct FakeServer {
    reply: Box<ReplyFunction>,
    log: Arc<Mutex<ServerLog>>,
}

#[derive(Debug, Default)]
struct ServerLog {
    sent: Vec<SentRequest>,
    in_flight: usize,
    max_in_flight: usize,
}

impl fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeServer").finish_non_exhaustive()
    }
}

impl FakeServer {
    /// Creates a server that replies by the number of the request, from 0.
    pub(crate) fn new(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Arc<FakeServer> {
        Arc::new(FakeServer { reply: Box::new(reply), log: Arc::default() })
    }

    /// Creates a server that replies to every request in the same way.
    pub(crate) fn always(reply: Reply) -> Arc<FakeServer> {
        FakeServer::new(move |_| reply.clone())
    }

    pub(crate) fn sent(&self) -> Vec<SentRequest> {
        self.log.lock().unwrap().sent.clone()
    }

    /// Returns the number of requests received.
    pub(crate) fn count(&self) -> usize {
        self.log.lock().unwrap().sent.len()
    }

    /// Returns the number of requests whose response is not complete.
    pub(crate) fn in_flight(&self) -> usize {
        self.log.lock().unwrap().in_flight
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.log.lock().unwrap().max_in_flight
    }
}

impl Transport for FakeServer {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let (number, guard) = {
            let mut log = self.log.lock().unwrap();
            log.sent.push(SentRequest { at: Instant::now(), request });
            log.in_flight += 1;
            log.max_in_flight = log.max_in_flight.max(log.in_flight);
            (log.sent.len() - 1, InFlightGuard(Arc::clone(&self.log)))
        };
        let reply = (self.reply)(number);
        async move {
            let Some(head) = reply.head else {
                let _guard = guard;
                return std::future::pending().await;
            };
            let (status, headers) = head?;
            let chunks: VecDeque<_> = reply.chunks.into();
            let (delay, is_endless) = (reply.delay, reply.is_endless);
            let body = stream::unfold(
                (chunks, delay, guard),
                move |(mut chunks, delay, guard)| async move {
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    match chunks.pop_front() {
                        Some(chunk) => Some((chunk, (chunks, Duration::ZERO, guard))),
                        None if is_endless => std::future::pending().await,
                        None => None,
                    }
                },
            );
            let status = StatusCode::from_u16(status).unwrap();
            Ok(HttpResponse { status, headers, body: body.boxed() })
        }
        .boxed()
    }
}

/// Guard that counts a request until its response is dropped.
struct InFlightGuard(Arc<Mutex<ServerLog>>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

/// An environment in which every variable contains the key.
pub(crate) fn environment(_: &str) -> Option<String> {
    Some(KEY.to_owned())
}

pub(crate) fn resolve(config: ModelConfig) -> Model {
    Model::resolve(&config, &environment).unwrap()
}

/// A model with the Chat Completions format and a fixed concurrency limit.
pub(crate) fn model() -> Model {
    resolve(ModelConfig::named("openai", "the-model")).with_limits(Limits::fixed(10))
}

pub(crate) fn model_with_connections(connections: u32) -> Model {
    model().with_limits(Limits::fixed(connections))
}

pub(crate) fn client(server: &Arc<FakeServer>) -> Client {
    client_with(server, RetryPolicy::default())
}

pub(crate) fn client_with(server: &Arc<FakeServer>, retry: RetryPolicy) -> Client {
    let transport: Arc<dyn Transport> = server.clone();
    Client::new(ClientConfig::default().transport(transport).retry(retry))
}

pub(crate) fn prompt(text: &str) -> Request {
    Request { messages: vec![Message::user(text)], ..Request::default() }
}

/// Returns kind, status and number of retries of an error.
pub(crate) fn summary(error: &CallError) -> (ErrorKind, Option<u16>, u32) {
    (error.failure.kind, error.failure.status, error.retries)
}
