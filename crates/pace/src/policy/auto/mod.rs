//! `auto`: finds out what the limits are and keeps just below them.

mod block;
mod boundary;
mod breaker;
mod bucket;
mod cap;
mod config;
mod knee;
mod ledger;
mod level_tracker;
mod marks;
mod mirror;
mod ramp;
mod user_rates;
mod window;
mod window_search;

use crate::{
    ChangeReason, Dimension, Flight, Gate, LimitChange, Policy, PoolView, Quota, RetryMode,
    SendOutcome, TokenCost,
};
use block::AnnouncedBlock;
use breaker::CircuitBreaker;
use bucket::{BucketHypothesis, InitialBurst, Rejection};
use cap::{CapHypothesis, CapTest};
pub use config::{AutoConfig, LearnedLimit, Rates, RetryAfter};
use knee::LatencyKnee;
use ledger::{Ledger, SendPurpose, SentRequest};
use level_tracker::LevelTracker;
use marks::RateMarks;
use mirror::{MirrorStamp, QuotaMirror};
use ramp::Ramp;
use std::time::Duration;
use user_rates::UserRates;
use window::WindowHypothesis;
use window_search::WindowSearch;

/// A limit that changes by less than this factor is not reported as a change.
const MIN_CHANGE_RATIO: f64 = 1.25;
/// How many more may be in flight than a pace needs on average.
const CONCURRENCY_SLACK: f64 = 2.0;
const SPARE_REQUESTS: f64 = 4.0;

#[derive(Debug)]
enum AutoMode {
    Ramp(Ramp),
    Cap(CapHypothesis),
    Bucket(BucketHypothesis),
    Window(WindowHypothesis),
}

/// The default strategy.
#[derive(Debug)]
pub struct AutoPolicy {
    ceiling: u32,
    ledger: Ledger,
    marks: RateMarks,
    breaker: CircuitBreaker,
    mode: AutoMode,
    /// A rejection of a request that went out before says nothing new.
    reacted_at: f64,
    block: AnnouncedBlock,
    start: Option<InitialBurst>,
    /// When the last announced block ended, and what had been accepted until then.
    block_end: (f64, f64),
    /// The least that was accepted at once after a rest.
    min_burst: f64,
    first_sent: Option<f64>,
    purpose: SendPurpose,
    latency: f64,
    knee: LatencyKnee,
    search: WindowSearch,
    levels: LevelTracker,
    mirrors: [QuotaMirror; 4],
    user_rates: UserRates,
    /// The limit as it was last reported, and what was not reported yet.
    reported: u32,
    changes: Vec<LimitChange>,
}

impl AutoPolicy {
    /// A pool about which nothing is known but what the settings say.
    pub fn new(config: AutoConfig) -> AutoPolicy {
        let mode = match config.learned {
            None => AutoMode::Ramp(Ramp::new()),
            Some(LearnedLimit::Cap(width)) => AutoMode::Cap(CapHypothesis::known(width)),
            Some(LearnedLimit::Rate(rate)) => AutoMode::Bucket(BucketHypothesis::known(rate)),
        };
        let mut auto = AutoPolicy {
            ceiling: config.connections.max(1),
            ledger: Ledger::new(),
            marks: RateMarks::default(),
            breaker: CircuitBreaker::default(),
            mode,
            reacted_at: 0.0,
            block: AnnouncedBlock::new(config.retry_after),
            start: None,
            block_end: (0.0, 0.0),
            min_burst: f64::INFINITY,
            first_sent: None,
            purpose: SendPurpose::Work,
            latency: 0.0,
            knee: LatencyKnee::new(),
            search: WindowSearch::new(),
            levels: LevelTracker::default(),
            mirrors: Dimension::ALL.map(QuotaMirror::new),
            user_rates: UserRates::new(config.rates),
            reported: 0,
            changes: Vec::new(),
        };
        auto.reported = auto.limit();
        auto
    }

    /// Counts as admitted what has not bounced.
    fn settle(&mut self, now: f64) {
        while let Some(sent) = self.ledger.admit_next(now) {
            self.on_admitted(now, sent);
        }
    }

