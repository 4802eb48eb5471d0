//! What one permit costs while many wait for theirs.
//!
//! Each strategy is measured twice: the scheduler alone, in virtual time, and the whole pool with
//! its lock, channels and tasks, on one thread. Beside the pool stands the semaphore of tokio, with
//! the same tasks around it.

use crate::{Error, usage};
use bakeoff_pace::{
    AdaptiveBounds, Flight, Gate, Limits, PermitRequest, Policy, Pool, PoolView, Quota, Scheduler,
    SendOutcome, Strategy, TokenCost,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Requests in flight where a strategy does not choose itself.
const IN_FLIGHT: u32 = 100;
/// No strategy is measured for longer.
const LONGEST: Duration = Duration::from_secs(5);
/// Virtual time that a strategy has worked before it is measured, and how long answers took then.
const EXPERIENCE: Duration = Duration::from_secs(60);
const LATENCY: Duration = Duration::from_millis(200);
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

/// The strategy after a while with a provider that allows so many in flight: how it begins is not
/// what is measured.
fn experienced(limits: Limits) -> Result<Box<dyn Policy>, Error> {
    let mut policy = limits.policy(None)?;
    let (mut now, mut number) = (Duration::ZERO, 0);
    let mut flying: VecDeque<(Duration, Flight, bool)> = VecDeque::new();
    let cost = TokenCost { input: 100, output: 50 };
    while now < EXPERIENCE {
        while let Some((_, flight, is_rejected)) = flying.pop_front_if(|(end, ..)| *end <= now) {
            let rejected = SendOutcome::Rejected { quota: Quota::default() };
            let ending = if is_rejected { rejected } else { answered() };
            policy.on_ended(view(now, flying.len()), flight, cost, &ending);
        }
        while flying.len() < 1000 && policy.gate(view(now, flying.len()), cost) == Gate::Open {
            let is_rejected = flying.len() >= IN_FLIGHT as usize;
            let flight = Flight(u64::MAX - number);
            number += 1;
            // Rejections take as long as answers, so that the order of ends is that of sends.
            flying.push_back((now + LATENCY, flight, is_rejected));
            policy.on_sent(view(now, flying.len()), flight, cost);
        }
        now += Duration::from_millis(1);
    }
    let left: Vec<Flight> = flying.drain(..).map(|(_, flight, _)| flight).collect();
    for flight in left {
        policy.on_ended(view(now, 0), flight, cost, &SendOutcome::Dropped);
    }
    Ok(Box::new(Later { policy, by: now }))
}

fn view(now: Duration, in_flight: usize) -> PoolView {
    PoolView { now, in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX), waiting: 10_000 }
}

/// A strategy whose time began before the pool's.
#[derive(Debug)]
struct Later {
    policy: Box<dyn Policy>,
    by: Duration,
}

impl Later {
    fn view(&self, view: PoolView) -> PoolView {
        PoolView { now: view.now + self.by, ..view }
    }
}

impl Policy for Later {
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate {
        match self.policy.gate(self.view(view), cost) {
            Gate::Until(time) => Gate::Until(time.saturating_sub(self.by)),
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
}

fn micros_per_permit(permits: u64, before: Duration) -> f64 {
    usage::of_self().cpu.saturating_sub(before).as_secs_f64() * 1e6 / permits.max(1) as f64
}

fn answered() -> SendOutcome {
    let usage = Some(TokenCost { input: 100, output: 50 });
    SendOutcome::Answered { quota: Quota::default(), usage, clean: true }
}

/// Request, tick, end, in a loop; as many wait at the end as at the start.
fn scheduler(config: &PermitConfig, limits: Limits) -> Result<f64, Error> {
    let mut scheduler = Scheduler::new(experienced(limits)?);
    let ask =
        PermitRequest { cost: TokenCost { input: 100, output: 50 }, ..PermitRequest::default() };
    let ending = answered();
    let mut flying: VecDeque<Flight> = VecDeque::new();
    for _ in 0..config.waiting {
        scheduler.on_request(ask);
    }
    let (mut now, mut granted) = (Duration::ZERO, 0);
    let before = usage::of_self().cpu;
    while granted < config.permits {
        let known = flying.len();
        scheduler.on_tick(now, |_, flight| flying.push_back(flight));
        let new = flying.len() - known;
        granted += new as u64;
        (0..new).for_each(|_| {
            scheduler.on_request(ask);
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
    let pool = Pool::with_policy("bench", experienced(limits)?);
    let most = config.permits;
    let started = Instant::now();
    on_one_thread(config, move |granted| {
        let pool = pool.clone();
        async move {
            let ask = PermitRequest {
                cost: TokenCost { input: 100, output: 50 },
                ..PermitRequest::default()
            };
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
