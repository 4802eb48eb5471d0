//! `auto`: finds out what the limits are and keeps just below them.

mod block;
mod boundary;
mod breaker;
mod bucket;
mod cap;
mod config;
mod given;
mod knee;
mod ledger;
mod levels;
mod marks;
mod mirror;
mod ramp;
mod search;
mod window;

use crate::{
    ChangeReason, Comeback, Cost, Dimension, Ending, Flight, Gate, LimitChange, Policy, Quota, View,
};
use block::Block;
use breaker::Breaker;
use bucket::{Bounce, Bucket, Start};
use cap::{Cap, Verdict};
pub use config::{AutoConfig, Learned, Rates, RetryAfter};
use given::Given;
use knee::Knee;
use ledger::{Ledger, Purpose, Sent};
use levels::Levels;
use marks::Marks;
use mirror::{Mirror, Stamp};
use ramp::Ramp;
use search::Search;
use std::time::Duration;
use window::Window;

/// A limit that changes by less than this factor is not told as a change.
const WORTH_TELLING: f64 = 1.25;
/// How many more may be in flight than a pace needs on average.
const SLACK: f64 = 2.0;
const SPARE: f64 = 4.0;

#[derive(Debug)]
enum Mode {
    Ramp(Ramp),
    Cap(Cap),
    Bucket(Bucket),
    Window(Window),
}

/// The default strategy.
#[derive(Debug)]
pub struct Auto {
    ceiling: u32,
    ledger: Ledger,
    marks: Marks,
    breaker: Breaker,
    mode: Mode,
    /// A rejection of a request that went out before says nothing new.
    cut: f64,
    block: Block,
    start: Option<Start>,
    /// When the last announced block ended, and what had been accepted until then.
    rested: (f64, f64),
    /// The least that was accepted at once after a rest.
    held: f64,
    first_sent: Option<f64>,
    purpose: Purpose,
    latency: f64,
    knee: Knee,
    search: Search,
    levels: Levels,
    mirrors: [Mirror; 4],
    given: Given,
    /// The limit as it was last told, and what was not told yet.
    told: u32,
    changes: Vec<LimitChange>,
}

impl Auto {
    /// A pool about which nothing is known but what the settings say.
    pub fn new(config: AutoConfig) -> Auto {
        let mode = match config.learned {
            None => Mode::Ramp(Ramp::new()),
            Some(Learned::Cap(width)) => Mode::Cap(Cap::known(width)),
            Some(Learned::Rate(rate)) => Mode::Bucket(Bucket::known(rate)),
        };
        let mut auto = Auto {
            ceiling: config.connections.max(1),
            ledger: Ledger::new(),
            marks: Marks::default(),
            breaker: Breaker::default(),
            mode,
            cut: 0.0,
            block: Block::new(config.retry_after),
            start: None,
            rested: (0.0, 0.0),
            held: f64::INFINITY,
            first_sent: None,
            purpose: Purpose::Work,
            latency: 0.0,
            knee: Knee::new(),
            search: Search::new(),
            levels: Levels::default(),
            mirrors: Dimension::ALL.map(Mirror::new),
            given: Given::new(config.rates),
            told: 0,
            changes: Vec::new(),
        };
        auto.told = auto.limit();
        auto
    }

    /// Counts as admitted what has not bounced.
    fn settle(&mut self, now: f64) {
        while let Some(sent) = self.ledger.admit_next(now) {
            self.admitted(now, sent);
        }
    }

    fn admitted(&mut self, now: f64, sent: Sent) {
        self.block.admitted(now, sent.number);
        match &mut self.mode {
            Mode::Ramp(_) => {}
            Mode::Cap(cap) => {
                self.levels.admitted(sent.level);
                if cap.admitted(now, sent) == Verdict::Refuted {
                    self.mode = Mode::Bucket(self.first_bucket(now));
                }
            }
            Mode::Bucket(bucket) => {
                self.levels.admitted(sent.level);
                let patience = self.ledger.patience();
                let rate = bucket.known_rate();
                bucket.admitted(now, patience);
                if let Some(found) = self.search.admitted(sent, now, rate, patience) {
                    self.mode = Mode::Window(Window::new(found));
                }
            }
            Mode::Window(window) => {
                if window.admitted(now, sent) {
                    self.mode = Mode::Bucket(Bucket::new(now, window.rate()));
                }
            }
        }
    }

    /// The rejections cannot be those of a cap: it was at least so fast since the first of them.
    fn first_bucket(&self, now: f64) -> Bucket {
        let since_first = self.start.map_or(1.0, |start| {
            let seconds = now - self.first_sent.unwrap_or(now) - start.seconds;
            (self.ledger.accepted() - start.accepted).max(1.0) / seconds.max(1e-3)
        });
        let measured = self.marks.estimate().map_or(0.0, |estimate| estimate.rate);
        Bucket::new(now, measured.max(since_first))
    }

