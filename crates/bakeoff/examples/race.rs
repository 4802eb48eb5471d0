//! Races three configs with a custom strategy and continues with the winner.
//!
//! `cargo run --example race --no-default-features --features race`

#![allow(clippy::print_stdout, reason = "the output of the example")]

use bakeoff::agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
use bakeoff::core::Usage;
use bakeoff::llm::{Client, Model, ModelError};
use bakeoff::race::{
    EvaluationDecision, EvaluationStrategy, ParallelLoopOutcome, agent_loop_parallel,
};
use bakeoff::{CancellationToken, async_trait};
use std::sync::Arc;

/// Selects the shortest answer, and the faster branch if two are equally short.
struct ShortestAnswer;

#[async_trait]
impl EvaluationStrategy for ShortestAnswer {
    async fn evaluate(
        &self,
        _prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        _cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        // Failed branches and empty answers cannot win.
        let mut eligible: Vec<_> = outcomes.iter().filter(|branch| branch.is_eligible()).collect();
        eligible.sort_by_key(|branch| (branch.answer().chars().count(), branch.elapsed));
        let ranking = eligible.iter().map(|branch| branch.config_index).collect();
        // A strategy that calls models returns their usage here.
        (EvaluationDecision::rank(ranking, "the shortest answer"), Usage::default())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Arc::new(Client::default());
    // For real models, use names such as `openai/gpt-4.1-mini` and `anthropic/claude-sonnet-4-5`, with the keys
    // of the providers in the environment.
    let config = |name: &str, temperature: f64| -> Result<AgentLoopConfig, ModelError> {
        let mut config = AgentLoopConfig::new(&client, Model::from_env(name)?);
        config.request.temperature = Some(temperature);
        Ok(config.config_id(format!("{}-{temperature}", name.replace('/', "."))))
    };
    let configs = vec![
        config("sim/small", 0.0)?,
        config("sim/large", 0.0)?,
        // The provider of this model always fails. The race continues without it.
        config("sim/fault-400", 0.0)?,
    ];

    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let mut race = agent_loop_parallel(
        vec![AgentMessage::user("Name three uses of a brick.")],
        AgentContext::default(),
        configs,
        Arc::new(ShortestAnswer),
        tx.clone(),
        cancel.clone(),
    )
    .await?;
    println!("winner: config {}: {}", race.selected_index, race.answer());
    for branch in &race.all_outcomes {
        let state = branch.failure_reason().unwrap_or_else(|| "lost".to_owned());
        println!("  {}: {state}", branch.loop_id);
    }

    let next = config("sim/echo", 0.0)?;
    let end = race.continue_with(AgentMessage::user("Explain the first."), &next, tx, cancel);
    println!("continued: {}", end.await?.answer());
    println!("tokens of the race: {}", race.total_usage.total());
    Ok(())
}