    fn on_admitted(&mut self, now: f64, sent: SentRequest) {
        self.block.on_admitted(now, sent.number);
        match &mut self.mode {
            AutoMode::Ramp(_) => {}
            AutoMode::Cap(cap) => {
                self.levels.on_admitted(sent.level);
                if cap.on_admitted(now, sent) == CapTest::Refuted {
                    self.mode = AutoMode::Bucket(self.first_bucket(now));
                }
            }
            AutoMode::Bucket(bucket) => {
                self.levels.on_admitted(sent.level);
                let patience = self.ledger.patience();
                let rate = bucket.known_rate();
                bucket.on_admitted(now, patience);
                if let Some(found) = self.search.on_admitted(sent, now, rate, patience) {
                    self.mode = AutoMode::Window(WindowHypothesis::new(found));
                }
            }
            AutoMode::Window(window) => {
                if window.on_admitted(now, sent) {
                    self.mode = AutoMode::Bucket(BucketHypothesis::new(now, window.rate()));
                }
            }
        }
    }

    /// The rejections cannot be those of a cap: it was at least so fast since the first of them.
    fn first_bucket(&self, now: f64) -> BucketHypothesis {
        let since_first = self.start.map_or(1.0, |start| {
            let seconds = now - self.first_sent.unwrap_or(now) - start.seconds;
            (self.ledger.accepted() - start.accepted).max(1.0) / seconds.max(1e-3)
        });
        let measured = self.marks.estimate().map_or(0.0, |estimate| estimate.rate);
        BucketHypothesis::new(now, measured.max(since_first))
    }

    fn on_rejected(&mut self, now: f64, sent: SentRequest, hint: Option<f64>) {
        self.ledger.bounce(&sent, now - sent.at);
        self.marks.add(sent.at, sent.accepted);
        let accepted = sent.accepted;
        let seconds = sent.at - self.first_sent.unwrap_or(sent.at);
        let start = *self.start.get_or_insert(InitialBurst { accepted, seconds });
        let since_block = accepted - self.block_end.1;
        self.min_burst = self.min_burst.min(since_block);
        let was_canary = self.block.on_rejected(now, sent.number);
        let cost = hint.map_or(0.0, |hint| self.block.on_announced(now, hint));
        if was_canary {
            self.discard(sent);
            return;
        }
        let is_news = sent.at >= self.reacted_at;
        if is_news {
            self.reacted_at = now;
        }
        match &mut self.mode {
            AutoMode::Ramp(_) => {
                self.mode = AutoMode::Cap(CapHypothesis::new(sent.level, now, cost));
            }
            AutoMode::Cap(cap) => {
                if cap.on_rejected(now, sent, is_news, cost, self.latency) == CapTest::Refuted {
                    self.mode = AutoMode::Bucket(self.first_bucket(now));
                }
            }
            AutoMode::Bucket(bucket) if is_news => {
                self.search.on_rejected(sent);
                let bounce = Rejection {
                    start,
                    block: cost,
                    accepted,
                    since_block,
                    seconds: sent.at - self.block_end.0,
                    min_burst: self.min_burst,
                };
                bucket.on_rejected(now, &mut self.marks, bounce);
                self.levels.on_rejected(sent.level);
            }
            AutoMode::Window(window) => {
                if window.on_rejected(sent) {
                    self.mode = AutoMode::Bucket(BucketHypothesis::new(now, window.rate()));
                }
            }
            AutoMode::Bucket(_) => {}
        }
    }

    fn next(&mut self, now: f64, level: u32, cost: TokenCost) -> Result<SendPurpose, Option<f64>> {
        if level >= self.ceiling {
            return Err(None);
        }
        let mut at = self.user_rates.next_at(now, cost);
        for mirror in &mut self.mirrors {
            at = at.max(mirror.next_at(now, mirror.dimension().of(cost)));
        }
        if at > now {
            return Err(Some(at));
        }
        match self.breaker.next_at(now) {
            None => return Err(None),
            Some(at) if at > now => return Err(Some(at)),
            Some(_) => {}
        }
        let at = self.block.next_at(now);
        if at > now {
            return Err(Some(at));
        }
        if self.block.take_ended(now) {
            self.block_end = (now, self.ledger.accepted());
        }
        match &mut self.mode {
            AutoMode::Ramp(ramp) => {
                if f64::from(level) >= ramp.limit().min(self.knee.limit().unwrap_or(f64::INFINITY))
                {
                    return Err(None);
                }
                if ramp.next_at() > now {
                    return Err(Some(ramp.next_at()));
                }
                Ok(SendPurpose::Work)
            }
            AutoMode::Cap(cap) => match cap.next(now, level, self.latency) {
                // What is under way may count as admitted without another event.
                Err(None) => Err(Some(now + self.ledger.patience())),
                other => other,
            },
            AutoMode::Bucket(_) if !self.levels.allows(level) => Err(None),
            AutoMode::Bucket(bucket) => {
                let at = self.search.next_at().unwrap_or_else(|| bucket.next_at(now));
                let at = if at.is_finite() { at } else { now + self.ledger.patience() };
                if at > now { Err(Some(at)) } else { Ok(SendPurpose::Work) }
            }
            AutoMode::Window(window) => match window.next(now) {
                Err(None) => Err(Some(now + self.ledger.patience())),
                other => other,
            },
        }
    }
}

