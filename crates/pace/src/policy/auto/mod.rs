//! `auto`: detects the limits of a provider and stays just below them.
//!
//! Without information it ramps up until the first rejection (`ramp`). Then it tests hypotheses about
//! the limit, one at a time (`transition`): a cap on requests in flight (`cap`), a rate (`bucket`,
//! with experiments in `pace_trial`), windows of fixed length (`window`, found by `window_search`), or
//! a sliding window (`sliding`). Rejections can also be random (`noise`). Rate-limit headers
//! (`mirror`), announced blocks (`block`) and rates given by the user (`user_rates`) restrict it
//! further. What it reports is in `report`.

mod block;
mod boundary;
mod bucket;
mod cap;
mod charge;
mod cohort;
mod config;
mod knee;
mod ledger;
mod level_tracker;
mod marks;
mod mirror;
mod noise;
mod overload;
mod pace_trial;
mod ramp;
mod report;
mod sliding;
mod throughput;
mod transition;
mod user_rates;
mod window;
mod window_search;

use crate::{
    BindingLimit, Dimension, Flight, Gate, LimitChange, Policy, PoolView, Quota, RetryMode,
    SendOutcome, TokenCost,
};
use block::AnnouncedBlock;
use bucket::{BucketHypothesis, InitialBurst};
use cap::CapHypothesis;
pub use config::{AutoConfig, LearnedLimit, Rates, RetryAfter};
use knee::LatencyKnee;
use ledger::{Ledger, SendPurpose, SentRequest};
use level_tracker::LevelTracker;
use marks::RateMarks;
use mirror::{MirrorStamp, QuotaMirror};
use noise::RandomRejections;
use ramp::Ramp;
use sliding::SlidingHypothesis;
use std::mem::Discriminant;
use std::time::Duration;
use throughput::Throughput;
use user_rates::UserRates;
use window::WindowHypothesis;
use window_search::WindowSearch;

/// The current hypothesis about the limit.
#[derive(Debug)]
enum AutoMode {
    Ramp(Ramp),
    Cap(CapHypothesis),
    Bucket(BucketHypothesis),
    Window(WindowHypothesis),
    Sliding(SlidingHypothesis),
}

/// What delays the next request.
#[derive(Debug, Clone, Copy)]
enum Constraint {
    Ceiling,
    /// A rate given by the user.
    UserRate(Dimension),
    /// A limit in headers, by the index of its mirror.
    Mirror(usize),
    /// The current hypothesis.
    Hypothesis,
}

/// The strategy `auto`, the default.
#[derive(Debug)]
pub struct AutoPolicy {
    ceiling: u32,
    ledger: Ledger,
    throughput: Throughput,
    marks: RateMarks,
    mode: AutoMode,
    /// Time of the last reaction. Rejections of requests that were sent earlier carry no news.
    reacted_at: f64,
    block: AnnouncedBlock,
    start: Option<InitialBurst>,
    /// End of the last announced block, and the number of requests accepted until then.
    block_end: (f64, f64),
    /// Smallest number of requests accepted after a block before the next rejection.
    min_burst: f64,
    first_sent: Option<f64>,
    purpose: SendPurpose,
    latency: f64,
    knee: LatencyKnee,
    noise: RandomRejections,
    search: WindowSearch,
    levels: LevelTracker,
    mirrors: [QuotaMirror; 4],
    user_rates: UserRates,
    /// What delayed the last request that was not sent at once.
    constraint: Constraint,
    /// The last reported limit, whether a request was rejected since, and the changes not yet
    /// returned.
    reported: u32,
    saw_rejection: bool,
    /// The kind of the last reported limit of the provider.
    reported_kind: Option<Discriminant<BindingLimit>>,
    changes: Vec<LimitChange>,
}

