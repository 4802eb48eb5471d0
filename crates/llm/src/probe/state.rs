//! The state machine of a probe, without clock, tasks or network.
//!
//! It doubles the requests in flight level by level until a request is rejected. Then it stays just above the
//! limit until the rejections show its kind, and finally tries the settings that it will recommend.

use super::level::{LevelPurpose, ProbeLevel};
use super::limit_kind::{LimitKind, classify, peak_concurrency};
use super::pacer::MeasurePacer;
use super::sample::{RequestSample, SampleOutcome, median_latency, quantile};
use std::collections::BTreeMap;

/// Share of the measured limit that is recommended.
pub(super) const SAFETY_FACTOR: f64 = 0.95;
/// Maximum pause between levels that the provider did not ask for, in seconds.
const MAX_PAUSE: f64 = 20.0;
/// The same for the ramp, before the first rejection.
const MAX_RAMP_PAUSE: f64 = 3.0;
/// Maximum number of attempts to confirm a recommendation; each rejected one lowers it.
const MAX_CONFIRMATIONS: u32 = 4;
/// Maximum number of requests that a ramp level sends beyond its connections, so that it lasts longer than
/// one burst.
const MAX_EXTRA_REQUESTS: u32 = 8;

/// ProbeBounds of a probe. Times are seconds since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeBounds {
    pub(super) max_requests: u32,
    pub(super) max_connections: u32,
    pub(super) max_seconds: f64,
}

/// NextAction action of the probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NextAction {
    /// Send a request.
    Send,
    /// Wait until this time, or until a request finishes.
    WaitUntil(f64),
    /// Wait until a request finishes.
    WaitForOutcome,
    /// The probe is finished.
    Done,
}

/// Limit of a model, as found by a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitFinding {
    /// No request was rejected.
    NotReached {
        /// Highest number of requests in flight that was tried.
        connections: u32,
    },
    /// The number of requests in flight is limited.
    Cap {
        /// Maximum number of requests in flight.
        connections: f64,
    },
    /// The number of requests per time is limited.
    Rate {
        /// Maximum number of requests per second.
        per_second: f64,
    },
    /// No request was rejected, but more requests in flight only increase the latency.
    Knee {
        /// Number of requests in flight from which the latency increases.
        connections: f64,
    },
    /// The limit was not determined.
    Unknown,
}

/// Reason why a probe ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeStop {
    /// The maximum number of requests was reached.
    Requests,
    /// The maximum duration was reached.
    Time,
    /// The maximum cost was reached.
    Cost,
    /// Every request was rejected.
    AllRejected,
    /// Most requests failed for reasons other than a limit.
    Failures,
    /// A quota is exhausted.
    Quota,
    /// [`super::ProbeConfig::stop`] was cancelled.
    Interrupted,
}

/// Stage of a probe. `spacing` is the time between two requests in seconds.
#[derive(Debug, Clone, Copy)]
enum ProbeStage {
    Ramp { connections: u32 },
    Measure(MeasurePacer),
    Confirm { connections: u32, spacing: Option<f64>, requests: u32 },
    Over,
}

/// State of a probe.
#[derive(Debug)]
pub(super) struct ProbeState {
    bounds: ProbeBounds,
    stage: ProbeStage,
    /// Whether the current level sends no more requests.
    is_closing: bool,
    /// Samples of the current level.
    samples: Vec<RequestSample>,
    /// Samples of finished levels since the first rejection.
    evidence: Vec<RequestSample>,
    /// Requests in flight: send time by number.
    in_flight: BTreeMap<u64, f64>,
    sent: u32,
    sent_in_level: u32,
    last_sent: f64,
    not_before: f64,
    /// Time when all limits are restored according to the headers.
    restored_at: f64,
    /// Longest time for which all requests were rejected.
    max_rejection_span: f64,
    confirmations: u32,
    /// Whether the limit is known to be a rate: the provider reported it, or a cap was refuted.
    is_rate: bool,
    pub(super) levels: Vec<ProbeLevel>,
    pub(super) limit: LimitFinding,
    pub(super) is_confirmed: bool,
    pub(super) stop: Option<ProbeStop>,
}

impl ProbeState {
    pub(super) fn new(bounds: ProbeBounds) -> ProbeState {
        ProbeState {
            bounds,
            stage: ProbeStage::Ramp { connections: 1 },
            is_closing: false,
            samples: Vec::new(),
            evidence: Vec::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            sent_in_level: 0,
            last_sent: f64::NEG_INFINITY,
            not_before: 0.0,
            restored_at: 0.0,
            max_rejection_span: 0.0,
            confirmations: 0,
            is_rate: false,
            levels: Vec::new(),
            limit: LimitFinding::Unknown,
            is_confirmed: false,
            stop: None,
        }
    }