    fn bounced(&mut self, now: f64, sent: Sent, hint: Option<f64>) {
        self.ledger.bounce(&sent, now - sent.at);
        self.marks.add(sent.at, sent.accepted);
        let accepted = sent.accepted;
        let seconds = sent.at - self.first_sent.unwrap_or(sent.at);
        let start = *self.start.get_or_insert(Start { accepted, seconds });
        let since_block = accepted - self.rested.1;
        self.held = self.held.min(since_block);
        let was_canary = self.block.bounced(now, sent.number);
        let cost = hint.map_or(0.0, |hint| self.block.announced(now, hint));
        if was_canary {
            self.void(sent);
            return;
        }
        let is_news = sent.at >= self.cut;
        if is_news {
            self.cut = now;
        }
        match &mut self.mode {
            Mode::Ramp(_) => {
                self.mode = Mode::Cap(Cap::new(sent.level, now, cost));
            }
            Mode::Cap(cap) => {
                if cap.bounced(now, sent, is_news, cost, self.latency) == Verdict::Refuted {
                    self.mode = Mode::Bucket(self.first_bucket(now));
                }
            }
            Mode::Bucket(bucket) if is_news => {
                self.search.bounced(sent);
                let bounce = Bounce {
                    start,
                    block: cost,
                    accepted,
                    since_block,
                    seconds: sent.at - self.rested.0,
                    held: self.held,
                };
                bucket.bounced(now, &mut self.marks, bounce);
                self.levels.bounced(sent.level);
            }
            Mode::Window(window) => {
                if window.bounced(sent) {
                    self.mode = Mode::Bucket(Bucket::new(now, window.rate()));
                }
            }
            Mode::Bucket(_) => {}
        }
    }

    fn next(&mut self, now: f64, level: u32, cost: Cost) -> Result<Purpose, Option<f64>> {
        if level >= self.ceiling {
            return Err(None);
        }
        let mut at = self.given.next_at(now, cost);
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
            self.rested = (now, self.ledger.accepted());
        }
        match &mut self.mode {
            Mode::Ramp(ramp) => {
                if f64::from(level) >= ramp.limit().min(self.knee.limit().unwrap_or(f64::INFINITY))
                {
                    return Err(None);
                }
                if ramp.next_at() > now {
                    return Err(Some(ramp.next_at()));
                }
                Ok(Purpose::Work)
            }
            Mode::Cap(cap) => match cap.next(now, level, self.latency) {
                // What is under way may count as admitted without another event.
                Err(None) => Err(Some(now + self.ledger.patience())),
                other => other,
            },
            Mode::Bucket(_) if !self.levels.allows(level) => Err(None),
            Mode::Bucket(bucket) => {
                let at = self.search.next_at().unwrap_or_else(|| bucket.next_at(now));
                let at = if at.is_finite() { at } else { now + self.ledger.patience() };
                if at > now { Err(Some(at)) } else { Ok(Purpose::Work) }
            }
            Mode::Window(window) => match window.next(now) {
                Err(None) => Err(Some(now + self.ledger.patience())),
                other => other,
            },
        }
    }
}

impl Policy for Auto {
    fn gate(&mut self, view: View, cost: Cost) -> Gate {
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
            Err(None) => Gate::Shut,
        }
    }

    fn sent(&mut self, view: View, flight: Flight, cost: Cost) {
        let now = view.now.as_secs_f64();
        let stamps = self.mirrors.each_mut().map(|mirror| {
            let cost = mirror.dimension().of(cost);
            mirror.sent(now, cost)
        });
        self.ledger.send(flight, now, view.in_flight - 1, self.purpose, stamps);
        self.given.sent(now, cost);
        self.breaker.sent();
        self.block.sent(now, self.ledger.sends() - 1);
        self.first_sent.get_or_insert(now);
        match &mut self.mode {
            Mode::Ramp(ramp) => {
                ramp.sent(now);
                self.knee.sent(now, self.ledger.sends() - 1, view.in_flight - 1);
            }
            Mode::Cap(cap) => cap.sent(now, self.purpose),
            Mode::Bucket(bucket) => {
                bucket.sent(now);
                self.search.sent(now, self.ledger.patience());
            }
            Mode::Window(window) => window.sent(now),
        }
    }

    fn ended(&mut self, view: View, flight: Flight, cost: Cost, ending: &Ending) {
        let now = view.now.as_secs_f64();
        self.settle(now);
        if let Some(sent) = self.ledger.remove(flight) {
            self.end(now, sent, cost, ending);
            self.tell(view.now);
        }
    }

    fn comeback(&self, _now: Duration) -> Comeback {
        Comeback::Queue
    }

    fn limit(&self) -> u32 {
        let limit = match &self.mode {
            Mode::Ramp(ramp) => ramp.limit().min(self.knee.limit().unwrap_or(f64::INFINITY)),
            Mode::Cap(cap) => f64::from(cap.width()),
            // What keeps the pace going, by Little's law, with room for slow answers.
            Mode::Bucket(bucket) => SLACK * bucket.pace() * self.latency + SPARE,
            Mode::Window(window) => window.count() + SPARE,
        };
        // A cast from float to integer stays within the integer's bounds.
        (limit.ceil() as u32).clamp(1, self.ceiling)
    }

    fn blocked_until(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.block.until()).ok()
    }

    fn learned(&self) -> Option<Learned> {
        match &self.mode {
            Mode::Cap(cap) if cap.is_confirmed() => Some(Learned::Cap(cap.width())),
            Mode::Bucket(bucket) if bucket.is_confident() => Some(Learned::Rate(bucket.rate())),
            Mode::Window(window) => Some(Learned::Rate(window.rate())),
            _ => None,
        }
    }

    fn take_changes(&mut self) -> Vec<LimitChange> {
        std::mem::take(&mut self.changes)
    }
}

