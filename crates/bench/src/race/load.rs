//! Many concurrent races: losses at a concurrency limit, memory and tasks.

use super::{client, config, run};
use crate::Error;
use crate::usage::resident_bytes;
use bakeoff_agent::{AgentLoopConfig, LoopStatus};
use bakeoff_llm::{Client, ClientConfig, HttpObserver};
use bakeoff_pace::Strategy;
use bakeoff_race::{FastestEvaluation, PickFirstEvaluation};
use bakeoff_sim::{Latency, Profile, SimModel};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::task::JoinSet;

/// Concurrent races, branches per race, and concurrency limit of the provider.
const RACES: u64 = 200;
const BRANCHES: [&str; 3] = ["a", "b", "c"];
const CAP: u64 = 20;

/// Latency of an answer.
const LATENCY_MS: f64 = 50.0;

/// Concurrent races in the memory measurement.
const CONCURRENT_RACES: usize = 50;

/// Results of many races at a provider with a low concurrency limit.
#[derive(Debug, Clone)]
pub struct CapReport {
    /// Concurrent races.
    pub races: u64,
    /// Total number of branches.
    pub branches: u64,
    /// Concurrency limit of the provider.
    pub cap: u64,
    /// Branches without an answer.
    pub lost: u64,
    /// Rejected requests.
    pub rejected: u64,
    /// Measured seconds.
    pub seconds: f64,
    /// Seconds at full utilisation.
    pub ideal_seconds: f64,
}

/// Memory and tasks after a number of races.
#[derive(Debug, Clone)]
pub struct MemoryRow {
    /// Races so far.
    pub races: u64,
    /// Resident memory of the process.
    pub resident_bytes: u64,
    /// Tasks of the runtime.
    pub tasks: usize,
}

pub(super) async fn measure_cap() -> Result<CapReport, Error> {
    let rejected = Arc::new(AtomicU64::new(0));
    let rejections = Arc::clone(&rejected);
    let profile = Profile {
        latency: Some(Latency::Fixed { ms: LATENCY_MS }),
        concurrency: Some(CAP),
        ..Profile::default()
    };
    let simulator = bakeoff_sim::Config::default().profile(profile);
    let on_http = HttpObserver::new(move |attempt| {
        rejections.fetch_add(u64::from(attempt.status == Some(429)), Ordering::Relaxed);
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
        // A race without a winner loses all of its branches.
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
        ideal_seconds: branches.div_ceil(CAP) as f64 * LATENCY_MS / 1e3,
    })
}

pub(super) async fn measure_memory(races: u64) -> Result<Vec<MemoryRow>, Error> {
    let slow = SimModel { latency: Some(Latency::Fixed { ms: 60_000.0 }), ..SimModel::default() };
    let client = client(0, BTreeMap::from([("slow".to_owned(), slow)]));
    // A winner, a cancelled branch and a failing branch.
    let names = ["a", "slow", "fault-400"];
    let mut rows = Vec::new();
    let mut done = 0;
    for quarter in 1..=4 {
        while done < races * quarter / 4 {
            let mut running = JoinSet::new();
            for _ in 0..CONCURRENT_RACES {
                let configs: Vec<AgentLoopConfig> = names
                    .iter()
                    .map(|name| config(&client, name, Strategy::None))
                    .collect::<Result<_, _>>()?;
                running.spawn(run(configs, Arc::new(FastestEvaluation)));
            }
            for result in running.join_all().await {
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
