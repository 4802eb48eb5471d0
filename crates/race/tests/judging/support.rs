//! A race on simulated models, and what was said in it.

use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, ContextConfig, event_channel,
};
use bakeoff_core::{Message, Prices, Usage};
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_race::{
    EvaluationStrategy, LlmJudgeEvaluation, ParallelLoopResult, RaceError, agent_loop_parallel,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Simulated models with a character, as under `[sim]` in a suite.
pub(crate) struct World {
    client: Arc<Client>,
}

/// A race that is over.
pub(crate) struct Raced {
    pub(crate) result: Result<ParallelLoopResult, RaceError>,
    pub(crate) events: Vec<AgentEvent>,
}

impl World {
    pub(crate) fn new(personas: &str) -> World {
        let simulator = bakeoff_sim::Config {
            models: toml::from_str(personas).unwrap(),
            ..bakeoff_sim::Config::default()
        };
        let config = ClientConfig::default().simulator(simulator);
        World { client: Arc::new(Client::new(config)) }
    }

    pub(crate) fn config(&self, name: &str) -> AgentLoopConfig {
        let model = Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap();
        AgentLoopConfig::new(&self.client, model)
    }

    /// A model that charges so many dollars for a million tokens of either kind.
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

    /// A judge with a window of so many tokens.
    pub(crate) fn judge_within(&self, name: &str, tokens: u64) -> LlmJudgeEvaluation {
        let context_config =
            Some(ContextConfig { max_context_tokens: tokens, ..ContextConfig::default() });
        LlmJudgeEvaluation::new(AgentLoopConfig { context_config, ..self.config(name) })
    }
}

/// A race about one prompt.
pub(crate) async fn race(
    configs: Vec<AgentLoopConfig>,
    strategy: impl EvaluationStrategy + 'static,
) -> Raced {
    let prompts = vec![AgentMessage::user("What is it?")];
    race_in(AgentContext::default(), prompts, configs, strategy).await
}

pub(crate) async fn race_in(
    context: AgentContext,
    prompts: Vec<AgentMessage>,
    configs: Vec<AgentLoopConfig>,
    strategy: impl EvaluationStrategy + 'static,
) -> Raced {
    let (tx, mut events) = event_channel(100_000);
    let cancel = CancellationToken::new();
    let result =
        agent_loop_parallel(prompts, context, configs, Arc::new(strategy), tx, cancel).await;
    let mut all = Vec::new();
    while let Some(event) = events.try_recv() {
        all.push(event);
    }
    Raced { result, events: all }
}

impl Raced {
    pub(crate) fn result(&self) -> &ParallelLoopResult {
        self.result.as_ref().unwrap()
    }

    /// Ids of all loops, in the order in which they began.
    pub(crate) fn loops(&self) -> Vec<String> {
        let started = |event: &AgentEvent| match event {
            AgentEvent::AgentStart { loop_id, .. } => Some(loop_id.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(started).collect()
    }

    /// How often a model was asked.
    pub(crate) fn asked(&self, segment: &str) -> usize {
        self.loops().iter().filter(|id| id.contains(&format!(".{segment}."))).count()
    }

    /// What the user's side said in loops of a model.
    pub(crate) fn questions(&self, segment: &str) -> Vec<String> {
        let asked = |event: &AgentEvent| match event {
            AgentEvent::MessageEnd { loop_id, message } if loop_id.segment() == segment => {
                matches!(**message, Message::User { .. }).then(|| message.text())
            }
            _ => None,
        };
        self.events.iter().filter_map(asked).collect()
    }

    /// Tokens of all loops of a model.
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
