//! One pool and one provider in virtual time.
//!
//! All items want to go out at the start. What a client would do with each response happens here,
//! through the same scheduler and the same retry policy as in production; only the clock is ours.

use bakeoff_core::{ErrorKind, Message, Request};
use bakeoff_pace::{
    Flight, PermitRequest, Policy, RetryMode, RetryPolicy, RetryProgress, Scheduler, SendOutcome,
    Ticket, TokenCost, read_quota,
};
use bakeoff_sim::{Config, Engine, Outcome, Profile, Reply};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, SystemTime};

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcomes {
    /// Until the last item was done.
    pub(crate) seconds: f64,
    /// Items answered.
    pub(crate) answered: u64,
    /// Requests rejected.
    pub(crate) rejected: u64,
    /// Items given up, and items not done when time was up. What a used up quota left over does
    /// not count.
    pub(crate) lost: u64,
    /// When requests went out that were answered, where the profile changes over time.
    pub(crate) accepted_at: Vec<f64>,
}

/// Milliseconds that a response is on its way, at least and on average in addition. Meanwhile the
/// provider has a place free that the client does not know of.
const TRANSIT_MS: (f64, f64) = (0.5, 1.5);
/// How long a rejection takes where the profile does not say.
pub(crate) const REJECT_MS: f64 = 50.0;

/// What the client expects of answers: what those before had.
#[derive(Default)]
struct Sizes {
    outputs: u64,
    answers: u64,
}

impl Sizes {
    fn estimate(&self, input: u64) -> TokenCost {
        TokenCost { input, output: self.outputs.checked_div(self.answers).unwrap_or(0) }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The response to a request is there.
    Response(Flight),
    /// A pause is over.
    Retry(u32),
    /// The scheduler wants to be asked again.
    Wake,
}

pub(crate) struct World {
    engine: Engine,
    scheduler: Scheduler,
    retry: RetryPolicy,
    now: Duration,
    agenda: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    order: u64,
    woken_at: Option<Duration>,
    /// Which item a ticket belongs to.
    waiting: HashMap<Ticket, u32>,
    flying: HashMap<Flight, (u32, Reply, Duration)>,
    items: Vec<RetryProgress>,
    /// Tokens of each item's prompt, which a client can count.
    inputs: Vec<u64>,
    request: Request,
    sizes: Sizes,
    rng: ChaCha8Rng,
    outcomes: Outcomes,
    stopped: bool,
    has_steps: bool,
}

/// What every item asks; which item it is shows in the trial's number.
pub(crate) fn request() -> Request {
    Request { model: "echo".to_owned(), messages: vec![Message::user("x")], ..Request::default() }
}

/// The provider of a profile.
pub(crate) fn engine(profile: &Profile, seed: u64) -> Engine {
    let mut profile = profile.clone();
    if profile.reject_ms == 0.0 {
        profile.reject_ms = REJECT_MS;
    }
    let engine = Engine::new(Config { seed, profile: Some(profile), ..Config::default() });
    engine.set_epoch(EPOCH);
    engine
}

/// The engine's time zero, for headers with dates; not on a full second, as in life.
const EPOCH: Duration = Duration::from_millis(1_700_000_000_370);

impl World {
    pub(crate) fn new(profile: &Profile, seed: u64, items: u32, policy: Box<dyn Policy>) -> World {
        let request = request();
        let engine = engine(profile, seed);
        let inputs = (0..items).map(|item| engine.estimate(&request, item, 0).input).collect();
        World {
            engine,
            scheduler: Scheduler::new(policy),
            retry: RetryPolicy::default(),
            now: Duration::ZERO,
            agenda: BinaryHeap::new(),
            order: 0,
            woken_at: None,
            waiting: HashMap::new(),
            flying: HashMap::new(),
            items: vec![RetryProgress::default(); items as usize],
            inputs,
            request,
            sizes: Sizes::default(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            outcomes: Outcomes {
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

    /// Runs until everything is done, at most so long.
    pub(crate) fn run(mut self, most: Duration) -> Outcomes {
        for item in 0..self.items.len() as u32 {
            self.ask(item);
        }
        self.tick();
        while let Some(Reverse((time, _, event))) = self.agenda.pop() {
            if time > most {
                break;
            }
            self.now = time;
            match event {
                Event::Response(flight) => self.respond(flight),
                Event::Retry(item) => self.ask(item),
                Event::Wake if self.woken_at == Some(time) => self.woken_at = None,
                // An earlier time was asked for meanwhile, and has passed.
                Event::Wake => continue,
            }
            self.tick();
        }
        if !self.stopped {
            self.outcomes.lost = self.items.len() as u64 - self.outcomes.answered;
        }
        self.outcomes.accepted_at.sort_by(f64::total_cmp);
        self.outcomes
    }

    fn schedule(&mut self, at: Duration, event: Event) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, event)));
    }