impl Policy for AutoPolicy {
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate {
        let now = view.now.as_secs_f64();
        self.settle(now);
        match self.next(now, view.in_flight, cost) {
            Ok(purpose) => {
                self.purpose = purpose;
                Gate::Open
            }
            Err(Some(at)) => Gate::Until(
                Duration::from_secs_f64(at.max(now)).max(view.now + Duration::from_nanos(1)),
            ),
            Err(None) => Gate::Closed,
        }
    }

    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        let now = view.now.as_secs_f64();
        let stamps = self.mirrors.each_mut().map(|mirror| {
            let cost = mirror.dimension().of(cost);
            mirror.on_sent(now, cost)
        });
        self.ledger.send(flight, now, view.in_flight - 1, self.purpose, stamps);
        self.user_rates.on_sent(now, cost);
        self.breaker.on_sent();
        self.block.on_sent(now, self.ledger.sends() - 1);
        self.first_sent.get_or_insert(now);
        match &mut self.mode {
            AutoMode::Ramp(ramp) => {
                ramp.on_sent(now);
                self.knee.on_sent(now, self.ledger.sends() - 1, view.in_flight - 1);
            }
            AutoMode::Cap(cap) => cap.on_sent(now, self.purpose),
            AutoMode::Bucket(bucket) => {
                bucket.on_sent(now);
                self.search.on_sent(now, self.ledger.patience());
            }
            AutoMode::Window(window) => window.on_sent(now),
        }
    }

    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, ending: &SendOutcome) {
        let now = view.now.as_secs_f64();
        self.settle(now);
        if let Some(sent) = self.ledger.remove(flight) {
            self.end(now, sent, cost, ending);
            self.record_change(view.now);
        }
    }

    fn retry_mode(&self, _now: Duration) -> RetryMode {
        RetryMode::Queue
    }

    fn limit(&self) -> u32 {
        let limit = match &self.mode {
            AutoMode::Ramp(ramp) => ramp.limit().min(self.knee.limit().unwrap_or(f64::INFINITY)),
            AutoMode::Cap(cap) => f64::from(cap.width()),
            // What keeps the pace going, by Little's law, with room for slow answers.
            AutoMode::Bucket(bucket) => {
                CONCURRENCY_SLACK * bucket.pace() * self.latency + SPARE_REQUESTS
            }
            AutoMode::Window(window) => window.count() + SPARE_REQUESTS,
        };
        // A cast from float to integer stays within the integer's bounds.
        (limit.ceil() as u32).clamp(1, self.ceiling)
    }

    fn blocked_until(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.block.until()).ok()
    }

    fn learned(&self) -> Option<LearnedLimit> {
        match &self.mode {
            AutoMode::Cap(cap) if cap.is_confirmed() => Some(LearnedLimit::Cap(cap.width())),
            AutoMode::Bucket(bucket) if bucket.is_confident() => {
                Some(LearnedLimit::Rate(bucket.rate()))
            }
            AutoMode::Window(window) => Some(LearnedLimit::Rate(window.rate())),
            _ => None,
        }
    }

    fn take_changes(&mut self) -> Vec<LimitChange> {
        std::mem::take(&mut self.changes)
    }
}

