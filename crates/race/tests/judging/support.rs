//! Races of simulated models, with their events.

use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, ContextConfig, event_channel,
};
use bakeoff_core::{Message, Prices, Usage};
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_pace::{Expense, ExpenseLimit, SharedBudget};
use bakeoff_race::{
    EvaluationStrategy, LlmJudgeEvaluation, ParallelLoopResult, RaceError, agent_loop_parallel,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A client for simulated models, which are defined as under `[sim]` in a suite.
pub(crate) struct TestClient {
    client: Arc<Client>,
}

/// A finished race.
pub(crate) struct RaceRun {
    pub(crate) result: Result<ParallelLoopResult, RaceError>,
    pub(crate) events: Vec<AgentEvent>,
}

impl TestClient {
    pub(crate) fn new(models: &str) -> TestClient {
        TestClient::with_config(models, |config| config)
    }

    /// A client with a budget in dollars.
    pub(crate) fn within(models: &str, dollars: &str) -> TestClient {
        let limit = ExpenseLimit { cost: Some(dollars.parse().unwrap()), tokens: None };
        let budget = SharedBudget::new(limit, Expense::default());
        TestClient::with_config(models, |config| config.budget(budget))
    }

    fn with_config(models: &str, adjust: impl FnOnce(ClientConfig) -> ClientConfig) -> TestClient {
        let simulator = bakeoff_sim::Config::default().models(toml::from_str(models).unwrap());
        let config = ClientConfig::default()
            .simulator(simulator)
            .simulated_models([bakeoff_check::judge::simulated_judge()]);
        TestClient { client: Arc::new(Client::new(adjust(config))) }
    }

    pub(crate) fn config(&self, name: &str) -> AgentLoopConfig {
        let model = Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap();
        AgentLoopConfig::new(&self.client, model)
    }

    /// A model with this price in dollars per million tokens of either kind.
    pub(crate) fn priced(&self, name: &str, dollars: &str) -> AgentLoopConfig {
        let price = dollars.parse().unwrap();
        let prices = Prices { input: price, output: price, ..Prices::default() };
        let config = ModelConfig::named("sim", name).prices(prices);
        AgentLoopConfig::new(&self.client, Model::resolve(&config, &|_| None).unwrap())
    }

    pub(crate) fn configs(&self, names: &[&str]) -> Vec<AgentLoopConfig> {
        names.iter().map(|name| self.config(name)).collect()
    }

    pub(crate) fn judge(&self, name: &str) -> LlmJudgeEvaluation {
        LlmJudgeEvaluation::new(self.config(name))
    }

    /// A judge with a context window of this size.
    pub(crate) fn judge_within(&self, name: &str, tokens: u64) -> LlmJudgeEvaluation {
        let context_config = Some(ContextConfig::new(tokens));
        let mut config = self.config(name);
        config.context_config = context_config;
        LlmJudgeEvaluation::new(config)
    }
}

/// Runs a race with one prompt.
pub(crate) async fn race(
    configs: Vec<AgentLoopConfig>,
    strategy: impl EvaluationStrategy + 'static,
) -> RaceRun {
    let prompts = vec![AgentMessage::user("What is it?")];
    race_in(AgentContext::default(), prompts, configs, strategy).await
}

pub(crate) async fn race_in(
    context: AgentContext,
    prompts: Vec<AgentMessage>,
    configs: Vec<AgentLoopConfig>,
    strategy: impl EvaluationStrategy + 'static,
) -> RaceRun {
    let (tx, mut events) = event_channel(100_000);
    let cancel = CancellationToken::new();
    let result =
        agent_loop_parallel(prompts, context, configs, Arc::new(strategy), tx, cancel).await;
    let mut all = Vec::new();
    while let Some(event) = events.try_recv() {
        all.push(event);
    }
    RaceRun { result, events: all }
}

impl RaceRun {
    pub(crate) fn result(&self) -> &ParallelLoopResult {
        self.result.as_ref().unwrap()
    }

    /// Returns the ids of all loops in start order.
    pub(crate) fn loops(&self) -> Vec<String> {
        let started = |event: &AgentEvent| match event {
            AgentEvent::AgentStart { loop_id, .. } => Some(loop_id.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(started).collect()
    }

    /// Returns the number of loops of a model.
    pub(crate) fn call_count(&self, segment: &str) -> usize {
        self.loops().iter().filter(|id| id.contains(&format!(".{segment}."))).count()
    }

    /// Returns the user messages in the loops of a model.
    pub(crate) fn prompts(&self, segment: &str) -> Vec<String> {
        let user_text = |event: &AgentEvent| match event {
            AgentEvent::MessageEnd { loop_id, message } if loop_id.segment() == segment => {
                matches!(**message, Message::User { .. }).then(|| message.text())
            }
            _ => None,
        };
        self.events.iter().filter_map(user_text).collect()
    }

    /// Returns the tokens of all loops of a model.
    pub(crate) fn usage(&self, segment: &str) -> Usage {
        let mut sum = Usage::default();
        for event in &self.events {
            if let AgentEvent::AgentEnd { loop_id, usage, .. } = event
                && loop_id.segment() == segment
            {
                sum += *usage;
            }
        }
        sum
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let warning = |event: &AgentEvent| match event {
            AgentEvent::ProgressMessage { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(warning).collect()
    }
}
