//! What the probe does next: a state machine without clock, tasks or network.
//!
//! It doubles the requests in flight level by level until something is rejected. Then it stays just
//! above the limit until the rejections have told what they depend on, and at last it tries what it
//! is going to recommend.

use super::level::{Level, Purpose};
use super::round::Round;
use super::sample::{Outcome, Sample, quantile, usual_latency};
use super::verdict::{Verdict, judge, most_at_once};
use std::collections::BTreeMap;

/// What is recommended of what was found.
pub(super) const MARGIN: f64 = 0.95;
/// Longest pause that the probe makes unasked.
const LONGEST_PAUSE: f64 = 20.0;
/// The same while nothing has been rejected.
const CALM_PAUSE: f64 = 3.0;
/// How often a recommendation that was rejected is made smaller and tried again.
const MOST_CONFIRMATIONS: u32 = 4;
/// Requests that are used twice at a level of the ramp, so that it lasts longer than one burst.
const USED_TWICE: u32 = 8;

/// How far a probe may go. Times are seconds since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) max_requests: u32,
    pub(super) max_connections: u32,
    pub(super) max_seconds: f64,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// Send a request.
    Send,
    /// Nothing before then, unless a request ends.
    Until(f64),
    /// Nothing before a request ends.
    Listen,
    /// It is over.
    Done,
}

/// What limits a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Nothing was rejected with so many in flight.
    NotReached {
        /// The most that were tried.
        connections: u32,
    },
    /// So many may be in flight.
    Cap {
        /// How many.
        connections: f64,
    },
    /// So many may be sent per time.
    Rate {
        /// How many, per second.
        per_second: f64,
    },
    /// Nothing is rejected, but with more in flight answers only take longer.
    Knee {
        /// How many.
        connections: f64,
    },
    /// It was not found out.
    Unknown,
}

/// Why a probe ended before it was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// So many requests were allowed.
    Requests,
    /// It was allowed to take so long.
    Time,
    /// It was allowed to cost so much.
    Cost,
    /// No request was accepted at all.
    AllRejected,
    /// Most requests failed, not for a limit.
    Failures,
    /// A quota is used up.
    Quota,
    /// [`super::ProbeConfig::stop`] was cancelled.
    Interrupted,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Ramp { connections: u32 },
    Measure(Round),
    Confirm { connections: u32, spacing: Option<f64>, requests: u32 },
    Over,
}

/// The probe's mind.
#[derive(Debug)]
pub(super) struct Search {
    bounds: Bounds,
    stage: Stage,
    /// Nothing more is sent at this level.
    is_closing: bool,
    /// Of this level.
    samples: Vec<Sample>,
    /// Of all levels since the first rejection.
    evidence: Vec<Sample>,
    flying: BTreeMap<u64, f64>,
    sent: u32,
    sent_here: u32,
    last_sent: f64,
    not_before: f64,
    /// When all of the provider's limits are restored, as its headers say.
    full_at: f64,
    /// The longest time for which everything was rejected.
    stretch: f64,
    confirmations: u32,
    /// The provider has said so, or a cap has been refuted.
    is_rate: bool,
    pub(super) levels: Vec<Level>,
    pub(super) limit: Limit,
    pub(super) is_confirmed: bool,
    pub(super) stop: Option<Stop>,
}

impl Search {
    pub(super) fn new(bounds: Bounds) -> Search {
        Search {
            bounds,
            stage: Stage::Ramp { connections: 1 },
            is_closing: false,
            samples: Vec::new(),
            evidence: Vec::new(),
            flying: BTreeMap::new(),
            sent: 0,
            sent_here: 0,
            last_sent: f64::NEG_INFINITY,
            not_before: 0.0,
            full_at: 0.0,
            stretch: 0.0,
            confirmations: 0,
            is_rate: false,
            levels: Vec::new(),
            limit: Limit::Unknown,
            is_confirmed: false,
            stop: None,
        }
    }

