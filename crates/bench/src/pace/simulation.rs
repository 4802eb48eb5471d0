//! Simulation of one pool and one provider in virtual time.
//!
//! All items request a permit at the start. Responses are handled as by a client, through the same scheduler and
//! retry policy as in production; only the clock is virtual.

use bakeoff_core::{ErrorKind, Message, Request};
use bakeoff_pace::{
    FailedAttempt, Flight, PermitRequest, Policy, RetryDelay, RetryPolicy, RetryProgress,
    Scheduler, SendOutcome, Ticket, TokenCost, read_quota,
};
use bakeoff_sim::{Config, Engine, Outcome, Profile, Reply};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, SystemTime};

/// Results of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SimulationResult {
    /// Seconds until the last item was finished.
    pub(crate) seconds: f64,
    /// Answered items.
    pub(crate) answered: u64,
    /// Rejected requests.
    pub(crate) rejected: u64,
    /// Items that failed or were not finished in time. Items left by an exhausted quota do not count.
    pub(crate) lost: u64,
    /// Send times of answered requests, for profiles with rate steps.
    pub(crate) accepted_at: Vec<f64>,
}

/// Transit time of a response in milliseconds: minimum, and mean of the random part. During it the provider has a
/// free slot that the client does not know of.
const TRANSIT_MS: (f64, f64) = (0.5, 1.5);
/// Latency of a rejection, for profiles that do not set one.
pub(crate) const DEFAULT_REJECT_MS: f64 = 50.0;

/// Estimates the length of answers from the previous ones.
#[derive(Default)]
struct OutputEstimate {
    outputs: u64,
    answers: u64,
}

impl OutputEstimate {
    fn estimate(&self, input: u64) -> TokenCost {
        TokenCost { input, output: self.outputs.checked_div(self.answers).unwrap_or(0) }
    }
}

/// The network between client and provider.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Network {
    /// Requests arrive at once and responses within milliseconds.
    Local,
    /// Each way takes a log-normal time with this median in milliseconds.
    Jittered(f64),
}

impl Network {
    /// Standard deviation of the logarithm of the time per way.
    const SIGMA: f64 = 0.6;

