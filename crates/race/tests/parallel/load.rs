//! Many concurrent races.

use crate::support::{TestClient, race};
use bakeoff_agent::{AgentLoopConfig, LoopStatus};
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_race::{FastestEvaluation, PickFirstEvaluation};
use bakeoff_sim::{Latency, Profile};
use std::sync::Arc;
use tokio::task::JoinSet;

#[tokio::test(start_paused = true)]
async fn races_share_pools_and_no_branch_is_lost_at_a_cap() {
    let profile = Profile {
        latency: Some(Latency::Fixed { ms: 500.0 }),
        concurrency: Some(20),
        ..Profile::default()
    };
    let simulator = bakeoff_sim::Config::default().profile(profile);
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
    // 600 answers of half a second, 20 at a time: the cap was effective.
    assert!(started.elapsed().as_secs() >= 15, "{:?}", started.elapsed());
    for result in results {
        let result = result.unwrap();
        assert_eq!((result.selected_index, result.all_outcomes.len()), (0, 2));
        let others = &result.all_outcomes;
        assert!(others.iter().all(|other| other.status == LoopStatus::Completed), "{others:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_task_is_left_after_a_thousand_races() {
    let slow = "slow = { default = \"late\", latency = { kind = \"fixed\", ms = 60000 } }";
    let client = &TestClient::new(slow);
    let many = |races: usize| async move {
        let mut running = JoinSet::new();
        for number in 0..races {
            let mut configs = client.configs(&["a", "slow", "fault-400"]);
            // A panic prints a backtrace, so only one race in a hundred panics.
            configs.extend((number % 100 == 0).then(|| client.panicking()));
            running.spawn(race(configs, FastestEvaluation));
        }
        assert!(running.join_all().await.iter().all(Result::is_ok));
        tokio::runtime::Handle::current().metrics().num_alive_tasks()
    };
    // A pool with waiters keeps one timer task; there are four pools.
    for _ in 0..10 {
        let alive = many(100).await;
        assert!(alive <= 4, "{alive} tasks");
    }
}
