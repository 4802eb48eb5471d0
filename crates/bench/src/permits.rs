//! Processor time per permit while many requests wait.
//!
//! Measures each strategy twice: the scheduler alone, in virtual time, and the whole pool with its lock,
//! channels and tasks, on one thread. The reference for the pool is tokio's semaphore with the same tasks.

use crate::{Error, usage};
use bakeoff_core::ErrorKind;
use bakeoff_pace::{
    AdaptiveBounds, Flight, Gate, Limits, PermitRequest, Policy, Pool, PoolStopped, PoolView,
    Quota, Scheduler, SendOutcome, Strategy, TokenCost,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Concurrency limit of strategies that need one.
const IN_FLIGHT: u32 = 100;
/// Maximum duration of the measurement of a pool.
const MAX_DURATION: Duration = Duration::from_secs(5);
/// Virtual time of the warm-up of a strategy, and the latency of answers in it.
const WARM_UP: Duration = Duration::from_secs(60);
const LATENCY: Duration = Duration::from_millis(200);
/// Virtual time between two answers.
const ANSWER_INTERVAL: Duration = Duration::from_micros(100);

/// Configuration of the permits benchmark.
#[derive(Debug, Clone, Copy)]
pub struct PermitConfig {
    /// Number of waiting requests.
    pub waiting: u32,
    /// Number of granted permits.
    pub permits: u64,
}

/// Cost of a permit for one strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermitRow {
    /// Strategy.
    pub strategy: Strategy,
    /// Microseconds of processor time per permit of the scheduler alone.
    pub scheduler_micros: f64,
    /// Microseconds of processor time per permit of the whole pool.
    pub pool_micros: f64,
}

/// Results of the permits benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct PermitsReport {
    /// One row per strategy.
    pub rows: Vec<PermitRow>,
    /// Microseconds of processor time per permit of tokio's semaphore.
    pub semaphore_micros: f64,
}

/// Runs the permits benchmark.
pub fn permits(config: &PermitConfig) -> Result<PermitsReport, Error> {
    let semaphore_micros = semaphore(config)?;
    let strategies = [
        Limits::fixed(IN_FLIGHT),
        Limits::adaptive(AdaptiveBounds { min: 4, start: 20, max: IN_FLIGHT }),
        // High enough that the window is tracked but never closes.
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

/// Returns a strategy after a warm-up with a provider that permits [`IN_FLIGHT`] requests; the benchmark does not
/// measure the start-up phase.
fn warmed_up(limits: Limits) -> Result<Box<dyn Policy>, Error> {
    let mut policy = limits.policy(None)?;
    let (mut now, mut number) = (Duration::ZERO, 0);
    let mut in_flight: VecDeque<(Duration, Flight, bool)> = VecDeque::new();
    let cost = TokenCost { input: 100, output: 50 };
    while now < WARM_UP {
        while let Some((_, flight, is_rejected)) = in_flight.pop_front_if(|(end, ..)| *end <= now) {
            let rejected = SendOutcome::Rejected { quota: Quota::default() };
            let ending = if is_rejected { rejected } else { answered() };
            policy.on_ended(view(now, in_flight.len()), flight, cost, &ending);
        }
        while in_flight.len() < 1000 && policy.gate(view(now, in_flight.len()), cost) == Gate::Open
        {
            let is_rejected = in_flight.len() >= IN_FLIGHT as usize;
            let flight = Flight(u64::MAX - number);
            number += 1;
            // Rejections take as long as answers, so that requests end in the order of sending.
            in_flight.push_back((now + LATENCY, flight, is_rejected));
            policy.on_sent(view(now, in_flight.len()), flight, cost);
        }
        now += Duration::from_millis(1);
    }
    let left: Vec<Flight> = in_flight.drain(..).map(|(_, flight, _)| flight).collect();
    for flight in left {
        policy.on_ended(view(now, 0), flight, cost, &SendOutcome::Dropped);
    }
    Ok(Box::new(TimeShift { policy, offset: now }))
}

fn view(now: Duration, in_flight: usize) -> PoolView {
    PoolView { now, in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX), waiting: 10_000 }
}

/// Shifts the time of a strategy that started before the pool.
#[derive(Debug)]
struct TimeShift {
    policy: Box<dyn Policy>,
    offset: Duration,
}

impl TimeShift {
    fn view(&self, view: PoolView) -> PoolView {
        PoolView { now: view.now + self.offset, ..view }
    }
}

impl Policy for TimeShift {
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate {
        match self.policy.gate(self.view(view), cost) {
            Gate::Until(time) => Gate::Until(time.saturating_sub(self.offset)),
            gate => gate,
        }
    }

    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        self.policy.on_sent(self.view(view), flight, cost);
    }

    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, ending: &SendOutcome) {
        self.policy.on_ended(self.view(view), flight, cost, ending);
    }

    fn limit(&self) -> u32 {
        self.policy.limit()
    }

    fn set_max_connections(&mut self, max: u32) {
        self.policy.set_max_connections(max);
    }
}

