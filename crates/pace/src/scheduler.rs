//! The state machine of a pool, without clock and tasks: waiting requests, requests in flight, grants.
//!
//! Every event is a method call with its time, and every grant comes from [`Scheduler::on_tick`]. The
//! same code runs behind the async [`Pool`](crate::Pool), in the virtual time of the benchmarks, and
//! under property tests.

use crate::queue::{Queue, RunTag, Ticket};
use crate::{
    BindingLimit, Flight, Gate, LearnedLimit, LimitChange, Policy, PoolView, RetryMode,
    SendOutcome, TokenCost,
};
use std::collections::HashMap;
use std::time::Duration;

/// A request for a permit.
///
/// ```
/// use bakeoff_pace::{PermitRequest, TokenCost};
///
/// let request = PermitRequest::default().cost(TokenCost { input: 100, output: 50 }).retry(true);
/// assert!(request.is_retry);
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct PermitRequest {
    /// The run it belongs to.
    pub run: RunTag,
    /// The estimated cost.
    pub cost: TokenCost,
    /// Whether it repeats an earlier attempt of the call. Retries go to the front of their run.
    pub is_retry: bool,
}

impl PermitRequest {
    /// Sets the run that the request belongs to.
    #[must_use]
    pub fn run(mut self, run: RunTag) -> PermitRequest {
        self.run = run;
        self
    }

    /// Sets the estimated cost.
    #[must_use]
    pub fn cost(mut self, cost: TokenCost) -> PermitRequest {
        self.cost = cost;
        self
    }

    /// Sets whether the request repeats an earlier attempt of the call.
    #[must_use]
    pub fn retry(mut self, is_retry: bool) -> PermitRequest {
        self.is_retry = is_retry;
        self
    }
}

/// The state of one pool.
#[derive(Debug)]
pub struct Scheduler {
    policy: Box<dyn Policy>,
    queue: Queue<TokenCost>,
    flights: HashMap<Flight, TokenCost>,
    next_ticket: u64,
    wake_at: Option<Duration>,
    /// The reason why the pool was stopped.
    stopped: Option<String>,
}

impl Scheduler {
    /// Creates an idle pool.
    pub fn new(policy: Box<dyn Policy>) -> Scheduler {
        Scheduler {
            policy,
            queue: Queue::default(),
            flights: HashMap::new(),
            next_ticket: 0,
            wake_at: None,
            stopped: None,
        }
    }

    /// Adds a request to the queue. [`Scheduler::on_tick`] grants its permit.
    pub fn on_request(&mut self, request: PermitRequest) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.queue.push(ticket, request.run, request.is_retry, request.cost);
        ticket
    }

    /// Removes a waiting request.
    pub fn on_cancel(&mut self, ticket: Ticket) {
        self.queue.remove(ticket);
    }

    /// Grants all permits that the strategy allows now. A granted request is in flight until
    /// [`Scheduler::on_end`].
    pub fn on_tick(&mut self, now: Duration, mut grant: impl FnMut(Ticket, Flight)) {
        self.wake_at = None;
        if self.stopped.is_some() {
            return;
        }
        loop {
            let view = self.view(now);
            let Some((_, cost)) = self.queue.front() else { return };
            let cost = *cost;
            match self.policy.gate(view, cost) {
                Gate::Open => {}
                Gate::Until(time) if time > now => {
                    self.wake_at = Some(time);
                    return;
                }
                // A time in the past neither delays the request nor causes a busy loop.
                Gate::Until(_) => {
                    self.wake_at = Some(now + Duration::from_micros(1));
                    return;
                }
                Gate::Closed => return,
            }
            let Some((ticket, cost)) = self.queue.pop() else { return };
            let flight = Flight(ticket.0);
            self.flights.insert(flight, cost);
            self.policy.on_sent(self.view(now), flight, cost);
            grant(ticket, flight);
        }
    }

    /// Records the end of a request. Requests that are not in flight are ignored.
    pub fn on_end(&mut self, now: Duration, flight: Flight, outcome: &SendOutcome) {
        if let Some(cost) = self.flights.remove(&flight) {
            self.policy.on_ended(self.view(now), flight, cost, outcome);
        }
    }

    /// Takes back a grant whose request was not sent.
    pub fn on_withdraw(&mut self, now: Duration, flight: Flight) {
        if let Some(cost) = self.flights.remove(&flight) {
            self.policy.on_withdrawn(self.view(now), flight, cost);
        }
    }

    /// Stops the pool: grants nothing more and returns the waiting requests.
    pub fn stop(&mut self, reason: String) -> Vec<Ticket> {
        self.stopped.get_or_insert(reason);
        self.queue.clear()
    }

    /// Returns the reason why the pool was stopped.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Returns when to call [`Scheduler::on_tick`] if no event occurs before.
    pub fn wake_at(&self) -> Option<Duration> {
        self.wake_at
    }

    /// Returns how a request that is rejected now is retried.
    pub fn retry_mode(&self, now: Duration) -> RetryMode {
        self.policy.retry_mode(now)
    }

    /// Returns the concurrency limit, as far as it is known.
    pub fn limit(&self) -> u32 {
        self.policy.limit()
    }

    /// Returns the limit that currently determines how fast requests are sent, if there is one.
    pub fn binding(&self) -> Option<BindingLimit> {
        self.policy.binding()
    }

    /// Returns the end of a block that the provider announced.
    pub fn blocked_until(&self) -> Option<Duration> {
        self.policy.blocked_until()
    }

    /// Returns the limit that the next run on this pool should start with.
    pub fn learned(&self) -> Option<LearnedLimit> {
        self.policy.learned()
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> u32 {
        u32::try_from(self.flights.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of requests that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns the changes of the limit since the last call.
    pub fn take_changes(&mut self) -> Vec<LimitChange> {
        self.policy.take_changes()
    }

    fn view(&self, now: Duration) -> PoolView {
        PoolView { now, in_flight: self.in_flight(), waiting: self.queue.len() }
    }
}