    /// Returns the time of a request or response on the way, or `None` if it is negligible.
    fn delay(self, rng: &mut ChaCha8Rng) -> Option<Duration> {
        match self {
            Network::Local => None,
            Network::Jittered(ms) => {
                let ms = ms * (Network::SIGMA * bakeoff_sim::standard_normal(rng)).exp();
                Some(Duration::from_secs_f64(ms / 1e3))
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulationEvent {
    /// A request arrived at the provider.
    Arrival(Flight),
    /// The provider may have completed a response.
    Completion(Flight),
    /// A response arrived.
    Response(Flight),
    /// The scheduler asked for a tick.
    Wake,
}

pub(crate) struct Simulation {
    engine: Engine,
    scheduler: Scheduler,
    retry: RetryPolicy,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, SimulationEvent)>>,
    order: u64,
    wake_at: Option<Duration>,
    /// Item of each ticket.
    waiting: HashMap<Ticket, u32>,
    /// Item and send time of requests on their way to the provider.
    sending: HashMap<Flight, (u32, Duration)>,
    in_flight: HashMap<Flight, (u32, Reply, Duration)>,
    network: Network,
    items: Vec<RetryProgress>,
    /// Prompt tokens of each item, which a client can count.
    inputs: Vec<u64>,
    request: Request,
    output_estimate: OutputEstimate,
    rng: ChaCha8Rng,
    result: SimulationResult,
    stopped: bool,
    has_steps: bool,
}

/// Returns the request of every item; the trial number identifies the item.
pub(crate) fn request() -> Request {
    Request { model: "echo".to_owned(), messages: vec![Message::user("x")], ..Request::default() }
}

/// Creates the provider of a profile.
pub(crate) fn engine(profile: &Profile, seed: u64) -> Engine {
    let mut profile = profile.clone();
    if profile.reject_ms == 0.0 {
        profile.reject_ms = DEFAULT_REJECT_MS;
    }
    let engine = Engine::new(Config::default().seed(seed).profile(profile));
    engine.set_epoch(EPOCH);
    engine
}

/// Time zero of the engine, for headers with dates; deliberately not a whole second.
const EPOCH: Duration = Duration::from_millis(1_700_000_000_370);

impl Simulation {
    pub(crate) fn new(
        profile: &Profile,
        seed: u64,
        items: u32,
        policy: Box<dyn Policy>,
        network: Network,
    ) -> Simulation {
        let request = request();
        let engine = engine(profile, seed);
        let inputs = (0..items).map(|item| engine.estimate(&request, item, 0).input).collect();
        Simulation {
            engine,
            scheduler: Scheduler::new(policy),
            retry: RetryPolicy::default(),
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            order: 0,
            wake_at: None,
            waiting: HashMap::new(),
            sending: HashMap::new(),
            in_flight: HashMap::new(),
            network,
            items: vec![RetryProgress::default(); items as usize],
            inputs,
            request,
            output_estimate: OutputEstimate::default(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            result: SimulationResult {
                seconds: 0.0,
                answered: 0,
                rejected: 0,
                lost: 0,
                accepted_at: Vec::new(),
            },
            stopped: false,
            has_steps: !profile.steps.is_empty(),
        }
    }

    /// Runs until all items are finished or the time limit is reached.
    pub(crate) fn run(mut self, time_limit: Duration) -> SimulationResult {
        for item in 0..self.items.len() as u32 {
            self.request_permit(item, None);
        }
        self.tick();
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time > time_limit {
                break;
            }
            self.now = time;
            match event {
                SimulationEvent::Arrival(flight) => {
                    self.handle_arrival(flight);
                    continue;
                }
                SimulationEvent::Completion(flight) => {
                    self.handle_completion(flight);
                    continue;
                }
                SimulationEvent::Response(flight) => self.handle_response(flight),
                SimulationEvent::Wake if self.wake_at == Some(time) => self.wake_at = None,
                // Superseded by an earlier wake-up.
                SimulationEvent::Wake => continue,
            }
            self.tick();
        }
        if !self.stopped {
            self.result.lost = self.items.len() as u64 - self.result.answered;
        }
        self.result.accepted_at.sort_by(f64::total_cmp);
        self.result
    }

    fn schedule(&mut self, at: Duration, event: SimulationEvent) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn request_permit(&mut self, item: u32, delay: Option<RetryDelay>) {
        let cost = self.output_estimate.estimate(self.inputs[item as usize]);
        let request = PermitRequest::default().cost(cost);
        let request = delay.map_or(request, |delay| delay.apply(request));
        let ticket = self.scheduler.on_request(self.now, request);
        self.waiting.insert(ticket, item);
    }

    fn tick(&mut self) {
        let mut granted = Vec::new();
        self.scheduler.on_tick(self.now, |ticket, flight| granted.push((ticket, flight)));
        for (ticket, flight) in granted {
            if let Some(item) = self.waiting.remove(&ticket) {
                self.send(item, flight);
            }
        }
        if let Some(at) = self.scheduler.wake_at()
            && self.wake_at.is_none_or(|scheduled| at < scheduled)
        {
            self.wake_at = Some(at);
            self.schedule(at, SimulationEvent::Wake);
        }
    }

    fn send(&mut self, item: u32, flight: Flight) {
        self.sending.insert(flight, (item, self.now));
        match self.network.delay(&mut self.rng) {
            Some(delay) => self.schedule(self.now + delay, SimulationEvent::Arrival(flight)),
            None => self.handle_arrival(flight),
        }
    }

    fn handle_arrival(&mut self, flight: Flight) {
        let Some((item, sent)) = self.sending.remove(&flight) else { return };
        let request = bakeoff_sim::SimRequest {
            request: &self.request,
            trial: item,
            ordinal: 0,
            now: self.now,
        };
        let reply = self.engine.respond(&request);
        let at = self.now + reply.delay;
        let slot = reply.slot;
        self.in_flight.insert(flight, (item, reply, sent));
        if slot.is_some() {
            self.schedule(at, SimulationEvent::Completion(flight));
        } else {
            self.transmit(at, flight);
        }
    }

    /// Sends the response of a batched request as soon as it is complete.
    fn handle_completion(&mut self, flight: Flight) {
        let Some((_, reply, _)) = self.in_flight.get(&flight) else { return };
        match reply.slot.and_then(|slot| self.engine.time_left(slot, self.now)) {
            Some(left) => self.schedule(self.now + left, SimulationEvent::Completion(flight)),
            None => self.transmit(self.now, flight),
        }
    }

    /// Schedules the arrival of a response that the provider sends at a time.
    fn transmit(&mut self, at: Duration, flight: Flight) {
        let transit = self.network.delay(&mut self.rng).unwrap_or_else(|| {
            let ms = TRANSIT_MS.0 - TRANSIT_MS.1 * (1.0 - self.rng.random::<f64>()).ln();
            Duration::from_secs_f64(ms / 1000.0)
        });
        self.schedule(at + transit, SimulationEvent::Response(flight));
    }

    fn handle_response(&mut self, flight: Flight) {
        let Some((item, reply, sent)) = self.in_flight.remove(&flight) else { return };
        let get = |name: &str| {
            let pair = reply.headers.iter().find(|(other, _)| other == name);
            pair.map(|(_, value)| value.as_str())
        };
        let quota = read_quota(get, SystemTime::UNIX_EPOCH + EPOCH + self.now);
        let retry_after = quota.retry_after;
        let (ending, kind) = match reply.outcome {
            Outcome::Answer(response) => {
                let cost =
                    TokenCost { input: response.usage.prompt(), output: response.usage.output };
                self.output_estimate.outputs += cost.output;
                self.output_estimate.answers += 1;
                let clean = self.items[item as usize].retries == 0;
                (SendOutcome::Answered { quota, usage: Some(cost), clean }, None)
            }
            Outcome::Refused { code: "insufficient_quota", .. } => {
                self.scheduler.stop("quota exhausted".to_owned());
                self.stopped = true;
                (SendOutcome::Refused, Some(ErrorKind::Quota))
            }
            Outcome::Refused { status: 429, .. } => {
                (SendOutcome::Rejected { quota }, Some(ErrorKind::RateLimit))
            }
            Outcome::Refused { status: 503 | 529, .. } => {
                (SendOutcome::Overloaded { retry_after }, Some(ErrorKind::Transient))
            }
            Outcome::Refused { .. } | Outcome::Broken(_) => {
                (SendOutcome::Failed { retry_after }, Some(ErrorKind::Transient))
            }
        };
        let is_rejected = self.scheduler.on_end(self.now, flight, &ending);
        let kind = if is_rejected { Some(ErrorKind::RateLimit) } else { kind };
        let Some(kind) = kind else {
            self.result.answered += 1;
            if self.has_steps {
                self.result.accepted_at.push(sent.as_secs_f64());
            }
            self.result.seconds = self.now.as_secs_f64();
            return;
        };
        if kind == ErrorKind::RateLimit {
            self.result.rejected += 1;
        }
        self.retry(item, kind, retry_after, self.now - sent);
    }

    /// Requests a permit for a retry, as a client does after a failure.
    fn retry(
        &mut self,
        item: u32,
        kind: ErrorKind,
        retry_after: Option<Duration>,
        latency: Duration,
    ) {
        let progress = &mut self.items[item as usize];
        progress.spent += latency;
        let attempt = FailedAttempt {
            kind,
            hint: retry_after,
            mode: self.scheduler.retry_mode(self.now),
            outage: self.scheduler.outage_since().map(|since| self.now.saturating_sub(since)),
        };
        if let Some(delay) = self.retry.retry(attempt, progress, self.rng.random()) {
            self.request_permit(item, Some(delay));
        }
    }
}