impl AutoPolicy {
    /// Creates the strategy. Without a learned limit it starts with the ramp.
    pub fn new(config: AutoConfig) -> AutoPolicy {
        let mode = match config.learned {
            None => AutoMode::Ramp(Ramp::new()),
            Some(LearnedLimit::Cap(width)) => AutoMode::Cap(CapHypothesis::known(width)),
            Some(LearnedLimit::Rate(rate)) => AutoMode::Bucket(BucketHypothesis::known(rate)),
        };
        let mut auto = AutoPolicy {
            ceiling: config.connections.max(1),
            ledger: Ledger::new(),
            throughput: Throughput::default(),
            marks: RateMarks::default(),
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
            noise: RandomRejections::new(),
            search: WindowSearch::new(),
            levels: LevelTracker::default(),
            mirrors: Dimension::ALL.map(QuotaMirror::new),
            user_rates: UserRates::new(config.rates),
            constraint: Constraint::Hypothesis,
            reported: 0,
            saw_rejection: false,
            reported_kind: None,
            changes: Vec::new(),
        };
        auto.reported = auto.limit();
        auto
    }

    /// Counts requests as admitted that were not rejected within the patience.
    fn settle(&mut self, now: f64) {
        while let Some(sent) = self.ledger.admit_next(now) {
            self.on_admitted(now, sent);
        }
    }

    fn next(&mut self, now: f64, level: u32, cost: TokenCost) -> Result<SendPurpose, Option<f64>> {
        if level >= self.ceiling {
            self.constraint = Constraint::Ceiling;
            return Err(None);
        }
        let (mut at, dimension) = self.user_rates.next_at(now, cost);
        let mut constraint = Constraint::UserRate(dimension);
        for (index, mirror) in self.mirrors.iter_mut().enumerate() {
            let mirror_at = mirror.next_at(now, mirror.dimension().of(cost));
            if mirror_at > at {
                (at, constraint) = (mirror_at, Constraint::Mirror(index));
            }
        }
        if at > now {
            self.constraint = constraint;
            return Err(Some(at));
        }
        let at = self.block.next_at(now);
        if at > now {
            return Err(Some(at));
        }
        if self.block.take_ended(now) {
            self.block_end = (now, self.ledger.accepted());
        }
        let result = self.next_by_hypothesis(now, level);
        if result.is_err() {
            self.constraint = Constraint::Hypothesis;
        }
        result
    }

