//! The pool without a clock and without tasks: who waits, who is on the way, who may go.
//!
//! Everything that happens is a call with the time it happened at, and every grant comes from
//! [`Scheduler::on_tick`]. The same code runs behind the async [`Pool`](crate::Pool), in the
//! benchmark's virtual time, and under property tests.

use crate::queue::{Queue, RunTag, Ticket};
use crate::{
    Flight, Gate, LearnedLimit, LimitChange, Policy, PoolView, RetryMode, SendOutcome, TokenCost,
};
use std::collections::HashMap;
use std::time::Duration;

/// A request for a permit.
#[derive(Debug, Clone, Copy, Default)]
pub struct PermitRequest {
    /// Whose it is.
    pub run: RunTag,
    /// What it will probably cost.
    pub cost: TokenCost,
    /// An attempt of the same call was made before: it goes to the front.
    pub is_retry: bool,
}

/// One pool's state.
#[derive(Debug)]
pub struct Scheduler {
    policy: Box<dyn Policy>,
    queue: Queue<TokenCost>,
    flights: HashMap<Flight, TokenCost>,
    next_ticket: u64,
    wake_at: Option<Duration>,
    /// Nothing goes out any more, for this reason.
    stopped: Option<String>,
}

impl Scheduler {
    /// An idle pool.
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

    /// Somebody wants to send a request. Its permit comes from [`Scheduler::on_tick`].
    pub fn on_request(&mut self, ask: PermitRequest) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.queue.push(ticket, ask.run, ask.is_retry, ask.cost);
        ticket
    }

    /// Somebody does not want to send a request any more.
    pub fn on_cancel(&mut self, ticket: Ticket) {
        self.queue.remove(ticket);
    }

    /// Grants what may go out now. Each grant is on its way until [`Scheduler::on_end`].
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
                // A time that has come is no reason to wait, nor to spin.
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

    /// A request has ended; what is said about one that is not on its way is ignored.
    pub fn on_end(&mut self, now: Duration, flight: Flight, ending: &SendOutcome) {
        if let Some(cost) = self.flights.remove(&flight) {
            self.policy.on_ended(self.view(now), flight, cost, ending);
        }
    }

    /// A request that was granted did not go out after all.
    pub fn on_withdraw(&mut self, now: Duration, flight: Flight) {
        if let Some(cost) = self.flights.remove(&flight) {
            self.policy.on_withdrawn(self.view(now), flight, cost);
        }
    }

    /// Nothing will ever be granted again. Returns who was waiting.
    pub fn stop(&mut self, reason: String) -> Vec<Ticket> {
        self.stopped.get_or_insert(reason);
        self.queue.clear()
    }

    /// Why nothing is granted any more.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// When [`Scheduler::on_tick`] should be called if nothing happens before.
    pub fn wake_at(&self) -> Option<Duration> {
        self.wake_at
    }

    /// How a request that was rejected now comes back.
    pub fn retry_mode(&self, now: Duration) -> RetryMode {
        self.policy.retry_mode(now)
    }

    /// How many requests may be in flight, as far as this is known.
    pub fn limit(&self) -> u32 {
        self.policy.limit()
    }

    /// Until when nothing goes out because the provider said so, where it did.
    pub fn blocked_until(&self) -> Option<Duration> {
        self.policy.blocked_until()
    }

    /// What the next run on this pool should begin with.
    pub fn learned(&self) -> Option<LearnedLimit> {
        self.policy.learned()
    }

    /// Requests on their way.
    pub fn in_flight(&self) -> u32 {
        u32::try_from(self.flights.len()).unwrap_or(u32::MAX)
    }

    /// Requests that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The changes of the limit since the last call.
    pub fn take_changes(&mut self) -> Vec<LimitChange> {
        self.policy.take_changes()
    }

    fn view(&self, now: Duration) -> PoolView {
        PoolView { now, in_flight: self.in_flight(), waiting: self.queue.len() }
    }
}
