//! Strategies that look at figures alone.

use crate::support::{World, race};
use bakeoff_agent::AgentLoopConfig;
use bakeoff_core::Prices;
use bakeoff_llm::{Model, ModelConfig};
use bakeoff_race::{
    CheapestEvaluation, ElaborateEvaluation, PickFirstEvaluation, TokenEfficientEvaluation,
};

const PERSONAS: &str = r#"
    much = { default = "x", input_tokens = 10, output_tokens = 90 }
    little = { default = "x", input_tokens = 10, output_tokens = 10 }
    middling = { default = "x", input_tokens = 10, output_tokens = 40 }
"#;

#[tokio::test(start_paused = true)]
async fn tokens_rank_and_of_equals_the_first_wins() {
    let world = World::new(PERSONAS);
    let names = ["fault-400", "much", "little", "middling", "little", "much"];
    let few = race(world.configs(&names), TokenEfficientEvaluation).await.unwrap();
    assert_eq!((few.selected_index, few.verdict.ranking.as_slice()), (2, &[2, 4, 3, 1, 5][..]));
    assert_eq!(few.verdict.reasons, ["the fewest tokens: 20"]);
    let many = race(world.configs(&names), ElaborateEvaluation).await.unwrap();
    assert_eq!((many.selected_index, many.verdict.ranking.as_slice()), (1, &[1, 5, 3, 2, 4][..]));
    let first = race(world.configs(&names), PickFirstEvaluation).await.unwrap();
    assert_eq!(first.selected_index, 1);
    assert_eq!(first.verdict.strategy, "first");
}

fn priced(world: &World, name: &str, output: &str) -> AgentLoopConfig {
    let prices = Prices { output: output.parse().unwrap(), ..Prices::default() };
    let config = ModelConfig::named("sim", name).prices(prices);
    AgentLoopConfig::new(&world.client, Model::resolve(&config, &|_| None).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_cheapest_wins_by_money_and_not_by_tokens() {
    let world = World::new(PERSONAS);
    let configs = vec![
        priced(&world, "little", "90"),
        priced(&world, "much", "2"),
        priced(&world, "middling", "10"),
    ];
    let result = race(configs, CheapestEvaluation).await.unwrap();
    assert_eq!(result.verdict.ranking, [1, 2, 0]);
    assert_eq!(result.verdict.reasons, ["the least money: $0.00018"]);
}
