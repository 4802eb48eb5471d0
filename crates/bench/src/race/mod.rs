//! Biased judges, votes that stop early, and many concurrent races, on the simulated provider, where the true
//! qualities are known.

mod bias;
mod load;
mod votes;

pub use bias::{BetterAnswerPosition, BiasReport, BiasRow};
pub use load::{CapReport, MemoryRow};
pub use votes::VoteRow;

use crate::Error;
use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_pace::{Limits, Strategy};
use bakeoff_race::{EvaluationStrategy, ParallelLoopResult, agent_loop_parallel};
use bakeoff_sim::SimModel;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Configuration of the race benchmark.
#[derive(Debug, Clone)]
pub struct RaceConfig {
    /// Races per row.
    pub races: u64,
    /// Position bias of the judge in favour of the first answer; qualities range from 0 to 1.
    pub bias: f64,
    /// Standard deviation of the judge's error per answer.
    pub noise: f64,
}

/// Results of the race benchmark.
#[derive(Debug, Clone)]
pub struct RaceReport {
    /// Biased judges.
    pub bias: BiasReport,
    /// Votes that stop early.
    pub votes: Vec<VoteRow>,
    /// Many races at a low concurrency limit.
    pub cap: CapReport,
    /// Memory and tasks after many races.
    pub memory: Vec<MemoryRow>,
}

/// Runs the race benchmark and calls `on_stage` with the name of each stage.
///
/// # Errors
///
/// Fails if a race fails.
pub async fn race(
    config: &RaceConfig,
    on_stage: &mut (dyn FnMut(&str) + Send),
) -> Result<RaceReport, Error> {
    on_stage("biased judges");
    let bias = bias::measure(config).await?;
    on_stage("votes that stop early");
    let votes = votes::measure(config.races).await?;
    on_stage("races at a concurrency limit");
    let cap = load::measure_cap().await?;
    on_stage("memory and tasks");
    let memory = load::measure_memory(config.races).await?;
    Ok(RaceReport { bias, votes, cap, memory })
}

/// Creates a client with these simulated models.
fn client(seed: u64, models: BTreeMap<String, SimModel>) -> Arc<Client> {
    let simulator = bakeoff_sim::Config::default().seed(seed).models(models);
    let judge = bakeoff_check::judge::simulated_judge();
    let config = ClientConfig::default().simulator(simulator).simulated_models([judge]);
    Arc::new(Client::new(config))
}

/// Creates the config of a simulated model. Measurements of winners use no rate limiting, because discovering the
/// limits of an unlimited provider would only add delay.
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
    let result = agent_loop_parallel(prompts, context, configs, strategy, tx, cancel).await;
    result.map_err(|error| Error::Race(error.to_string()))
}