    fn next_by_hypothesis(&mut self, now: f64, level: u32) -> Result<SendPurpose, Option<f64>> {
        match &mut self.mode {
            AutoMode::Ramp(ramp) => {
                if f64::from(level) >= self.knee.limit().unwrap_or_else(|| ramp.limit()) {
                    return Err(None);
                }
                if self.noise.is_bursting() {
                    return Ok(SendPurpose::Burst);
                }
                if self.noise.is_waiting(self.ledger.sends()) && self.ledger.has_undecided() {
                    return Err(Some(now + self.ledger.patience()));
                }
                if ramp.next_at() > now {
                    return Err(Some(ramp.next_at()));
                }
                Ok(SendPurpose::Work)
            }
            AutoMode::Cap(cap) => match cap.next(now, level, self.latency) {
                // Requests in flight may count as admitted later without another event.
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
            AutoMode::Sliding(sliding) => match sliding.next(now, &self.ledger) {
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
        self.block.on_sent(now, self.ledger.sends() - 1);
        self.first_sent.get_or_insert(now);
        self.noise.on_sent(self.purpose);
        match &mut self.mode {
            AutoMode::Ramp(ramp) => {
                ramp.on_sent(now);
                self.knee.on_sent(now, self.ledger.sends() - 1, view.in_flight - 1);
            }
            AutoMode::Cap(cap) => cap.on_sent(now, self.purpose),
            AutoMode::Bucket(bucket) => {
                bucket.on_sent(now);
                if self.search.next_at().is_none() {
                    bucket.on_trial_sent(now, self.ledger.sends() - 1);
                }
                self.search.on_sent(now, self.ledger.patience());
            }
            AutoMode::Window(window) => window.on_sent(now),
            AutoMode::Sliding(sliding) => sliding.on_sent(self.ledger.sends() - 1, self.purpose),
        }
    }

    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, outcome: &SendOutcome) {
        let now = view.now.as_secs_f64();
        self.settle(now);
        self.knee.on_ended(now, view.in_flight);
        if let Some(sent) = self.ledger.remove(flight) {
            if !matches!(outcome, SendOutcome::Answered { .. }) {
                self.knee.on_discarded(sent.number);
            }
            self.end(now, sent, cost, outcome);
            self.record_change(view.now);
        }
    }

    fn retry_mode(&self, _now: Duration) -> RetryMode {
        RetryMode::Queue
    }

    fn on_outage(&mut self) {
        self.marks.clear();
        self.search = WindowSearch::new();
    }

    fn on_shedding(&mut self) {
        let config = AutoConfig::default().connections(self.ceiling).retry_after(self.block.mode());
        let old = std::mem::replace(self, AutoPolicy::new(config));
        self.mirrors = old.mirrors;
        self.user_rates = old.user_rates;
        self.reported = old.reported;
        self.saw_rejection = old.saw_rejection;
        self.reported_kind = old.reported_kind;
        self.changes = old.changes;
    }

    fn retry_after(&self) -> RetryAfter {
        self.block.mode()
    }

    fn limit(&self) -> u32 {
        self.concurrency_limit()
    }

    fn set_max_connections(&mut self, max: u32) {
        self.ceiling = max.max(1);
        self.reported = self.concurrency_limit();
    }

    fn set_rpm(&mut self, now: Duration, rpm: u64) -> bool {
        self.user_rates.set_rpm(now.as_secs_f64(), rpm as f64);
        true
    }

    fn binding(&self) -> Option<BindingLimit> {
        Some(self.binding_limit())
    }

    fn blocked_until(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.block.until()).ok()
    }

    fn learned(&self) -> Option<LearnedLimit> {
        self.learned_limit()
    }

    fn take_changes(&mut self) -> Vec<LimitChange> {
        std::mem::take(&mut self.changes)
    }
}

impl AutoPolicy {
    fn end(&mut self, now: f64, sent: SentRequest, cost: TokenCost, outcome: &SendOutcome) {
        match outcome {
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
                match &mut self.mode {
                    AutoMode::Ramp(ramp) => {
                        ramp.on_answered(now, self.knee.is_normal(latency));
                        self.knee.on_answered(now, sent.number, latency);
                    }
                    AutoMode::Cap(cap) if *clean => cap.on_answered(),
                    AutoMode::Cap(_)
                    | AutoMode::Bucket(_)
                    | AutoMode::Window(_)
                    | AutoMode::Sliding(_) => {}
                }
            }
            SendOutcome::Rejected { quota } => {
                self.saw_rejection = true;
                let sent = SentRequest { stamps: sent.stamps.map(MirrorStamp::unspent), ..sent };
                self.refund(cost, sent.stamps);
                if self.observe(now, &sent, quota, true) {
                    self.noise.on_discarded(sent);
                    self.ledger.reject(&sent, now - sent.at);
                    self.discard(sent);
                } else {
                    self.on_rejected(now, sent, quota.retry_after.map(|hint| hint.as_secs_f64()));
                }
            }
            SendOutcome::Failed { .. } | SendOutcome::Overloaded { .. } => {
                if !sent.is_admitted {
                    self.ledger.free(&sent);
                }
                self.noise.on_discarded(sent);
                self.refund(cost, sent.stamps);
                self.discard(sent);
            }
            SendOutcome::Refused | SendOutcome::Dropped => {
                self.noise.on_discarded(sent);
                self.discard(sent);
            }
        }
    }

    /// Processes the headers; returns whether they explain a rejection.
    fn observe(&mut self, now: f64, sent: &SentRequest, quota: &Quota, is_rejected: bool) -> bool {
        let mut is_explained = false;
        for reading in &quota.readings {
            for (mirror, stamp) in self.mirrors.iter_mut().zip(sent.stamps) {
                if mirror.dimension() == reading.dimension {
                    mirror.observe(now, sent.at, stamp, reading);
                    if is_rejected {
                        is_explained |= mirror.explains(now, sent.at, stamp, reading);
                    } else {
                        mirror.on_answered();
                    }
                }
            }
        }
        is_explained
    }

    /// Refunds the tokens of a request. It still counts as a request for the rates of the user.
    fn refund(&mut self, cost: TokenCost, stamps: [MirrorStamp; 4]) {
        self.user_rates.settle(cost, TokenCost::default());
        for (mirror, stamp) in self.mirrors.iter_mut().zip(stamps) {
            mirror.refund(stamp.cost());
        }
    }
}