    /// Returns the next action.
    pub(super) fn next(&mut self, now: f64) -> NextAction {
        loop {
            if let ProbeStage::Over = self.stage {
                return if self.in_flight.is_empty() {
                    NextAction::Done
                } else {
                    NextAction::WaitForOutcome
                };
            }
            if self.is_closing {
                if !self.in_flight.is_empty() {
                    return NextAction::WaitForOutcome;
                }
                if self.is_premature() {
                    self.is_closing = false;
                } else {
                    self.close_level(now);
                }
                continue;
            }
            if let ProbeStage::Confirm { requests, .. } = self.stage
                && self.sent_in_level >= requests.max(1)
            {
                // Checked before the bounds: the confirmation was planned within them, so its end is not
                // early.
                self.is_closing = true;
            } else if self.sent >= self.bounds.max_requests {
                self.end(ProbeStop::Requests);
            } else if self.not_before.max(now) >= self.bounds.max_seconds {
                self.end(ProbeStop::Time);
            } else if self.not_before > now {
                return NextAction::WaitUntil(self.not_before);
            } else {
                match self.next_of_level(now) {
                    Some(next) => return next,
                    None => self.is_closing = true,
                }
            }
        }
    }

    /// Records that a request was sent.
    pub(super) fn record_sent(&mut self, now: f64, number: u64) {
        self.in_flight.insert(number, now);
        self.sent += 1;
        self.sent_in_level += 1;
        self.last_sent = now;
        if let ProbeStage::Measure(pacer) = &mut self.stage {
            pacer.record_sent(now);
        }
    }

    /// Records the outcome of a request. `wait` is the pause that the provider asks for, and `reset` the time
    /// until all its limits are restored.
    pub(super) fn record_outcome(
        &mut self,
        now: f64,
        number: u64,
        outcome: SampleOutcome,
        wait: Option<f64>,
        reset: Option<f64>,
    ) {
        let Some(sent) = self.in_flight.remove(&number) else { return };
        self.samples.push(RequestSample { sent, ended: now, outcome });
        if let Some(reset) = reset {
            self.restored_at = now + reset;
        }
        if outcome == SampleOutcome::Rejected {
            // No request is sent during the wait that the provider asks for.
            self.not_before = self.not_before.max(now + wait.unwrap_or(0.0));
            if let ProbeStage::Measure(pacer) = &mut self.stage {
                pacer.record_rejection(now);
            }
        }
        if let ProbeStage::Measure(_) = self.stage
            && !self.is_closing
        {
            let kind = self.limit_kind(false);
            self.is_closing = matches!(kind, LimitKind::Cap(_) | LimitKind::Rate { .. });
            if let (LimitKind::UnmeasuredRate, ProbeStage::Measure(pacer)) = (kind, &mut self.stage)
            {
                pacer.is_rate = true;
            }
        }
    }

    /// Records that the headers of a rejection report an exhausted rate limit.
    pub(super) fn note_rate_limit(&mut self) {
        self.is_rate = true;
    }

    /// Ends the probe early; the report contains what is known so far.
    pub(super) fn end(&mut self, stop: ProbeStop) {
        self.stop.get_or_insert(stop);
        self.is_closing = true;
    }

    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the number of requests sent.
    pub(super) fn requests(&self) -> u32 {
        self.sent
    }

    /// Returns the median latency of the last level without rejections, in seconds.
    pub(super) fn latency(&self) -> f64 {
        let unloaded = self.levels.iter().rev().filter(|level| level.rejected == 0);
        let of_level = unloaded.filter_map(|level| level.p50_seconds).next();
        of_level.or_else(|| median_latency(&self.samples)).unwrap_or(0.1)
    }

    fn next_of_level(&mut self, now: f64) -> Option<NextAction> {
        let in_flight = self.in_flight.len() as u32;
        let rejected = self.samples.iter().filter(|s| s.is_rejected()).count() as u32;
        let (acceptance_delay, measure_budget) = (self.acceptance_delay(), self.measure_budget());
        match &mut self.stage {
            ProbeStage::Ramp { connections } => {
                let requests = *connections + (*connections).min(MAX_EXTRA_REQUESTS);
                if self.sent_in_level >= requests || rejected > *connections / 8 {
                    return None;
                }
                Some(if in_flight < *connections {
                    NextAction::Send
                } else {
                    NextAction::WaitForOutcome
                })
            }
            ProbeStage::Measure(pacer) => {
                if self.sent >= measure_budget {
                    return None;
                }
                Some(pacer.next(now, in_flight, acceptance_delay, self.bounds.max_connections))
            }
            ProbeStage::Confirm { connections, spacing, requests } => {
                if self.sent_in_level >= *requests || rejected > 0 {
                    return None;
                }
                let at = self.last_sent + spacing.unwrap_or(0.0);
                Some(match in_flight < *connections {
                    true if at > now => NextAction::WaitUntil(at),
                    true => NextAction::Send,
                    false => NextAction::WaitForOutcome,
                })
            }
            ProbeStage::Over => None,
        }
    }