impl AutoPolicy {
    fn end(&mut self, now: f64, sent: SentRequest, cost: TokenCost, ending: &SendOutcome) {
        match ending {
            SendOutcome::Answered { clean, quota, usage } => {
                if let Some(usage) = usage {
                    self.user_rates.settle(cost, *usage);
                    for (mirror, stamp) in self.mirrors.iter_mut().zip(sent.stamps) {
                        mirror.settle(stamp, mirror.dimension().of(*usage));
                    }
                }
                self.observe(now, &sent, quota, false);
                if !sent.is_admitted {
                    self.on_admitted(now, sent);
                }
                let latency = now - sent.at;
                self.latency = if self.latency == 0.0 {
                    latency
                } else {
                    self.latency + 0.05 * (latency - self.latency)
                };
                self.breaker.on_responded(now, sent.at);
                match &mut self.mode {
                    AutoMode::Ramp(ramp) => {
                        if self.knee.is_usual(latency) {
                            ramp.on_answered(now);
                        }
                        self.knee.on_answered(now, sent.number, latency);
                    }
                    AutoMode::Cap(cap) if *clean => cap.on_answered(),
                    AutoMode::Cap(_) | AutoMode::Bucket(_) | AutoMode::Window(_) => {}
                }
            }
            SendOutcome::Rejected { quota } => {
                self.breaker.on_responded(now, sent.at);
                let sent = SentRequest { stamps: sent.stamps.map(MirrorStamp::unspent), ..sent };
                self.refund(cost, sent.stamps);
                if self.observe(now, &sent, quota, true) {
                    self.ledger.bounce(&sent, now - sent.at);
                    self.discard(sent);
                } else {
                    self.on_rejected(now, sent, quota.retry_after.map(|hint| hint.as_secs_f64()));
                }
            }
            SendOutcome::Failed => {
                if self.breaker.on_failed(now) {
                    // Nothing is learned from an outage, and what spans it says nothing.
                    self.marks.clear();
                    self.search = WindowSearch::new();
                }
                self.refund(cost, sent.stamps);
                self.discard(sent);
            }
            SendOutcome::Refused => {
                self.breaker.on_responded(now, sent.at);
                self.discard(sent);
            }
            SendOutcome::Dropped => {
                self.breaker.on_dropped();
                self.discard(sent);
            }
        }
    }

    /// Reads the headers. Returns whether they explain a rejection.
    fn observe(&mut self, now: f64, sent: &SentRequest, quota: &Quota, is_rejected: bool) -> bool {
        let mut is_explained = false;
        for reading in &quota.readings {
            for (mirror, stamp) in self.mirrors.iter_mut().zip(sent.stamps) {
                if mirror.dimension() == reading.dimension {
                    mirror.observe(now, sent.at, stamp, reading);
                    is_explained |= is_rejected && mirror.explains(now, sent.at, stamp, reading);
                }
            }
        }
        is_explained
    }

    /// A request has cost nothing; that it was made still counts where the user gave a limit.
    fn refund(&mut self, cost: TokenCost, stamps: [MirrorStamp; 4]) {
        self.user_rates.settle(cost, TokenCost::default());
        for (mirror, stamp) in self.mirrors.iter_mut().zip(stamps) {
            mirror.refund(stamp.cost());
        }
    }

    /// Notes a change of the limit that is worth telling.
    fn record_change(&mut self, now: Duration) {
        let (old_limit, new_limit) = (self.reported, self.limit());
        let ratio = f64::from(new_limit) / f64::from(old_limit.max(1));
        if (1.0 / MIN_CHANGE_RATIO..MIN_CHANGE_RATIO).contains(&ratio) {
            return;
        }
        let reason = match self.mode {
            _ if new_limit < old_limit => ChangeReason::RateLimit,
            AutoMode::Ramp(_) => ChangeReason::SlowStart,
            _ => ChangeReason::SteadyStateUp,
        };
        self.reported = new_limit;
        self.changes.push(LimitChange { at: now, old_limit, new_limit, reason });
    }

    fn discard(&mut self, sent: SentRequest) {
        if sent.is_admitted {
            return;
        }
        match &mut self.mode {
            AutoMode::Cap(cap) => cap.on_ended(sent.purpose),
            AutoMode::Window(window) => window.on_discarded(sent),
            AutoMode::Bucket(_) => self.search.on_discarded(),
            AutoMode::Ramp(_) => {}
        }
    }
}
