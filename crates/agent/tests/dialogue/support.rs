//! A scripted provider and tools for tests.

use async_trait::async_trait;
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, EventReceiver, Tool, ToolContext, ToolError,
    ToolOutput,
};
use bakeoff_core::Prices;
use bakeoff_llm::{
    Client, ClientConfig, HttpRequest, HttpResponse, Model, ModelConfig, Transport, TransportError,
};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Reaction of the provider to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Text(&'static str),
    /// Tool calls: name and arguments.
    Calls(Vec<(&'static str, Value)>),
    /// A whole body.
    Body(Value),
    /// Server-sent events.
    Stream(Vec<String>),
    Status(u16),
    Hang,
}

/// Provider that returns the replies in order and records the requests.
#[derive(Debug, Default)]
pub(crate) struct Provider {
    replies: Mutex<VecDeque<Reply>>,
    bodies: Mutex<Vec<Value>>,
}

impl Provider {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Provider> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Provider { replies, bodies: Mutex::default() })
    }

    /// Returns the bodies of the requests, in order.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    /// Returns the messages of one request.
    pub(crate) fn messages(&self, request: usize) -> Vec<Value> {
        self.bodies()[request]["messages"].as_array().unwrap().clone()
    }

    /// Returns a config for this provider.
    pub(crate) fn config(self: &Arc<Self>) -> AgentLoopConfig {
        let transport: Arc<dyn Transport> = Arc::clone(self) as _;
        let client = Client::new(ClientConfig::default().transport(transport));
        let prices = Prices {
            input: "0.15".parse().unwrap(),
            output: "0.6".parse().unwrap(),
            ..Prices::default()
        };
        AgentLoopConfig::new(&Arc::new(client), model("gpt-4o-mini", Some(prices)))
    }
}

/// Returns a model of the scripted provider.
pub(crate) fn model(name: &str, prices: Option<Prices>) -> Model {
    let mut config = ModelConfig::named("openai", name).base_url("http://127.0.0.1:9/v1");
    config.prices = prices;
    Model::resolve(&config, &|_| None).unwrap()
}

impl Transport for Provider {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.bodies.lock().unwrap().push(serde_json::from_slice(&request.body).unwrap());
        let reply = self.replies.lock().unwrap().pop_front();
        Box::pin(async move {
            let mut status = StatusCode::OK;
            let mut headers = HeaderMap::new();
            let chunks = match reply.expect("the script has no more replies") {
                Reply::Text(text) => vec![answer(&json!({ "content": text }), "stop").to_string()],
                Reply::Calls(calls) => {
                    let calls: Vec<Value> = (1..)
                        .zip(&calls)
                        .map(|(number, (name, arguments))| {
                            json!({ "id": format!("call-{number}"), "type": "function",
                                    "function": { "name": name, "arguments": arguments.to_string() } })
                        })
                        .collect();
                    vec![answer(&json!({ "tool_calls": calls }), "tool_calls").to_string()]
                }
                Reply::Body(body) => vec![body.to_string()],
                Reply::Stream(events) => {
                    headers.insert("content-type", "text/event-stream".parse().unwrap());
                    events
                }
                Reply::Status(code) => {
                    status = StatusCode::from_u16(code).unwrap();
                    vec![json!({ "error": { "message": "no" } }).to_string()]
                }
                Reply::Hang => return std::future::pending().await,
            };
            let chunks = chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk)));
            let body = futures_util::stream::iter(chunks).boxed();
            Ok(HttpResponse { status, headers, body })
        })
    }
}

/// Returns a body in the OpenAI format with 10 input and 5 output tokens.
pub(crate) fn answer(message: &Value, finish: &str) -> Value {
    json!({
        "id": "x", "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5 }
    })
}

type Work = Box<
    dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync,
>;

/// Tool that runs a closure.
pub(crate) struct ClosureTool {
    definition: bakeoff_core::ToolDefinition,
    work: Work,
}

impl fmt::Debug for ClosureTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.definition.name)
    }
}

#[async_trait]
impl Tool for ClosureTool {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        (self.work)(arguments, context).await
    }
}

/// Creates a tool with one required argument, the integer `n`.
pub(crate) fn tool<F>(
    name: &str,
    work: impl Fn(Value, ToolContext) -> F + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(ClosureTool {
        definition: bakeoff_core::ToolDefinition {
            name: name.to_owned(),
            description: "For tests.".to_owned(),
            parameters: json!({
                "type": "object", "properties": { "n": { "type": "integer" } },
                "required": ["n"], "additionalProperties": false
            }),
        },
        work: Box::new(move |arguments, context| Box::pin(work(arguments, context))),
    })
}

/// Creates a tool that doubles its argument.
pub(crate) fn double() -> Arc<dyn Tool> {
    tool("double", |arguments, _| async move {
        Ok((arguments["n"].as_i64().unwrap_or_default() * 2).to_string().into())
    })
}

pub(crate) fn with_tools(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> AgentContext {
    AgentContext::default().with_tools(tools.into_iter().collect())
}

/// Receives all events until the senders are dropped.
pub(crate) async fn drain(mut events: EventReceiver) -> Vec<AgentEvent> {
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        all.push(event);
    }
    all
}

/// Returns the name of an event in JSON.
pub(crate) fn kind(event: &AgentEvent) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}
