//! Strategies that compare figures.

use crate::support::{TestClient, race};
use bakeoff_agent::{AgentLoopConfig, EventSender};
use bakeoff_core::Prices;
use bakeoff_llm::{Model, ModelConfig};
use bakeoff_race::{
    CheapestEvaluation, ElaborateEvaluation, EvaluationStrategy, FastestEvaluation,
    ParallelLoopOutcome, PickFirstEvaluation, TokenEfficientEvaluation,
};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const MODELS: &str = r#"
    much = { default = "x", input_tokens = 10, output_tokens = 90 }
    little = { default = "x", input_tokens = 10, output_tokens = 10 }
    middling = { default = "x", input_tokens = 10, output_tokens = 40 }
"#;

#[tokio::test(start_paused = true)]
async fn branches_are_ranked_by_tokens_then_config_order() {
    let client = TestClient::new(MODELS);
    let names = ["fault-400", "much", "little", "middling", "little", "much"];
    let few = race(client.configs(&names), TokenEfficientEvaluation).await.unwrap();
    assert_eq!((few.selected_index, few.verdict.ranking.as_slice()), (2, &[2, 4, 3, 1, 5][..]));
    assert_eq!(few.verdict.reasons, ["the fewest tokens: 20"]);
    let many = race(client.configs(&names), ElaborateEvaluation).await.unwrap();
    assert_eq!((many.selected_index, many.verdict.ranking.as_slice()), (1, &[1, 5, 3, 2, 4][..]));
    let first = race(client.configs(&names), PickFirstEvaluation).await.unwrap();
    assert_eq!(first.selected_index, 1);
    assert_eq!(first.verdict.strategy, "first");
}

fn priced(client: &TestClient, name: &str, output: &str) -> AgentLoopConfig {
    let prices = Prices { output: output.parse().unwrap(), ..Prices::default() };
    let config = ModelConfig::named("sim", name).prices(prices);
    AgentLoopConfig::new(&client.client, Model::resolve(&config, &|_| None).unwrap())
}

#[tokio::test(start_paused = true)]
async fn cheapest_wins_by_cost_not_by_tokens() {
    let client = TestClient::new(MODELS);
    let configs = vec![
        priced(&client, "little", "90"),
        priced(&client, "much", "2"),
        priced(&client, "middling", "10"),
    ];
    let result = race(configs, CheapestEvaluation).await.unwrap();
    assert_eq!(result.verdict.ranking, [1, 2, 0]);
    assert_eq!(result.verdict.reasons, ["the lowest cost: $0.00018"]);
}

/// The other branch was started later and was quicker, but ended later too.
#[tokio::test]
async fn fastest_is_the_branch_that_ended_first() {
    let branch = |index, end_order, seconds| {
        let mut outcome = ParallelLoopOutcome::completed(index, "x");
        outcome.end_order = end_order;
        outcome.elapsed = Duration::from_secs(seconds);
        outcome
    };
    let outcomes = [branch(0, Some(2), 1), branch(1, None, 0), branch(2, Some(0), 9)];
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let (decision, _) = FastestEvaluation.evaluate(&[], &outcomes, &tx, cancel).await;
    assert_eq!(decision.verdict.ranking, [2, 0, 1]);
    assert_eq!(decision.verdict.reasons, ["the first answer, after 9.00 s"]);
}