    /// What to do now.
    pub(super) fn next(&mut self, now: f64) -> Next {
        loop {
            if let Stage::Over = self.stage {
                return if self.flying.is_empty() { Next::Done } else { Next::Listen };
            }
            if self.is_closing {
                if !self.flying.is_empty() {
                    return Next::Listen;
                }
                if self.is_premature() {
                    self.is_closing = false;
                } else {
                    self.close_level(now);
                }
                continue;
            }
            if let Stage::Confirm { requests, .. } = self.stage
                && self.sent_here >= requests.max(1)
            {
                // It was made as long as it could be, so that its end is no early one.
                self.is_closing = true;
            } else if self.sent >= self.bounds.max_requests {
                self.end(Stop::Requests);
            } else if self.not_before.max(now) >= self.bounds.max_seconds {
                self.end(Stop::Time);
            } else if self.not_before > now {
                return Next::Until(self.not_before);
            } else {
                match self.next_of_level(now) {
                    Some(next) => return next,
                    None => self.is_closing = true,
                }
            }
        }
    }

    /// A request goes out.
    pub(super) fn sent(&mut self, now: f64, number: u64) {
        self.flying.insert(number, now);
        self.sent += 1;
        self.sent_here += 1;
        self.last_sent = now;
        if let Stage::Measure(round) = &mut self.stage {
            round.sent += 1;
            round.last_at = now;
        }
    }

    /// A request has ended. `wait` is what the provider asks for, `reset` the time until all its
    /// limits are restored.
    pub(super) fn ended(
        &mut self,
        now: f64,
        number: u64,
        outcome: Outcome,
        wait: Option<f64>,
        reset: Option<f64>,
    ) {
        let Some(sent) = self.flying.remove(&number) else { return };
        self.samples.push(Sample { sent, ended: now, outcome });
        if let Some(reset) = reset {
            self.full_at = now + reset;
        }
        if outcome == Outcome::Rejected {
            // Nothing goes out while the provider asks for silence.
            self.not_before = self.not_before.max(now + wait.unwrap_or(0.0));
            if let Stage::Measure(round) = &mut self.stage {
                round.rejected(now);
            }
        }
        if let Stage::Measure(_) = self.stage
            && !self.is_closing
        {
            let verdict = self.verdict(false);
            self.is_closing = matches!(verdict, Verdict::Cap(_) | Verdict::Rate { .. });
            if let (Verdict::SomeRate, Stage::Measure(round)) = (verdict, &mut self.stage) {
                round.is_rate = true;
            }
        }
    }

    /// The provider says that what was rejected is limited per time.
    pub(super) fn told_of_a_rate(&mut self) {
        self.is_rate = true;
    }

