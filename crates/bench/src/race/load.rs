//! Many races: what is lost at a cap, and what they leave behind.

use super::{client, config, run};
use crate::Error;
use crate::usage::resident_bytes;
use bakeoff_agent::{AgentLoopConfig, LoopStatus};
use bakeoff_llm::{Client, ClientConfig, HttpObserver};
use bakeoff_pace::Strategy;
use bakeoff_race::{FastestEvaluation, PickFirstEvaluation};
use bakeoff_sim::{Latency, Persona, Profile};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::task::JoinSet;

/// Races at once, branches of each, and requests that the provider takes at once.
const RACES: u64 = 200;
const BRANCHES: [&str; 3] = ["a", "b", "c"];
const CAP: u64 = 20;

/// Milliseconds that an answer takes.
const LATENCY: f64 = 50.0;

/// Races at once while memory is watched.
const AT_ONCE: usize = 50;

/// Many races at a provider with few places.
#[derive(Debug, Clone)]
pub struct CapReport {
    /// Races at once.
    pub races: u64,
    /// Branches in all.
    pub branches: u64,
    /// Requests that the provider takes at once.
    pub cap: u64,
    /// Branches that did not come to an answer.
    pub lost: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// From start to end.
    pub seconds: f64,
    /// The same, if every place were taken all the time.
    pub ideal_seconds: f64,
}

/// What races have left behind.
#[derive(Debug, Clone)]
pub struct MemoryRow {
    /// Races until then.
    pub races: u64,
    /// Memory of the process.
    pub resident_bytes: u64,
    /// Tasks of the runtime.
    pub tasks: usize,
}

pub(super) async fn at_a_cap() -> Result<CapReport, Error> {
    let rejected = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&rejected);
    let profile = Profile {
        latency: Some(Latency::Fixed { ms: LATENCY }),
        concurrency: Some(CAP),
        ..Profile::default()
    };
    let simulator =
        bakeoff_sim::Config { profile: Some(profile), ..bakeoff_sim::Config::default() };
    let on_http = HttpObserver::new(move |attempt| {
        counted.fetch_add(u64::from(attempt.status == Some(429)), Ordering::Relaxed);
    });
    let client =
        Arc::new(Client::new(ClientConfig::default().simulator(simulator).on_http(on_http)));
    let started = Instant::now();
    let mut races = JoinSet::new();
    for _ in 0..RACES {
        let configs: Vec<AgentLoopConfig> = BRANCHES
            .iter()
            .map(|name| config(&client, name, Strategy::Auto))
            .collect::<Result<_, _>>()?;
        races.spawn(run(configs, Arc::new(PickFirstEvaluation)));
    }
    let branches = RACES * BRANCHES.len() as u64;
    let mut answered = 0;
    for result in races.join_all().await {
        // A race without a winner has lost all of its branches.
        let Ok(result) = result else { continue };
        let completed =
            result.all_outcomes.iter().filter(|other| other.status == LoopStatus::Completed);
        answered += 1 + completed.count() as u64;
    }
    Ok(CapReport {
        races: RACES,
        branches,
        cap: CAP,
        lost: branches - answered,
        rejected: rejected.load(Ordering::Relaxed),
        seconds: started.elapsed().as_secs_f64(),
        ideal_seconds: branches.div_ceil(CAP) as f64 * LATENCY / 1e3,
    })
}

pub(super) async fn memory(races: u64) -> Result<Vec<MemoryRow>, Error> {
    let slow = Persona { latency: Some(Latency::Fixed { ms: 60_000.0 }), ..Persona::default() };
    let client = client(0, BTreeMap::from([("slow".to_owned(), slow)]));
    // One that wins, one that is cancelled and one that fails.
    let names = ["a", "slow", "fault-400"];
    let mut rows = Vec::new();
    let mut done = 0;
    for quarter in 1..=4 {
        while done < races * quarter / 4 {
            let mut going = JoinSet::new();
            for _ in 0..AT_ONCE {
                let configs: Vec<AgentLoopConfig> = names
                    .iter()
                    .map(|name| config(&client, name, Strategy::None))
                    .collect::<Result<_, _>>()?;
                going.spawn(run(configs, Arc::new(FastestEvaluation)));
            }
            for result in going.join_all().await {
                result?;
                done += 1;
            }
        }
        rows.push(MemoryRow {
            races: done,
            resident_bytes: resident_bytes(),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        });
    }
    Ok(rows)
}