    /// Returns the number of requests after which measuring ends; a tenth is left for the confirmation.
    fn measure_budget(&self) -> u32 {
        self.bounds.max_requests - self.bounds.max_requests / 10
    }

    /// Whether the last outcomes contradict the conclusion that closed the measurement.
    fn is_premature(&self) -> bool {
        let can_continue = self.stop.is_none() && self.sent < self.measure_budget();
        let is_open =
            || matches!(self.limit_kind(false), LimitKind::Unclear | LimitKind::UnmeasuredRate);
        matches!(self.stage, ProbeStage::Measure(_)) && can_continue && is_open()
    }

    /// Returns the time in flight after which a request counts as accepted; rejections arrive sooner.
    fn acceptance_delay(&self) -> f64 {
        let all = self.evidence.iter().chain(&self.samples);
        let rejections = all.filter(|s| s.is_rejected()).map(RequestSample::latency);
        let median = quantile(rejections, 0.5).unwrap_or(0.0);
        (4.0 * median).clamp(0.002, (0.5 * self.latency()).max(0.002))
    }

    /// Classifies all samples since the first rejection.
    fn limit_kind(&self, is_final: bool) -> LimitKind {
        let mut all: Vec<RequestSample> =
            self.evidence.iter().chain(&self.samples).copied().collect();
        all.sort_by(|one, other| one.sent.total_cmp(&other.sent));
        let horizon = self.in_flight.values().copied().fold(f64::INFINITY, f64::min);
        classify(&all, horizon, self.is_rate, is_final)
    }

    fn close_level(&mut self, now: f64) {
        let (purpose, connections, spacing) = match self.stage {
            ProbeStage::Ramp { connections } => (LevelPurpose::Ramp, connections, None),
            ProbeStage::Measure(pacer) => (LevelPurpose::Measure, pacer.max_in_flight, None),
            ProbeStage::Confirm { connections, spacing, .. } => {
                (LevelPurpose::Confirm, connections, spacing)
            }
            ProbeStage::Over => return,
        };
        let level = ProbeLevel::new(purpose, connections, spacing, &self.samples);
        let next = match self.stage {
            ProbeStage::Ramp { connections } => self.after_ramp(now, connections, &level),
            ProbeStage::Measure(_) => self.after_measure(now),
            ProbeStage::Confirm { .. } => self.after_confirm(now, &level),
            ProbeStage::Over => ProbeStage::Over,
        };
        if level.sent > 0 {
            self.levels.push(level);
        }
        self.samples.clear();
        self.sent_in_level = 0;
        self.is_closing = false;
        self.stage = if self.stop.is_some() { ProbeStage::Over } else { next };
    }

    fn after_ramp(&mut self, now: f64, connections: u32, level: &ProbeLevel) -> ProbeStage {
        if level.failed > 2 && level.failed * 2 > level.sent {
            self.stop.get_or_insert(ProbeStop::Failures);
        }
        if level.rejected == 0 {
            if level.accepted >= connections {
                self.limit = LimitFinding::NotReached { connections };
            }
            if let Some(knee) = self.find_knee(level) {
                self.limit = LimitFinding::Knee { connections: knee };
                return ProbeStage::Over;
            }
            let latency = level.p50_seconds.unwrap_or(0.1).clamp(0.02, 1.0);
            self.pause(now, latency * (1.0 + 0.5 * self.levels.len() as f64), MAX_RAMP_PAUSE);
            let more = connections.saturating_mul(2);
            let is_over = connections >= self.bounds.max_connections;
            return match is_over {
                true => ProbeStage::Over,
                false => ProbeStage::Ramp { connections: more.min(self.bounds.max_connections) },
            };
        }
        if level.accepted == 0 && self.levels.iter().all(|level| level.accepted == 0) {
            self.stop.get_or_insert(ProbeStop::AllRejected);
        }
        if self.stop.is_some() {
            self.conclude(true);
        }
        self.evidence.extend_from_slice(&self.samples);
        let accepted: Vec<RequestSample> =
            self.evidence.iter().copied().filter(RequestSample::is_accepted).collect();
        let peak = peak_concurrency(&accepted).max(1.0) as u32;
        ProbeStage::Measure(MeasurePacer::new(now, peak + (peak / 8).max(2), self.latency() / 4.0))
    }