    fn ask(&mut self, item: u32) {
        let is_retry = self.items[item as usize].retries > 0;
        let cost = self.sizes.estimate(self.inputs[item as usize]);
        let ticket =
            self.scheduler.on_request(PermitRequest { cost, is_retry, ..PermitRequest::default() });
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
            && self.woken_at.is_none_or(|woken| at < woken)
        {
            self.woken_at = Some(at);
            self.schedule(at, Event::Wake);
        }
    }

    fn send(&mut self, item: u32, flight: Flight) {
        let ask =
            bakeoff_sim::Ask { request: &self.request, trial: item, ordinal: 0, now: self.now };
        let reply = self.engine.ask(&ask);
        let transit = TRANSIT_MS.0 - TRANSIT_MS.1 * (1.0 - self.rng.random::<f64>()).ln();
        let at = self.now + reply.delay + Duration::from_secs_f64(transit / 1000.0);
        self.flying.insert(flight, (item, reply, self.now));
        self.schedule(at, Event::Response(flight));
    }

    fn respond(&mut self, flight: Flight) {
        let Some((item, reply, sent)) = self.flying.remove(&flight) else { return };
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
                self.sizes.outputs += cost.output;
                self.sizes.answers += 1;
                let clean = self.items[item as usize].retries == 0;
                (SendOutcome::Answered { quota, usage: Some(cost), clean }, None)
            }
            Outcome::Refused { code: "insufficient_quota", .. } => {
                self.scheduler.stop("the quota is used up".to_owned());
                self.stopped = true;
                (SendOutcome::Refused, Some(ErrorKind::Quota))
            }
            Outcome::Refused { status: 429, .. } => {
                (SendOutcome::Rejected { quota }, Some(ErrorKind::RateLimit))
            }
            Outcome::Refused { .. } | Outcome::Broken(_) => {
                (SendOutcome::Failed, Some(ErrorKind::Transient))
            }
        };
        self.scheduler.on_end(self.now, flight, &ending);
        let Some(kind) = kind else {
            self.outcomes.answered += 1;
            if self.has_steps {
                self.outcomes.accepted_at.push(sent.as_secs_f64());
            }
            self.outcomes.seconds = self.now.as_secs_f64();
            return;
        };
        if kind == ErrorKind::RateLimit {
            self.outcomes.rejected += 1;
        }
        self.come_back(item, kind, retry_after, self.now - sent);
    }

    /// What a client does with a failure.
    fn come_back(
        &mut self,
        item: u32,
        kind: ErrorKind,
        asked: Option<Duration>,
        latency: Duration,
    ) {
        let waited = &mut self.items[item as usize];
        waited.spent += latency;
        let pause = self.retry.pause(kind, *waited, asked, self.rng.random());
        let Some(own) = pause else { return };
        let retry_mode = match kind {
            ErrorKind::RateLimit => self.scheduler.retry_mode(self.now),
            _ => RetryMode::Backoff,
        };
        let pause = match retry_mode {
            RetryMode::Queue => Duration::ZERO,
            RetryMode::Backoff => own,
            RetryMode::After(pause) => pause,
        };
        waited.spent += pause;
        waited.retries += 1;
        if kind != ErrorKind::RateLimit {
            waited.transient += 1;
        }
        self.schedule(self.now + pause, Event::Retry(item));
    }
}
