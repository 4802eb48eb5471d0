//! The state machine of a probe, without clock, tasks or network.
//!
//! It doubles the requests in flight level by level until a request is rejected. Then it sends requests for
//! which the plausible kinds of limits predict different outcomes, until one kind is left and its value is
//! known. Finally it tries the settings that it will recommend.
//!
//! Without announced waits, these requests poll the provider just above the limit (`pacer`). With announced
//! waits polling would only show that the wait was long enough, so each experiment uses the known burst and then
//! sends requests at even intervals.

use super::finding::{LimitFinding, ProbeStop};
use super::fit::{Fit, RateFit, fit, fit_window};
use super::level::{LevelPurpose, ProbeLevel};
use super::pacer::MeasurePacer;
use super::sample::{
    RequestSample, SampleOutcome, max_rejection_span, median_latency, peak_concurrency, quantile,
};
use std::collections::BTreeMap;

/// Minimum ratio of the latency for which connections are recommended and the median latency.
const MIN_LATENCY_MARGIN: f64 = 1.2;
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

/// Contradictions by which one kind of limit must be worse than another to be refuted.
const MIN_CONTRADICTIONS: u32 = 3;
/// Ratio of the highest and the lowest plausible rate from which a rate is known.
const MAX_UNCERTAINTY: f64 = 1.12;
/// The same after few accepted requests.
const MIN_UNCERTAINTY: f64 = 1.08;
/// The same at the end of the measurement, when there will be no more requests.
const MAX_FINAL_UNCERTAINTY: f64 = 1.35;
/// Maximum share of requests that may contradict a known rate.
const MAX_CONTRADICTION_SHARE: f64 = 0.03;
/// Minimum number of requests accepted after the first rejection for a known rate.
const MIN_ACCEPTED: usize = 12;
/// Requests of an experiment after its burst, sent at even intervals.
const SPACED_REQUESTS: u32 = 20;
/// The same for the experiment that distinguishes a cap from a rate.
const CAP_TEST_REQUESTS: u32 = 6;
/// Interval of that experiment as a share of the shortest latency: no request has ended by then.
const CAP_TEST_INTERVAL: f64 = 0.7;
/// Maximum number of experiments with evenly spaced requests.
const MAX_EXPERIMENTS: u32 = 16;
/// A cap is confirmed with this number of requests, because a rate limit may allow a burst, ...
const MIN_CAP_CONFIRMATION: u32 = 100;
/// ... or for this time in seconds.
const MAX_CAP_CONFIRMATION_SECONDS: f64 = 10.0;

/// Bounds of a probe. Times are seconds since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeBounds {
    pub(super) max_requests: u32,
    pub(super) max_connections: u32,
    pub(super) max_seconds: f64,
}

/// Next action of a probe.
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

