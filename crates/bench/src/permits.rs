//! What one permit costs while many wait for theirs.
//!
//! Each strategy is measured twice: the scheduler alone, in virtual time, and the whole pool with
//! its lock, channels and tasks, on one thread. Beside the pool stands the semaphore of tokio, with
//! the same tasks around it.

use crate::{Error, usage};
use bakeoff_pace::{
    AdaptiveBounds, Ask, Cost, Ending, Flight, Limits, Pool, Quota, Scheduler, Strategy,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Requests in flight where a strategy does not choose itself.
const IN_FLIGHT: u32 = 100;
/// A strategy that begins slowly, as `auto` does, is measured over what it grants in this time; its
/// figure then holds the waking of its timer.
const LONGEST: Duration = Duration::from_secs(5);
/// Virtual time between two answers.
const BETWEEN_ANSWERS: Duration = Duration::from_micros(100);

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct PermitConfig {
    /// How many always wait.
    pub waiting: u32,
    /// Permits that are granted.
    pub permits: u64,
}

/// What a permit of one strategy costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermitRow {
    /// Which strategy.
    pub strategy: Strategy,
    /// Microseconds of processor time per permit, the scheduler alone.
    pub scheduler_micros: f64,
    /// The same of the whole pool.
    pub pool_micros: f64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct PermitsReport {
    /// One row per strategy.
    pub rows: Vec<PermitRow>,
    /// Microseconds of processor time per permit of tokio's semaphore.
    pub semaphore_micros: f64,
}

/// Measures.
pub fn permits(config: &PermitConfig) -> Result<PermitsReport, Error> {
    let semaphore_micros = semaphore(config)?;
    let strategies = [
        Limits::fixed(IN_FLIGHT),
        Limits::adaptive(AdaptiveBounds { min: 4, start: 20, max: IN_FLIGHT }),
        // High enough that the window is kept and never shut.
        Limits::new(Strategy::Proactive).rpm(1_000_000_000).connections(IN_FLIGHT),
        Limits::auto(),
    ];
    let row = |limits: Limits| {
        Ok(PermitRow {
            strategy: limits.strategy,
            scheduler_micros: scheduler(config, limits)?,
            pool_micros: pool(config, limits)?,
        })
    };
    let rows: Result<Vec<PermitRow>, Error> = strategies.into_iter().map(row).collect();
    Ok(PermitsReport { rows: rows?, semaphore_micros })
}

fn micros_per_permit(permits: u64, before: Duration) -> f64 {
    usage::of_self().cpu.saturating_sub(before).as_secs_f64() * 1e6 / permits.max(1) as f64
}

fn answered() -> Ending {
    let usage = Some(Cost { input: 100, output: 50 });
    Ending::Answered { quota: Quota::default(), usage, clean: true }
}

/// Ask, tick, end, in a loop; as many wait at the end as at the start.
fn scheduler(config: &PermitConfig, limits: Limits) -> Result<f64, Error> {
    let mut scheduler = Scheduler::new(limits.policy(None)?);
    let ask = Ask { cost: Cost { input: 100, output: 50 }, ..Ask::default() };
    let ending = answered();
    let mut flying: VecDeque<Flight> = VecDeque::new();
    for _ in 0..config.waiting {
        scheduler.on_ask(ask);
    }
    let (mut now, mut granted) = (Duration::ZERO, 0);
    let before = usage::of_self().cpu;
    while granted < config.permits {
        let known = flying.len();
        scheduler.on_tick(now, |_, flight| flying.push_back(flight));
        let new = flying.len() - known;
        granted += new as u64;
        (0..new).for_each(|_| {
            scheduler.on_ask(ask);
        });
        match flying.pop_front() {
            Some(flight) => {
                now += BETWEEN_ANSWERS;
                scheduler.on_end(now, flight, &ending);
            }
            // Nothing under way: only time can open the gate.
            None => now = scheduler.wake_at().unwrap_or(now + BETWEEN_ANSWERS),
        }
    }
    Ok(micros_per_permit(granted, before))
}

/// Tasks that take a permit, let the others run, and give it back, until enough were granted.
fn on_one_thread<F>(config: &PermitConfig, work: impl Fn(Arc<AtomicU64>) -> F) -> Result<f64, Error>
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Bare(error.to_string()))?;
    let granted = Arc::new(AtomicU64::new(0));
    let before = usage::of_self().cpu;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..config.waiting + IN_FLIGHT)
            .map(|_| tokio::spawn(work(Arc::clone(&granted))))
            .collect();
        for task in tasks {
            // A task that broke has granted fewer, which the figure shows.
            let _ = task.await;
        }
    });
    Ok(micros_per_permit(granted.load(Ordering::Relaxed), before))
}

fn pool(config: &PermitConfig, limits: Limits) -> Result<f64, Error> {
    let pool = Pool::new("bench", limits)?;
    let most = config.permits;
    let started = Instant::now();
    on_one_thread(config, move |granted| {
        let pool = pool.clone();
        async move {
            let ask = Ask { cost: Cost { input: 100, output: 50 }, ..Ask::default() };
            while granted.load(Ordering::Relaxed) < most && started.elapsed() < LONGEST {
                let Ok(permit) = pool.acquire(ask).await else { return };
                granted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                permit.end(answered());
            }
            // Nobody waits for a turn that is not counted any more.
            pool.stop("measured");
        }
    })
}

fn semaphore(config: &PermitConfig) -> Result<f64, Error> {
    let semaphore = Arc::new(Semaphore::new(IN_FLIGHT as usize));
    let most = config.permits;
    on_one_thread(config, move |granted| {
        let semaphore = Arc::clone(&semaphore);
        async move {
            while granted.load(Ordering::Relaxed) < most {
                let Ok(_permit) = semaphore.acquire().await else { return };
                granted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    })
}