fn micros_per_permit(permits: u64, before: Duration) -> f64 {
    usage::of_self().cpu.saturating_sub(before).as_secs_f64() * 1e6 / permits.max(1) as f64
}

fn answered() -> SendOutcome {
    let usage = Some(TokenCost { input: 100, output: 50 });
    SendOutcome::Answered { quota: Quota::default(), usage, clean: true }
}

/// Loops over request, tick and end; the number of waiting requests stays constant.
fn scheduler(config: &PermitConfig, limits: Limits) -> Result<f64, Error> {
    let mut scheduler = Scheduler::new(warmed_up(limits)?);
    let request = PermitRequest::default().cost(TokenCost { input: 100, output: 50 });
    let ending = answered();
    let mut in_flight: VecDeque<Flight> = VecDeque::new();
    for _ in 0..config.waiting {
        scheduler.on_request(Duration::ZERO, request);
    }
    let (mut now, mut granted) = (Duration::ZERO, 0);
    let before = usage::of_self().cpu;
    while granted < config.permits {
        let known = in_flight.len();
        scheduler.on_tick(now, |_, flight| in_flight.push_back(flight));
        let new = in_flight.len() - known;
        granted += new as u64;
        (0..new).for_each(|_| {
            scheduler.on_request(now, request);
        });
        match in_flight.pop_front() {
            Some(flight) => {
                now += ANSWER_INTERVAL;
                scheduler.on_end(now, flight, &ending);
            }
            // Nothing in flight: only time can open the gate.
            None => now = scheduler.wake_at().unwrap_or(now + ANSWER_INTERVAL),
        }
    }
    Ok(micros_per_permit(granted, before))
}

/// Runs tasks that acquire a permit, yield and release it, until enough permits were granted.
fn run_tasks<F>(config: &PermitConfig, work: impl Fn(Arc<AtomicU64>) -> F) -> Result<f64, Error>
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
            // A panicked task reduces the number of granted permits, which the figure shows.
            let _ = task.await;
        }
    });
    Ok(micros_per_permit(granted.load(Ordering::Relaxed), before))
}

fn pool(config: &PermitConfig, limits: Limits) -> Result<f64, Error> {
    let pool = Pool::with_policy("bench", warmed_up(limits)?);
    let max_permits = config.permits;
    let started = Instant::now();
    run_tasks(config, move |granted| {
        let pool = pool.clone();
        async move {
            let request = PermitRequest::default().cost(TokenCost { input: 100, output: 50 });
            while granted.load(Ordering::Relaxed) < max_permits && started.elapsed() < MAX_DURATION
            {
                let Ok(permit) = pool.acquire(request).await else { return };
                granted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                permit.end(answered());
            }
            // Ends the waits of the remaining tasks, which no longer count.
            pool.stop(PoolStopped::new(ErrorKind::Cancelled, "measured"));
        }
    })
}

fn semaphore(config: &PermitConfig) -> Result<f64, Error> {
    let semaphore = Arc::new(Semaphore::new(IN_FLIGHT as usize));
    let max_permits = config.permits;
    run_tasks(config, move |granted| {
        let semaphore = Arc::clone(&semaphore);
        async move {
            while granted.load(Ordering::Relaxed) < max_permits {
                let Ok(_permit) = semaphore.acquire().await else { return };
                granted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    })
}