/// Stage of a probe. `spacing` is the time between two requests in seconds.
#[derive(Debug, Clone, Copy)]
enum ProbeStage {
    Ramp {
        connections: u32,
    },
    Measure(MeasurePacer),
    /// Sends `burst` requests at once, then others at even intervals, until one is rejected.
    Spaced {
        burst: u32,
        spacing: f64,
        requests: u32,
    },
    Confirm {
        connections: u32,
        spacing: Option<f64>,
        requests: u32,
    },
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
    /// Samples of finished levels.
    history: Vec<RequestSample>,
    /// Requests in flight: send time by number.
    in_flight: BTreeMap<u64, f64>,
    sent: u32,
    sent_in_level: u32,
    last_sent: f64,
    not_before: f64,
    /// Time when all limits are restored according to the headers.
    restored_at: f64,
    /// Start of the current level.
    level_start: f64,
    confirmations: u32,
    /// Whether a cap was refuted.
    is_rate: bool,
    /// Whether rejections announce waits.
    announces_waits: bool,
    /// Whether the experiment that distinguishes a cap from a rate was made.
    is_cap_tested: bool,
    experiments: u32,
    /// Experiments in a row that did not narrow the plausible rates.
    stale_experiments: u32,
    last_uncertainty: f64,
    /// Whether the measurement ended because kind and value of the limit are known.
    is_known: bool,
    /// Number of samples from which the measurement is assessed again.
    next_assessment: usize,
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
            history: Vec::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            sent_in_level: 0,
            last_sent: f64::NEG_INFINITY,
            not_before: 0.0,
            restored_at: 0.0,
            level_start: 0.0,
            confirmations: 0,
            is_rate: false,
            announces_waits: false,
            is_cap_tested: false,
            experiments: 0,
            stale_experiments: 0,
            last_uncertainty: f64::INFINITY,
            is_known: false,
            next_assessment: 0,
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
                if self.is_known
                    && self.stop.is_none()
                    && matches!(self.stage, ProbeStage::Measure(_))
                {
                    // The last outcomes may contradict the conclusion that closed the measurement.
                    self.next_assessment = 0;
                    self.assess_measurement();
                    if !self.is_known && self.sent < self.measure_budget() {
                        continue;
                    }
                    self.is_closing = true;
                }
                self.close_level(now);
                continue;
            }
            if self.is_confirmation_complete(now) {
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
        if self.sent_in_level == 0 {
            self.level_start = now;
        }
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
            self.announces_waits |= wait.is_some_and(|wait| wait > 0.0);
            if let ProbeStage::Measure(pacer) = &mut self.stage {
                pacer.record_rejection(now);
            }
        }
        if let ProbeStage::Measure(_) = self.stage
            && !self.is_closing
        {
            self.assess_measurement();
        }
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

    /// Returns the latency that nine of ten requests do not exceed, and at least a fifth more than the median.
    pub(super) fn slow_latency(&self) -> f64 {
        let unloaded = self.history.iter().chain(&self.samples).filter(|s| s.is_accepted());
        let slow = quantile(unloaded.map(RequestSample::latency), 0.9).unwrap_or(0.0);
        slow.max(MIN_LATENCY_MARGIN * self.latency())
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
            ProbeStage::Spaced { burst, spacing, requests } => {
                if self.sent_in_level >= *requests || rejected > 0 || self.sent >= measure_budget {
                    return None;
                }
                let at = self.last_sent + *spacing;
                Some(match in_flight < self.bounds.max_connections {
                    true if self.sent_in_level >= *burst && at > now => NextAction::WaitUntil(at),
                    true => NextAction::Send,
                    false => NextAction::WaitForOutcome,
                })
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

    /// Whether the current level is a confirmation that has sent all its requests.
    fn is_confirmation_complete(&self, now: f64) -> bool {
        let ProbeStage::Confirm { connections, spacing, requests } = self.stage else {
            return false;
        };
        let is_long = now - self.level_start >= MAX_CAP_CONFIRMATION_SECONDS;
        let is_sufficient = spacing.is_none() && self.sent_in_level >= 2 * connections + 4;
        self.sent_in_level >= requests.max(1) || is_sufficient && is_long
    }

    /// Returns the time in flight after which a request counts as accepted; rejections arrive sooner.
    fn acceptance_delay(&self) -> f64 {
        let all = self.history.iter().chain(&self.samples);
        let rejections = all.filter(|s| s.is_rejected()).map(RequestSample::latency);
        let median = quantile(rejections, 0.5).unwrap_or(0.0);
        (4.0 * median).clamp(0.002, (0.5 * self.latency()).max(0.002))
    }

    /// Fits all kinds of limits to the samples so far.
    fn fit(&self) -> Option<Fit> {
        let all: Vec<RequestSample> = self.history.iter().chain(&self.samples).copied().collect();
        fit(&all, self.in_flight.values().copied())
    }

    /// Ends the measurement when the kind and the value of the limit are known.
    fn assess_measurement(&mut self) {
        let count = self.history.len() + self.samples.len();
        if count < self.next_assessment {
            return;
        }
        self.next_assessment = count + (count / 10).max(4);
        let Some(found) = self.fit() else { return };
        let is_rate = self.is_rate || self.refutes_cap(&found);
        let samples = || self.samples.iter();
        let accepted = samples().filter(|s| s.is_accepted()).count() + self.in_flight.len();
        let rejected = samples().filter(|s| s.is_rejected()).count();
        let is_known = if is_rate {
            let uncertainty = found.rate.uncertainty();
            let is_narrow = uncertainty <= MIN_UNCERTAINTY && accepted >= MIN_ACCEPTED
                || uncertainty <= MAX_UNCERTAINTY && accepted >= 3 * MIN_ACCEPTED;
            is_narrow && self.is_explained_by(&found.rate) && self.has_refills()
        } else {
            let is_clear =
                found.rate.contradictions >= found.cap.contradictions + MIN_CONTRADICTIONS;
            let connections = found.cap.connections as usize;
            is_clear && rejected >= 3 && accepted >= connections + 3
                || found.cap.contradictions <= found.rate.contradictions
                    && rejected >= MIN_ACCEPTED
                    && accepted >= 2 * connections + 8
        };
        self.is_known = is_known;
        self.is_closing = is_known;
        if let ProbeStage::Measure(pacer) = &mut self.stage {
            pacer.is_rate = is_rate;
        }
    }

    /// Whether few samples contradict a rate.
    fn is_explained_by(&self, rate: &RateFit) -> bool {
        let count = self.history.len() + self.samples.len();
        rate.contradictions <= 2 + (MAX_CONTRADICTION_SHARE * count as f64) as u32
    }

    /// Whether requests of this level were accepted again after rejections at least twice. The time between
    /// two such events is the length of a window.
    fn has_refills(&self) -> bool {
        let pending = self.in_flight.values().map(|sent| (*sent, true));
        let mut all: Vec<(f64, bool)> =
            self.samples.iter().map(|s| (s.sent, !s.is_rejected())).chain(pending).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let is_refill = |pair: &&[(f64, bool)]| matches!(pair, [(_, false), (_, true)]);
        all.windows(2).filter(is_refill).count() >= 2
    }

    /// Whether a rate explains the samples much better than a cap.
    fn refutes_cap(&self, found: &Fit) -> bool {
        found.cap.contradictions >= found.rate.contradictions + MIN_CONTRADICTIONS
    }

    fn close_level(&mut self, now: f64) {
        let (purpose, connections, spacing) = match self.stage {
            ProbeStage::Ramp { connections } => (LevelPurpose::Ramp, connections, None),
            ProbeStage::Measure(pacer) => (LevelPurpose::Measure, pacer.max_in_flight, None),
            ProbeStage::Spaced { burst, spacing, .. } => {
                (LevelPurpose::Measure, burst, Some(spacing))
            }
            ProbeStage::Confirm { connections, spacing, .. } => {
                (LevelPurpose::Confirm, connections, spacing)
            }
            ProbeStage::Over => return,
        };
        let level = ProbeLevel::new(purpose, connections, spacing, &self.samples);
        self.history.append(&mut self.samples);
        let next = match self.stage {
            ProbeStage::Ramp { connections } => self.after_ramp(now, connections, &level),
            ProbeStage::Measure(_) => {
                self.conclude();
                self.confirm(now)
            }
            ProbeStage::Spaced { .. } => self.next_experiment(now),
            ProbeStage::Confirm { .. } => self.after_confirm(now, &level),
            ProbeStage::Over => ProbeStage::Over,
        };
        if level.sent > 0 {
            self.levels.push(level);
        }
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
            self.conclude();
        }
        self.measure(now)
    }

    /// Returns the level that determines the kind and the value of the limit.
    fn measure(&mut self, now: f64) -> ProbeStage {
        if self.announces_waits {
            return self.next_experiment(now);
        }
        self.next_assessment = 0;
        let peak = peak_concurrency(&self.history).max(1.0) as u32;
        ProbeStage::Measure(MeasurePacer::new(now, peak + (peak / 8).max(2), self.latency() / 4.0))
    }

    /// Returns the experiment with evenly spaced requests that distinguishes the plausible limits, or the
    /// confirmation if none is needed.
    fn next_experiment(&mut self, now: f64) -> ProbeStage {
        let is_possible = self.experiments < MAX_EXPERIMENTS && self.stop.is_none();
        let found = self.fit().filter(|_| is_possible && self.sent < self.measure_budget());
        let Some(Fit { cap, rate }) = found else {
            self.conclude();
            return self.confirm(now);
        };
        self.experiments += 1;
        let max_connections = self.bounds.max_connections;
        if !self.is_rate && cap.contradictions <= rate.contradictions {
            if !self.is_cap_tested {
                // A cap rejects the next request as long as none has ended; a rate limit has restored quota.
                self.is_cap_tested = true;
                let burst = (cap.connections as u32).clamp(1, max_connections);
                let spacing = CAP_TEST_INTERVAL * self.min_latency();
                let requests = burst + CAP_TEST_REQUESTS;
                return ProbeStage::Spaced { burst, spacing, requests };
            }
        } else if rate.uncertainty() > MAX_UNCERTAINTY && !self.is_exhausted(&rate) {
            let is_stale = rate.uncertainty() > 0.98 * self.last_uncertainty;
            self.stale_experiments = if is_stale { self.stale_experiments + 1 } else { 0 };
            self.last_uncertainty = rate.uncertainty();
            let middle = rate.per_second().min(2.0 * rate.low);
            let per_second = middle.max(rate.per_second().min(1.0 / self.latency()));
            // One request less than the burst: how many spaced requests are accepted then depends on the
            // rate alone. If that did not help, the burst was wrong, and exceeding it shows its size.
            let burst = match self.stale_experiments {
                0 => (rate.min_burst + 0.2).floor() - 1.0,
                _ => rate.max_burst.ceil() + 1.0,
            };
            let burst = (burst as u32).clamp(1, max_connections);
            let requests = burst + SPACED_REQUESTS;
            return ProbeStage::Spaced { burst, spacing: 1.0 / per_second, requests };
        }
        self.conclude();
        self.confirm(now)
    }

    /// Whether more experiments would not narrow the plausible rates.
    fn is_exhausted(&self, rate: &RateFit) -> bool {
        let is_burst_known = rate.max_burst - rate.min_burst < 1.0;
        let is_narrow = rate.uncertainty() <= MAX_FINAL_UNCERTAINTY;
        let max_stale = if is_burst_known && is_narrow { 1 } else { 3 };
        self.stale_experiments >= max_stale
    }

    fn min_latency(&self) -> f64 {
        let latencies = self.history.iter().filter(|s| s.is_accepted()).map(RequestSample::latency);
        latencies.fold(f64::INFINITY, f64::min).clamp(0.001, 60.0)
    }

    /// Returns the concurrency from which more requests in flight only increase the latency.
    fn find_knee(&self, level: &ProbeLevel) -> Option<f64> {
        let (first, before) = (self.levels.first()?, self.levels.last()?);
        let (alone, before, now) = (first.p50_seconds?, before.p50_seconds?, level.p50_seconds?);
        let is_slow = level.connections >= 4 && now > 1.8 * alone && now > 1.6 * before;
        is_slow.then(|| f64::from(level.connections) * alone / now)
    }

    /// Sets the limit from the samples.
    fn conclude(&mut self) {
        let Some(Fit { cap, mut rate }) = self.fit() else { return };
        let is_rate = self.is_rate || rate.contradictions < cap.contradictions;
        let is_unknown = |state: &ProbeState, rate: &RateFit| {
            rate.uncertainty() > MAX_FINAL_UNCERTAINTY || !state.is_explained_by(rate)
        };
        if is_rate && is_unknown(self, &rate) {
            let window = fit_window(&self.history);
            rate = window.filter(|w| w.contradictions <= rate.contradictions).unwrap_or(rate);
        }
        let is_distinguished = self.is_cap_tested
            || rate.contradictions >= cap.contradictions + MIN_CONTRADICTIONS
            || self.is_known;
        self.limit = match (is_rate, rate.cap) {
            (true, _) if is_unknown(self, &rate) => LimitFinding::Unknown,
            (true, None) => LimitFinding::Rate { per_second: rate.per_second() },
            (true, Some(connections)) => {
                LimitFinding::RateAndCap { per_second: rate.per_second(), connections }
            }
            (false, _) if is_distinguished => LimitFinding::Cap { connections: cap.connections },
            (false, _) => LimitFinding::Unknown,
        };
    }

    fn after_confirm(&mut self, now: f64, level: &ProbeLevel) -> ProbeStage {
        if level.rejected == 0 {
            self.is_confirmed = level.accepted > 0 && self.stop.is_none();
            return ProbeStage::Over;
        }
        match &mut self.limit {
            // Rejections below the cap refute it: the limit is a rate.
            LimitFinding::Cap { connections } if self.confirmations > 0 || *connections < 2.0 => {
                self.is_rate = true;
                return self.measure(now);
            }
            LimitFinding::Cap { connections } => *connections = (*connections * 0.9).max(1.0),
            // Without an accepted request, the pause before was too short.
            LimitFinding::Rate { per_second } | LimitFinding::RateAndCap { per_second, .. }
                if level.accepted > 0 =>
            {
                *per_second *= 0.9;
            }
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
        let (per_second, cap) = match self.limit {
            LimitFinding::Cap { connections } => {
                let connections = recommended_connections(connections);
                self.pause(now, latency.clamp(0.05, 2.0), MAX_PAUSE);
                let requests = (2 * connections + 4).max(MIN_CAP_CONFIRMATION).min(left);
                return ProbeStage::Confirm { connections, spacing: None, requests };
            }
            LimitFinding::Rate { per_second } => (per_second, None),
            LimitFinding::RateAndCap { per_second, connections } => (per_second, Some(connections)),
            _ => return ProbeStage::Over,
        };
        let rate = SAFETY_FACTOR * per_second;
        let span = 1.2 * max_rejection_span(&self.history);
        let pause = span.max(0.5).max(latency) * 2_f64.powi(self.confirmations as i32);
        self.pause(now, pause, MAX_PAUSE.max(pause));
        let requests = ((rate * span.max(2.0)).ceil() as u32).clamp(10, 60).min(left);
        let connections = ((2.0 * rate * latency).ceil() as u32).max(8);
        let connections =
            cap.map_or(connections, |cap| connections.min(recommended_connections(cap)));
        ProbeStage::Confirm { connections, spacing: Some(1.0 / rate), requests }
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