impl Auto {
    fn end(&mut self, now: f64, sent: Sent, cost: Cost, ending: &Ending) {
        match ending {
            Ending::Answered { clean, quota, usage } => {
                if let Some(usage) = usage {
                    self.given.settle(cost, *usage);
                    for (mirror, stamp) in self.mirrors.iter_mut().zip(sent.stamps) {
                        mirror.settle(stamp, mirror.dimension().of(*usage));
                    }
                }
                self.observe(now, &sent, quota, false);
                if !sent.is_admitted {
                    self.admitted(now, sent);
                }
                let latency = now - sent.at;
                self.latency = if self.latency == 0.0 {
                    latency
                } else {
                    self.latency + 0.05 * (latency - self.latency)
                };
                self.breaker.responded(now, sent.at);
                match &mut self.mode {
                    Mode::Ramp(ramp) => {
                        if self.knee.is_usual(latency) {
                            ramp.answered(now);
                        }
                        self.knee.answered(now, sent.number, latency);
                    }
                    Mode::Cap(cap) if *clean => cap.answered(),
                    Mode::Cap(_) | Mode::Bucket(_) | Mode::Window(_) => {}
                }
            }
            Ending::Rejected { quota } => {
                self.breaker.responded(now, sent.at);
                let sent = Sent { stamps: sent.stamps.map(Stamp::unspent), ..sent };
                self.refund(cost, sent.stamps);
                if self.observe(now, &sent, quota, true) {
                    self.ledger.bounce(&sent, now - sent.at);
                    self.void(sent);
                } else {
                    self.bounced(now, sent, quota.retry_after.map(|hint| hint.as_secs_f64()));
                }
            }
            Ending::Failed => {
                if self.breaker.failed(now) {
                    // Nothing is learned from an outage, and what spans it says nothing.
                    self.marks.clear();
                    self.search = Search::new();
                }
                self.refund(cost, sent.stamps);
                self.void(sent);
            }
            Ending::Refused => {
                self.breaker.responded(now, sent.at);
                self.void(sent);
            }
            Ending::Dropped => {
                self.breaker.dropped();
                self.void(sent);
            }
        }
    }

    /// Reads the headers. Returns whether they explain a rejection.
    fn observe(&mut self, now: f64, sent: &Sent, quota: &Quota, is_rejected: bool) -> bool {
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
    fn refund(&mut self, cost: Cost, stamps: [Stamp; 4]) {
        self.given.settle(cost, Cost::default());
        for (mirror, stamp) in self.mirrors.iter_mut().zip(stamps) {
            mirror.refund(stamp.cost());
        }
    }

    /// Notes a change of the limit that is worth telling.
    fn tell(&mut self, now: Duration) {
        let (old_limit, new_limit) = (self.told, self.limit());
        let ratio = f64::from(new_limit) / f64::from(old_limit.max(1));
        if (1.0 / WORTH_TELLING..WORTH_TELLING).contains(&ratio) {
            return;
        }
        let reason = match self.mode {
            _ if new_limit < old_limit => ChangeReason::RateLimit,
            Mode::Ramp(_) => ChangeReason::SlowStart,
            _ => ChangeReason::SteadyStateUp,
        };
        self.told = new_limit;
        self.changes.push(LimitChange { at: now, old_limit, new_limit, reason });
    }

    fn void(&mut self, sent: Sent) {
        if sent.is_admitted {
            return;
        }
        match &mut self.mode {
            Mode::Cap(cap) => cap.ended(sent.purpose),
            Mode::Window(window) => window.voided(sent),
            Mode::Bucket(_) => self.search.voided(),
            Mode::Ramp(_) => {}
        }
    }
}
