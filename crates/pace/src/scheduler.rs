//! The state machine of a pool, without clock and tasks: waiting requests, requests in flight, grants.
//!
//! Every event is a method call with its time, and every grant comes from [`Scheduler::on_tick`]. The
//! same code runs behind the async [`Pool`](crate::Pool), in the virtual time of the benchmarks, and
//! under property tests.

use crate::breaker::{AnnouncedWait, CircuitBreaker};
use crate::delayed::{DelayEnd, DelayedRetries};
use crate::queue::{Queue, RunTag, Ticket};
use crate::shedding::LoadShedding;
use crate::tuning::SpacedRate;
use crate::{
    BindingLimit, ChangeReason, Flight, Gate, LearnedLimit, LimitChange, LimitTuning, Policy,
    PoolView, Quota, RetryAfter, RetryMode, SendOutcome, TokenCost,
};
use std::borrow::Cow;
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
    /// Time before it enters the queue.
    pub delay: Duration,
    /// What ends the delay before its time.
    pub delay_end: DelayEnd,
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

    /// Makes the request a retry that enters the queue after a delay.
    #[must_use]
    pub fn delayed(mut self, delay: Duration, delay_end: DelayEnd) -> PermitRequest {
        self.is_retry = true;
        self.delay = delay;
        self.delay_end = delay_end;
        self
    }
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct SentPermit {
    cost: TokenCost,
    at: Duration,
    /// Its number among the requests sent.
    number: u64,
}

/// The state of one pool.
#[derive(Debug)]
pub struct Scheduler {
    policy: Box<dyn Policy>,
    breaker: CircuitBreaker,
    shedding: LoadShedding,
    queue: Queue<TokenCost>,
    delayed: DelayedRetries,
    flights: HashMap<Flight, SentPermit>,
    next_ticket: u64,
    wake_at: Option<Duration>,
    /// The reason why the pool was stopped.
    stopped: Option<String>,
    is_paused: bool,
    /// A rate set during the run, for strategies without one.
    rate: Option<SpacedRate>,
    /// Changes that were made from outside.
    manual_changes: Vec<LimitChange>,
}

impl Scheduler {
    /// Creates an idle pool.
    pub fn new(policy: Box<dyn Policy>) -> Scheduler {
        Scheduler {
            policy,
            breaker: CircuitBreaker::default(),
            shedding: LoadShedding::default(),
            queue: Queue::default(),
            delayed: DelayedRetries::default(),
            flights: HashMap::new(),
            next_ticket: 0,
            wake_at: None,
            stopped: None,
            is_paused: false,
            rate: None,
            manual_changes: Vec::new(),
        }
    }