    /// Ends the probe, with what is known.
    pub(super) fn end(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
        self.is_closing = true;
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// How many requests were sent.
    pub(super) fn requests(&self) -> u32 {
        self.sent
    }

    /// Seconds that an answer usually takes where the provider is not overloaded.
    pub(super) fn latency(&self) -> f64 {
        let calm = self.levels.iter().rev().filter(|level| level.rejected == 0);
        let of_level = calm.filter_map(|level| level.p50_seconds).next();
        of_level.or_else(|| usual_latency(&self.samples)).unwrap_or(0.1)
    }

    fn next_of_level(&mut self, now: f64) -> Option<Next> {
        let in_flight = self.flying.len() as u32;
        let rejected = self.samples.iter().filter(|s| s.is_rejected()).count() as u32;
        let (patience, most_measured) = (self.patience(), self.most_measured());
        match &mut self.stage {
            Stage::Ramp { connections } => {
                let requests = *connections + (*connections).min(USED_TWICE);
                if self.sent_here >= requests || rejected > *connections / 8 {
                    return None;
                }
                Some(if in_flight < *connections { Next::Send } else { Next::Listen })
            }
            Stage::Measure(round) => {
                if self.sent >= most_measured {
                    return None;
                }
                Some(round.next(now, in_flight, patience, self.bounds.max_connections))
            }
            Stage::Confirm { connections, spacing, requests } => {
                if self.sent_here >= *requests || rejected > 0 {
                    return None;
                }
                let at = self.last_sent + spacing.unwrap_or(0.0);
                Some(match in_flight < *connections {
                    true if at > now => Next::Until(at),
                    true => Next::Send,
                    false => Next::Listen,
                })
            }
            Stage::Over => None,
        }
    }

    /// Requests after which nothing more is measured: a tenth is left for trying the recommendation.
    fn most_measured(&self) -> u32 {
        self.bounds.max_requests - self.bounds.max_requests / 10
    }

    /// Whether the last answers have put in doubt what seemed clear before.
    fn is_premature(&self) -> bool {
        let may_go_on = self.stop.is_none() && self.sent < self.most_measured();
        let is_open = || matches!(self.verdict(false), Verdict::Unclear | Verdict::SomeRate);
        matches!(self.stage, Stage::Measure(_)) && may_go_on && is_open()
    }

    /// How long a request must be under way to count as accepted: rejections are back sooner.
    fn patience(&self) -> f64 {
        let all = self.evidence.iter().chain(&self.samples);
        let bounces = all.filter(|s| s.is_rejected()).map(Sample::latency);
        let usual = quantile(bounces, 0.5).unwrap_or(0.0);
        (4.0 * usual).clamp(0.002, (0.5 * self.latency()).max(0.002))
    }

    fn verdict(&self, is_final: bool) -> Verdict {
        let mut all: Vec<Sample> = self.evidence.iter().chain(&self.samples).copied().collect();
        all.sort_by(|one, other| one.sent.total_cmp(&other.sent));
        let horizon = self.flying.values().copied().fold(f64::INFINITY, f64::min);
        judge(&all, horizon, self.is_rate, is_final)
    }

    fn close_level(&mut self, now: f64) {
        let (purpose, connections, spacing) = match self.stage {
            Stage::Ramp { connections } => (Purpose::Ramp, connections, None),
            Stage::Measure(round) => (Purpose::Measure, round.most, None),
            Stage::Confirm { connections, spacing, .. } => (Purpose::Confirm, connections, spacing),
            Stage::Over => return,
        };
        let level = Level::new(purpose, connections, spacing, &self.samples);
        let next = match self.stage {
            Stage::Ramp { connections } => self.after_ramp(now, connections, &level),
            Stage::Measure(_) => self.after_measure(now),
            Stage::Confirm { .. } => self.after_confirm(now, &level),
            Stage::Over => Stage::Over,
        };
        if level.sent > 0 {
            self.levels.push(level);
        }
        self.samples.clear();
        self.sent_here = 0;
        self.is_closing = false;
        self.stage = if self.stop.is_some() { Stage::Over } else { next };
    }

    fn after_ramp(&mut self, now: f64, connections: u32, level: &Level) -> Stage {
        if level.failed > 2 && level.failed * 2 > level.sent {
            self.stop.get_or_insert(Stop::Failures);
        }
        if level.rejected == 0 {
            if level.accepted >= connections {
                self.limit = Limit::NotReached { connections };
            }
            if let Some(knee) = self.knee(level) {
                self.limit = Limit::Knee { connections: knee };
                return Stage::Over;
            }
            let latency = level.p50_seconds.unwrap_or(0.1).clamp(0.02, 1.0);
            self.rest(now, latency * (1.0 + 0.5 * self.levels.len() as f64), CALM_PAUSE);
            let more = connections.saturating_mul(2);
            let is_over = connections >= self.bounds.max_connections;
            return match is_over {
                true => Stage::Over,
                false => Stage::Ramp { connections: more.min(self.bounds.max_connections) },
            };
        }
        if level.accepted == 0 && self.levels.iter().all(|level| level.accepted == 0) {
            self.stop.get_or_insert(Stop::AllRejected);
        }
        if self.stop.is_some() {
            self.conclude(true);
        }
        self.evidence.append(&mut self.samples.clone());
        let answered: Vec<Sample> =
            self.evidence.iter().copied().filter(Sample::is_answered).collect();
        let most = most_at_once(&answered).max(1.0) as u32;
        Stage::Measure(Round::new(now, most + (most / 8).max(2), self.latency() / 4.0))
    }

    /// Whether answers only take longer with more of them in flight, and from how many on.
    fn knee(&self, level: &Level) -> Option<f64> {
        let (first, before) = (self.levels.first()?, self.levels.last()?);
        let (alone, before, now) = (first.p50_seconds?, before.p50_seconds?, level.p50_seconds?);
        let is_slow = level.connections >= 4 && now > 1.8 * alone && now > 1.6 * before;
        is_slow.then(|| f64::from(level.connections) * alone / now)
    }

    fn after_measure(&mut self, now: f64) -> Stage {
        self.conclude(true);
        self.evidence.append(&mut self.samples.clone());
        self.confirmation(now)
    }

    /// Puts down what the rejections have told.
    fn conclude(&mut self, is_final: bool) {
        match self.verdict(is_final) {
            Verdict::Cap(connections) => self.limit = Limit::Cap { connections },
            Verdict::Rate { per_second, stretch } => {
                self.limit = Limit::Rate { per_second };
                self.stretch = stretch;
            }
            Verdict::SomeRate | Verdict::Unclear => self.limit = Limit::Unknown,
        }
    }

    fn after_confirm(&mut self, now: f64, level: &Level) -> Stage {
        if level.rejected == 0 {
            self.is_confirmed = level.accepted > 0 && self.stop.is_none();
            return Stage::Over;
        }
        match &mut self.limit {
            // Rejected again although fewer were in flight: it never was a cap. A rate cannot be
            // measured where not enough was asked for.
            Limit::Cap { connections } if self.confirmations > 0 || *connections < 2.0 => {
                self.is_rate = true;
                self.evidence.clear();
                let most = *connections as u32;
                return Stage::Measure(Round::new(now, most + 2, self.latency() / 4.0));
            }
            Limit::Cap { connections } => *connections = (*connections * 0.9).max(1.0),
            Limit::Rate { per_second } => *per_second *= 0.9,
            _ => {}
        }
        self.confirmations += 1;
        self.confirmation(now)
    }

    /// The level that tries the recommendation, after a rest.
    fn confirmation(&mut self, now: f64) -> Stage {
        if self.confirmations >= MOST_CONFIRMATIONS {
            return Stage::Over;
        }
        let left = self.bounds.max_requests.saturating_sub(self.sent);
        let latency = self.latency();
        match self.limit {
            Limit::Cap { connections } => {
                let connections = recommended(connections);
                self.rest(now, latency.clamp(0.05, 2.0), LONGEST_PAUSE);
                Stage::Confirm {
                    connections,
                    spacing: None,
                    requests: (2 * connections + 4).min(left),
                }
            }
            Limit::Rate { per_second } => {
                let rate = MARGIN * per_second;
                let growing = 0.5 * 2_f64.powi(self.confirmations as i32);
                let recovered = (1.2 * self.stretch).max(growing).max(latency);
                self.rest(now, recovered, LONGEST_PAUSE.max(recovered));
                let seconds = (1.2 * self.stretch).max(2.0);
                let requests = ((rate * seconds).ceil() as u32).clamp(10, 60).min(left);
                let connections = ((2.0 * rate * latency).ceil() as u32).max(8);
                Stage::Confirm { connections, spacing: Some(1.0 / rate), requests }
            }
            _ => Stage::Over,
        }
    }

    /// Lets the provider recover: until its limits are restored if it says when that is, else as
    /// long as seems right.
    fn rest(&mut self, now: f64, seconds: f64, longest: f64) {
        let told = (self.full_at - now).max(0.0);
        let seconds = seconds.max(told).min(longest);
        self.not_before = self.not_before.max(now + seconds);
    }
}

/// How many in flight are recommended where so many were found to be possible.
pub(super) fn recommended(connections: f64) -> u32 {
    ((MARGIN * connections + 1e-9).floor() as u32).max(1)
}