    /// Returns the concurrency from which more requests in flight only increase the latency.
    fn find_knee(&self, level: &ProbeLevel) -> Option<f64> {
        let (first, before) = (self.levels.first()?, self.levels.last()?);
        let (alone, before, now) = (first.p50_seconds?, before.p50_seconds?, level.p50_seconds?);
        let is_slow = level.connections >= 4 && now > 1.8 * alone && now > 1.6 * before;
        is_slow.then(|| f64::from(level.connections) * alone / now)
    }

    fn after_measure(&mut self, now: f64) -> ProbeStage {
        self.conclude(true);
        self.evidence.extend_from_slice(&self.samples);
        self.confirm(now)
    }

    /// Sets the limit from the samples.
    fn conclude(&mut self, is_final: bool) {
        match self.limit_kind(is_final) {
            LimitKind::Cap(connections) => self.limit = LimitFinding::Cap { connections },
            LimitKind::Rate { per_second, max_rejection_span } => {
                self.limit = LimitFinding::Rate { per_second };
                self.max_rejection_span = max_rejection_span;
            }
            LimitKind::UnmeasuredRate | LimitKind::Unclear => self.limit = LimitFinding::Unknown,
        }
    }

    fn after_confirm(&mut self, now: f64, level: &ProbeLevel) -> ProbeStage {
        if level.rejected == 0 {
            self.is_confirmed = level.accepted > 0 && self.stop.is_none();
            return ProbeStage::Over;
        }
        match &mut self.limit {
            // Rejections below the cap refute it: the limit is a rate. The samples so far are discarded,
            // because a rate can be measured only under overload.
            LimitFinding::Cap { connections } if self.confirmations > 0 || *connections < 2.0 => {
                self.is_rate = true;
                self.evidence.clear();
                let cap = *connections as u32;
                return ProbeStage::Measure(MeasurePacer::new(now, cap + 2, self.latency() / 4.0));
            }
            LimitFinding::Cap { connections } => *connections = (*connections * 0.9).max(1.0),
            LimitFinding::Rate { per_second } => *per_second *= 0.9,
            _ => {}
        }
        self.confirmations += 1;
        self.confirm(now)
    }

    /// Pauses, and returns the level that tries the recommendation.
    fn confirm(&mut self, now: f64) -> ProbeStage {
        if self.confirmations >= MAX_CONFIRMATIONS {
            return ProbeStage::Over;
        }
        let left = self.bounds.max_requests.saturating_sub(self.sent);
        let latency = self.latency();
        match self.limit {
            LimitFinding::Cap { connections } => {
                let connections = recommended_connections(connections);
                self.pause(now, latency.clamp(0.05, 2.0), MAX_PAUSE);
                ProbeStage::Confirm {
                    connections,
                    spacing: None,
                    requests: (2 * connections + 4).min(left),
                }
            }
            LimitFinding::Rate { per_second } => {
                let rate = SAFETY_FACTOR * per_second;
                let backoff = 0.5 * 2_f64.powi(self.confirmations as i32);
                let pause = (1.2 * self.max_rejection_span).max(backoff).max(latency);
                self.pause(now, pause, MAX_PAUSE.max(pause));
                let seconds = (1.2 * self.max_rejection_span).max(2.0);
                let requests = ((rate * seconds).ceil() as u32).clamp(10, 60).min(left);
                let connections = ((2.0 * rate * latency).ceil() as u32).max(8);
                ProbeStage::Confirm { connections, spacing: Some(1.0 / rate), requests }
            }
            _ => ProbeStage::Over,
        }
    }

    /// Sends nothing for `seconds`, or until the limits are restored according to the headers if that is
    /// later, but for at most `max_seconds`.
    fn pause(&mut self, now: f64, seconds: f64, max_seconds: f64) {
        let until_restored = (self.restored_at - now).max(0.0);
        let seconds = seconds.max(until_restored).min(max_seconds);
        self.not_before = self.not_before.max(now + seconds);
    }
}

/// Returns the recommended number of requests in flight for a measured cap.
pub(super) fn recommended_connections(connections: f64) -> u32 {
    ((SAFETY_FACTOR * connections + 1e-9).floor() as u32).max(1)
}