    /// Adds a request to the queue, or to the delayed retries. [`Scheduler::on_tick`] grants its permit.
    pub fn on_request(&mut self, now: Duration, request: PermitRequest) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        if request.delay.is_zero() {
            self.enqueue(ticket, request);
        } else {
            self.delayed.insert(now.saturating_add(request.delay), ticket, request);
        }
        ticket
    }

    fn enqueue(&mut self, ticket: Ticket, request: PermitRequest) {
        self.queue.push(ticket, request.run, request.is_retry, request.cost);
    }

    /// Removes a waiting request.
    pub fn on_cancel(&mut self, ticket: Ticket) {
        self.queue.remove(ticket);
        self.delayed.remove(ticket);
    }

    /// Grants all permits that the strategy allows now. A granted request is in flight until
    /// [`Scheduler::on_end`].
    pub fn on_tick(&mut self, now: Duration, mut grant: impl FnMut(Ticket, Flight)) {
        self.wake_at = None;
        if self.stopped.is_some() {
            return;
        }
        while let Some((ticket, request)) = self.delayed.pop_due(now) {
            self.enqueue(ticket, request);
        }
        let gate = loop {
            let Some((_, cost)) = self.queue.front() else { break Gate::Closed };
            let cost = *cost;
            match self.gate(now, cost) {
                Gate::Open => {}
                gate => break gate,
            }
            let Some((ticket, cost)) = self.queue.pop() else { break Gate::Closed };
            let flight = Flight(ticket.0);
            let number = self.breaker.on_sent(now);
            self.shedding.on_sent(now);
            self.flights.insert(flight, SentPermit { cost, at: now, number });
            if let Some(rate) = &mut self.rate {
                rate.on_sent(now);
            }
            self.policy.on_sent(self.view(now), flight, cost);
            grant(ticket, flight);
        };
        let gate_at = match gate {
            // A time in the past neither delays the request nor causes a busy loop.
            Gate::Until(time) => Some(time.max(now + Duration::from_micros(1))),
            Gate::Open | Gate::Closed => None,
        };
        self.wake_at = [gate_at, self.delayed.next_at()].into_iter().flatten().min();
    }

    /// Returns whether a request of that cost may be sent now, by the breaker, the strategy and what was
    /// set during the run.
    fn gate(&mut self, now: Duration, cost: TokenCost) -> Gate {
        if self.is_paused {
            return Gate::Closed;
        }
        if let Some(at) = self.rate.map(|rate| rate.next_at()).filter(|at| *at > now) {
            return Gate::Until(at);
        }
        match self.breaker.next_at(now) {
            None => Gate::Closed,
            Some(at) if at > now => Gate::Until(at),
            Some(_) => self.policy.gate(self.view(now), cost),
        }
    }

    /// Records the end of a request. Returns whether it counts as rejected. Requests that are not in flight
    /// are ignored.
    pub fn on_end(&mut self, now: Duration, flight: Flight, outcome: &SendOutcome) -> bool {
        let Some(sent) = self.flights.remove(&flight) else { return false };
        let outcome = &*self.resolve_overload(now, sent, outcome);
        match outcome {
            SendOutcome::Answered { .. } | SendOutcome::Rejected { .. } | SendOutcome::Refused => {
                if self.breaker.on_responded(sent.at) {
                    self.release_retries();
                }
                self.release_idle_retry(outcome);
            }
            SendOutcome::Failed { retry_after } | SendOutcome::Overloaded { retry_after } => {
                let is_strict = self.policy.retry_after() == RetryAfter::Strict;
                let announced = retry_after.map(|wait| AnnouncedWait { wait, is_strict });
                if self.breaker.on_failed(now, (sent.number, sent.at), announced) {
                    self.policy.on_outage();
                    // From now on the breaker decides when the provider is tested.
                    self.release_retries();
                }
            }
            SendOutcome::Dropped => self.breaker.on_dropped(),
        }
        self.policy.on_ended(self.view(now), flight, sent.cost, outcome);
        matches!(outcome, SendOutcome::Rejected { .. })
    }

    /// Turns an overload response into a rejection or a failure.
    fn resolve_overload<'a>(
        &mut self,
        now: Duration,
        sent: SentPermit,
        outcome: &'a SendOutcome,
    ) -> Cow<'a, SendOutcome> {
        match *outcome {
            SendOutcome::Answered { .. } => self.shedding.on_answered(now, (sent.number, sent.at)),
            SendOutcome::Overloaded { retry_after } => {
                if self.shedding.on_overloaded(sent.number) {
                    self.policy.on_shedding();
                }
                return Cow::Owned(match self.shedding.explains_overload(now) {
                    true => {
                        let quota = Quota { retry_after, ..Quota::default() };
                        SendOutcome::Rejected { quota }
                    }
                    false => SendOutcome::Failed { retry_after },
                });
            }
            _ => {}
        }
        Cow::Borrowed(outcome)
    }

    /// Moves retries that back off to the queue.
    fn release_retries(&mut self) {
        for (ticket, request) in self.delayed.take_backing_off() {
            self.enqueue(ticket, request);
        }
    }

    /// Moves a rejected request to the queue if nothing else waits. One request per answer keeps the number in
    /// flight that the provider accepts.
    fn release_idle_retry(&mut self, outcome: &SendOutcome) {
        if matches!(outcome, SendOutcome::Answered { .. })
            && self.queue.len() == 0
            && let Some((ticket, request)) = self.delayed.pop_idle()
        {
            self.enqueue(ticket, request);
        }
    }

    /// Takes back a grant whose request was not sent.
    pub fn on_withdraw(&mut self, now: Duration, flight: Flight) {
        if let Some(sent) = self.flights.remove(&flight) {
            self.breaker.on_dropped();
            self.policy.on_withdrawn(self.view(now), flight, sent.cost);
        }
    }

    /// Stops the pool: grants nothing more and returns the waiting requests.
    pub fn stop(&mut self, reason: String) -> Vec<Ticket> {
        self.stopped.get_or_insert(reason);
        let mut tickets = self.queue.clear();
        tickets.append(&mut self.delayed.clear());
        tickets
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

    /// Returns the concurrency limit, as far as it is known; 0 while the pool is paused.
    pub fn limit(&self) -> u32 {
        if self.is_paused { 0 } else { self.policy.limit() }
    }

    /// Whether the pool is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Changes the limits while the pool is in use. Call [`Scheduler::on_tick`] afterwards.
    pub fn tune(&mut self, now: Duration, tuning: LimitTuning) {
        let old_limit = self.limit();
        if let Some(max) = tuning.max_connections {
            self.policy.set_max_connections(max);
        }
        if let Some(rpm) = tuning.rpm
            && !self.policy.set_rpm(now, rpm)
        {
            self.rate = Some(SpacedRate::new(now, rpm));
        }
        self.is_paused = tuning.paused.unwrap_or(self.is_paused);
        let (new_limit, reason, rpm) = (self.limit(), ChangeReason::Manual, tuning.rpm);
        let (at, binding) = (now, self.binding());
        let change = LimitChange { at, old_limit, new_limit, reason, rpm, binding };
        self.manual_changes.push(change);
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

    /// Returns the start of the outage of the provider, if there is one.
    pub fn outage_since(&self) -> Option<Duration> {
        self.breaker.open_since()
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> u32 {
        u32::try_from(self.flights.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of requests that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of retries that wait for their time before they enter the queue.
    pub fn delayed(&self) -> usize {
        self.delayed.len()
    }

    /// Returns the changes of the limit since the last call.
    pub fn take_changes(&mut self) -> Vec<LimitChange> {
        let mut changes = self.policy.take_changes();
        changes.append(&mut self.manual_changes);
        changes.sort_by_key(|change| change.at);
        changes
    }

    fn view(&self, now: Duration) -> PoolView {
        PoolView { now, in_flight: self.in_flight(), waiting: self.queue.len() }
    }
}
