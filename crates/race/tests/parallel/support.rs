//! Simulated models, a strategy defined by a closure, and a call counter.

use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, EventReceiver, EventSender, Tool,
    ToolContext, ToolError, ToolOutput,
};
use bakeoff_core::Usage;
use bakeoff_llm::{
    Client, ClientConfig, HttpObserver, HttpRequest, HttpResponse, Model, ModelConfig, Transport,
    TransportError,
};
use bakeoff_race::{
    EvaluationDecision, EvaluationStrategy, ParallelLoopOutcome, ParallelLoopResult, RaceError,
    agent_loop_parallel,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// A client of the simulated provider that counts calls.
pub(crate) struct TestClient {
    pub(crate) client: Arc<Client>,
    calls: Arc<AtomicUsize>,
}

impl TestClient {
    /// Models are defined as under `[sim]` in a suite.
    pub(crate) fn new(models: &str) -> TestClient {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let on_http = HttpObserver::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let simulator = bakeoff_sim::Config::default().models(toml::from_str(models).unwrap());
        let config = ClientConfig::default()
            .simulator(simulator)
            .simulated_models([bakeoff_check::judge::simulated_judge()])
            .on_http(on_http);
        let client = Client::new(config.transport(Arc::new(PanickingTransport)));
        TestClient { client: Arc::new(client), calls }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn config(&self, name: &str) -> AgentLoopConfig {
        let model = Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap();
        AgentLoopConfig::new(&self.client, model)
    }

    pub(crate) fn configs(&self, names: &[&str]) -> Vec<AgentLoopConfig> {
        names.iter().map(|name| self.config(name)).collect()
    }

    /// A config whose branch panics when it makes its call.
    pub(crate) fn panicking(&self) -> AgentLoopConfig {
        let model = ModelConfig::named("openai", "broken").base_url("http://127.0.0.1:9/v1");
        AgentLoopConfig::new(&self.client, Model::resolve(&model, &|_| None).unwrap())
    }
}

/// A transport that panics.
#[derive(Debug)]
struct PanickingTransport;

impl Transport for PanickingTransport {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        panic!("transport panicked")
    }
}

/// Runs a race without event listeners.
pub(crate) async fn race(
    configs: Vec<AgentLoopConfig>,
    strategy: impl EvaluationStrategy + 'static,
) -> Result<ParallelLoopResult, RaceError> {
    let prompts = vec![AgentMessage::user("go")];
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let context = AgentContext::default();
    agent_loop_parallel(prompts, context, configs, Arc::new(strategy), tx, cancel).await
}

/// A strategy that decides with a closure.
pub(crate) struct ClosureStrategy<F>(pub(crate) F);

#[async_trait::async_trait]
impl<F> EvaluationStrategy for ClosureStrategy<F>
where
    F: Fn(&[AgentMessage], &[ParallelLoopOutcome]) -> (EvaluationDecision, Usage) + Send + Sync,
{
    async fn evaluate(
        &self,
        prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        _cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        (self.0)(prompts, outcomes)
    }
}

pub(crate) fn choose(index: usize) -> (EvaluationDecision, Usage) {
    (EvaluationDecision::select(index, "because"), Usage::default())
}

pub(crate) async fn drain(mut events: EventReceiver) -> Vec<AgentEvent> {
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        all.push(event);
    }
    all
}

/// A tool that is never called.
#[derive(Debug)]
pub(crate) struct UnusedTool(bakeoff_core::ToolDefinition);

impl Default for UnusedTool {
    fn default() -> UnusedTool {
        UnusedTool(bakeoff_core::ToolDefinition {
            name: "unused".to_owned(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object" }),
        })
    }
}

#[async_trait::async_trait]
impl Tool for UnusedTool {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.0
    }

    async fn execute(&self, _: serde_json::Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Failed("unexpected call".to_owned()))
    }
}
