//! What the tests of the client share: a transport that says what it is told to, and remembers
//! what it was asked.

#![allow(dead_code, reason = "no file of tests uses all of it")]

use bakeoff_core::{ErrorKind, Message, Request};
use bakeoff_llm::{
    CallError, Client, ClientConfig, HttpRequest, HttpResponse, Model, ModelConfig, Transport,
    TransportError,
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

/// The key that every environment of the tests holds.
pub(crate) const KEY: &str = "sk-the-key-of-the-tests-0123456789";

/// What a fake server does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// `None` never answers.
    head: Option<Result<(u16, HeaderMap), TransportError>>,
    pieces: Vec<Result<Bytes, TransportError>>,
    /// From the head to the first piece of the body.
    delay: Duration,
    /// The body never ends.
    endless: bool,
}

impl Reply {
    pub(crate) fn status(status: u16, body: impl Into<Bytes>) -> Reply {
        Reply {
            head: Some(Ok((status, HeaderMap::new()))),
            pieces: vec![Ok(body.into())],
            delay: Duration::ZERO,
            endless: false,
        }
        .header("content-type", "application/json")
    }

    /// A good answer with this text.
    pub(crate) fn text(text: &str) -> Reply {
        Reply::status(200, chat_body(text).to_string())
    }

    /// An error as OpenAI words it.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Reply {
        let body = json!({ "error": { "code": code, "message": message } });
        Reply::status(status, body.to_string())
    }

    pub(crate) fn throttled(retry_after: &str) -> Reply {
        Reply::error(429, "rate_limit_exceeded", "slower, please")
            .header("retry-after", retry_after)
    }

    /// A body of these pieces.
    pub(crate) fn pieces(pieces: Vec<Result<Bytes, TransportError>>) -> Reply {
        Reply { pieces, ..Reply::status(200, "") }
    }

    pub(crate) fn events(body: impl Into<Bytes>) -> Reply {
        Reply::status(200, body).header("content-type", "text/event-stream")
    }

    /// The connection fails before there is an answer.
    pub(crate) fn lost(message: &str) -> Reply {
        Reply { head: Some(Err(TransportError(message.to_owned()))), ..Reply::status(0, "") }
    }

    /// Nothing ever comes back.
    pub(crate) fn silence() -> Reply {
        Reply { head: None, ..Reply::status(0, "") }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Reply {
        if let Some(Ok((own, _))) = &mut self.head {
            *own = status;
        }
        self
    }

    /// The body begins and never ends.
    pub(crate) fn endless(self) -> Reply {
        Reply { endless: true, ..self }
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

/// A Chat Completions answer; it used 10 tokens of prompt and 5 of answer.
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

/// The same answer as events, each with its blank line.
pub(crate) fn chat_events(pieces: &[&str]) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "chatcmpl-1", "choices": [choice] }))
    };
    let mut events: Vec<String> =
        pieces.iter().map(|piece| chunk(json!({ "content": piece }), Value::Null)).collect();
    events.push(chunk(json!({}), json!("stop")));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A request as it was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) request: HttpRequest,
}

impl Sent {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.request.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// What the user says in it.
    pub(crate) fn prompt(&self) -> String {
        self.body()["messages"][0]["content"].as_str().unwrap().to_owned()
    }
}

type Answerer = dyn Fn(usize) -> Reply + Send + Sync;

/// A server that exists only in this process.
pub(crate) struct Fake {
    reply: Box<Answerer>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    sent: Vec<Sent>,
    in_flight: usize,
    most_in_flight: usize,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fake").finish_non_exhaustive()
    }
}

impl Fake {
    /// Answers the request of each number, from 0.
    pub(crate) fn new(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Arc<Fake> {
        Arc::new(Fake { reply: Box::new(reply), seen: Arc::default() })
    }

    /// Answers every request the same way.
    pub(crate) fn always(reply: Reply) -> Arc<Fake> {
        Fake::new(move |_| reply.clone())
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.seen.lock().unwrap().sent.clone()
    }

    /// How many requests came.
    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().sent.len()
    }

    /// Requests whose answer somebody still waits for or reads.
    pub(crate) fn in_flight(&self) -> usize {
        self.seen.lock().unwrap().in_flight
    }

    pub(crate) fn most_in_flight(&self) -> usize {
        self.seen.lock().unwrap().most_in_flight
    }
}

impl Transport for Fake {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let (number, guard) = {
            let mut seen = self.seen.lock().unwrap();
            seen.sent.push(Sent { at: Instant::now(), request });
            seen.in_flight += 1;
            seen.most_in_flight = seen.most_in_flight.max(seen.in_flight);
            (seen.sent.len() - 1, InFlight(Arc::clone(&self.seen)))
        };
        let reply = (self.reply)(number);
        async move {
            let Some(head) = reply.head else {
                let _guard = guard;
                return std::future::pending().await;
            };
            let (status, headers) = head?;
            let pieces: VecDeque<_> = reply.pieces.into();
            let (delay, endless) = (reply.delay, reply.endless);
            let body = stream::unfold(
                (pieces, delay, guard),
                move |(mut pieces, delay, guard)| async move {
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    match pieces.pop_front() {
                        Some(piece) => Some((piece, (pieces, Duration::ZERO, guard))),
                        None if endless => std::future::pending().await,
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

/// Counts a request until its answer is dropped.
struct InFlight(Arc<Mutex<Seen>>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

/// Every variable holds the key.
pub(crate) fn environment(_: &str) -> Option<String> {
    Some(KEY.to_owned())
}

pub(crate) fn resolve(config: ModelConfig) -> Model {
    Model::resolve(&config, &environment).unwrap()
}

/// A model behind the Chat Completions format, with a window that never changes.
pub(crate) fn model() -> Model {
    resolve(ModelConfig::named("openai", "the-model")).with_limits(Limits::fixed(10))
}

pub(crate) fn model_with(connections: u32) -> Model {
    model().with_limits(Limits::fixed(connections))
}

pub(crate) fn client(fake: &Arc<Fake>) -> Client {
    client_with(fake, RetryPolicy::default())
}

pub(crate) fn client_with(fake: &Arc<Fake>, retry: RetryPolicy) -> Client {
    let transport: Arc<dyn Transport> = fake.clone();
    Client::new(ClientConfig { transport: Some(transport), retry, ..ClientConfig::default() })
}

pub(crate) fn ask(text: &str) -> Request {
    Request { messages: vec![Message::user(text)], ..Request::default() }
}

/// What an error says, in the order in which tables of tests give it.
pub(crate) fn outline(error: &CallError) -> (ErrorKind, Option<u16>, u32) {
    (error.failure.kind, error.failure.status, error.retries)
}
