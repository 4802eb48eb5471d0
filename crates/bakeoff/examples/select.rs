//! Searches for the best models of a two-step agent. The agent is an async closure of this program.
//!
//! `cargo run --example select --no-default-features --features select`

#![allow(clippy::print_stdout, reason = "the output of the example")]

use bakeoff::core::NanoDollars;
use bakeoff::select::{CellError, CellScore, Selection};
use std::time::Duration;

const QUESTIONS: usize = 60;

/// Stands for a model call; returns the quality of the step and its cost.
///
/// For a real model, enable the feature `llm` and use `bakeoff::llm::Client::call` with the model
/// `bakeoff::llm::Model::from_env("openai/gpt-4.1-mini")`, or any other client. Return `call.cost` as cost.
async fn call(model: &str, step: &str, question: usize) -> Result<(u64, NanoDollars), CellError> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    if question == 13 && model == "small" {
        // Missing data, not a score of 0.
        return Err(CellError::new("the provider did not respond"));
    }
    // The planner needs a large model; for the solver, a medium one is as good.
    Ok(match (step, model) {
        (_, "small") => (1, NanoDollars(20_000)),
        ("plan", "medium") => (2, NanoDollars(100_000)),
        (_, "medium") => (3, NanoDollars(100_000)),
        _ => (3, NanoDollars(1_000_000)),
    })
}

/// Runs the agent on one question and checks its answer.
async fn run_agent(planner: &str, solver: &str, question: usize) -> Result<CellScore, CellError> {
    let (plan, plan_cost) = call(planner, "plan", question).await?;
    let (solution, solution_cost) = call(solver, "solve", question).await?;
    let passed = (question * 7 % 10) as u64 <= plan + solution + 1;
    Ok(CellScore::from(passed).cost(plan_cost.saturating_add(solution_cost)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let result = Selection::new()
        .role("planner", ["small", "medium", "large"])
        .role("solver", ["small", "medium", "large"])
        .datapoints(QUESTIONS)
        // Prefers a cheaper combination within two points of the best.
        .cheapest_within(0.02)
        .max_cost("1.00".parse()?)
        .on_progress(|progress| {
            println!("{} of {} cells", progress.cells, progress.total_cells);
        })
        .run(|combination, question| async move {
            run_agent(&combination["planner"], &combination["solver"], question).await
        })
        .await?;

    println!("winner: {} with {:.0} % passed", result.winner, 100.0 * result.score);
    println!("spent: {} on {} cells", result.spent, result.outcome.cells);
    for ranked in &result.outcome.ranking {
        if let (Some(combination), Some(score)) = (result.combination(ranked.combo), ranked.score) {
            println!("  {combination}: {:.0} %", 100.0 * score);
        }
    }
    for failure in &result.failures {
        println!("errored: {} on question {}", failure.combination, failure.datapoint);
    }
    Ok(())
}
