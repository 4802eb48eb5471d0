//! Many races at once.

use crate::support::{World, race};
use bakeoff_agent::{AgentLoopConfig, LoopStatus};
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_race::{FastestEvaluation, PickFirstEvaluation};
use bakeoff_sim::{Latency, Profile};
use std::sync::Arc;
use tokio::task::JoinSet;

#[tokio::test(start_paused = true)]
async fn races_share_the_pools_and_no_branch_is_lost_at_a_cap() {
    let profile = Profile {
        latency: Some(Latency::Fixed { ms: 500.0 }),
        concurrency: Some(20),
        ..Profile::default()
    };
    let simulator = bakeoff_sim::Config { profile: Some(profile), ..Default::default() };
    let client = Arc::new(Client::new(ClientConfig::default().simulator(simulator)));
    let started = tokio::time::Instant::now();
    let mut races = JoinSet::new();
    for _ in 0..200 {
        let configs: Vec<AgentLoopConfig> = ["a", "b", "c"]
            .map(|name| {
                let model = Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap();
                AgentLoopConfig::new(&client, model)
            })
            .to_vec();
        races.spawn(race(configs, PickFirstEvaluation));
    }
    let results = races.join_all().await;
    assert_eq!(results.len(), 200);
    // 600 answers of half a second, 20 at a time: the cap was in force.
    assert!(started.elapsed().as_secs() >= 15, "{:?}", started.elapsed());
    for result in results {
        let result = result.unwrap();
        assert_eq!((result.selected_index, result.all_outcomes.len()), (0, 2));
        let others = &result.all_outcomes;
        assert!(others.iter().all(|other| other.status == LoopStatus::Completed), "{others:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_thousand_races_no_task_is_left() {
    let slow = "slow = { default = \"late\", latency = { kind = \"fixed\", ms = 60000 } }";
    let world = &World::new(slow);
    let many = |races: usize| async move {
        let mut going = JoinSet::new();
        for number in 0..races {
            let mut configs = world.configs(&["a", "slow", "fault-400"]);
            // A panic writes a page to standard error; one in a hundred is enough.
            configs.extend((number % 100 == 0).then(|| world.panicking()));
            going.spawn(race(configs, FastestEvaluation));
        }
        assert!(going.join_all().await.iter().all(Result::is_ok));
        tokio::runtime::Handle::current().metrics().num_alive_tasks()
    };
    // A pool on which somebody has waited has a task of its own, which stays; there are four pools.
    for _ in 0..10 {
        let alive = many(100).await;
        assert!(alive <= 4, "{alive} tasks");
    }
}
