//! Do races keep what they promise? Judges with a bias, votes that stop early, many races at once;
//! on the simulated provider, where the truth is known.

mod bias;
mod load;
mod votes;

pub use bias::{BiasReport, BiasRow, Place};
pub use load::{CapReport, MemoryRow};
pub use votes::VoteRow;

use crate::Error;
use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_pace::{Limits, Strategy};
use bakeoff_race::{EvaluationStrategy, ParallelLoopResult, agent_loop_parallel};
use bakeoff_sim::Persona;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What is measured.
#[derive(Debug, Clone)]
pub struct RaceConfig {
    /// Races for each row.
    pub races: u64,
    /// How much better than it is the first answer looks to the judge; qualities are from 0 to 1.
    pub bias: f64,
    /// Standard deviation of what the judge misperceives of each answer.
    pub noise: f64,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct RaceReport {
    /// What judges chose.
    pub bias: BiasReport,
    /// What votes cost.
    pub votes: Vec<VoteRow>,
    /// Many races on few places.
    pub cap: CapReport,
    /// What many races leave behind.
    pub memory: Vec<MemoryRow>,
}

/// Measures everything; `tell` hears what is being measured.
///
/// # Errors
///
/// When a race fails that cannot.
pub async fn race(
    config: &RaceConfig,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<RaceReport, Error> {
    tell("judges with a bias");
    let bias = bias::measure(config).await?;
    tell("votes that stop early");
    let votes = votes::measure(config.races).await?;
    tell("races at a cap of requests in flight");
    let cap = load::at_a_cap().await?;
    tell("memory and tasks");
    let memory = load::memory(config.races).await?;
    Ok(RaceReport { bias, votes, cap, memory })
}

/// A client of a simulated provider with these models.
fn client(seed: u64, models: BTreeMap<String, Persona>) -> Arc<Client> {
    let simulator = bakeoff_sim::Config { seed, models, ..bakeoff_sim::Config::default() };
    Arc::new(Client::new(ClientConfig::default().simulator(simulator)))
}

/// A config of a simulated model. What is unpaced waits for nobody: where the question is who wins,
/// finding out the limits of a provider that has none is only a delay.
fn config(client: &Arc<Client>, name: &str, strategy: Strategy) -> Result<AgentLoopConfig, Error> {
    let mut limits = Limits::default();
    limits.strategy = strategy;
    let config = ModelConfig::named("sim", name).limits(limits);
    let model =
        Model::resolve(&config, &|_| None).map_err(|error| Error::Race(error.to_string()))?;
    Ok(AgentLoopConfig::new(client, model))
}

async fn run(
    configs: Vec<AgentLoopConfig>,
    strategy: Arc<dyn EvaluationStrategy>,
) -> Result<ParallelLoopResult, Error> {
    let prompts = vec![AgentMessage::user("Bake something.")];
    let (context, tx) = (AgentContext::default(), EventSender::disabled());
    let cancel = CancellationToken::new();
    let raced = agent_loop_parallel(prompts, context, configs, strategy, tx, cancel).await;
    raced.map_err(|error| Error::Race(error.to_string()))
}
