//! The state machine of a probe, without clock, tasks or network.
//!
//! It doubles the requests in flight level by level until a request is rejected. Then it sends requests for
//! which the plausible kinds of limits predict different outcomes, until one kind is left and its value is
//! known. Finally it tries the settings that it will recommend.
//!
//! Without announced waits, these requests poll the provider just above the limit (`pacer`). With announced
//! waits polling would only show that the wait was long enough, so there are experiments instead (`experiment`).

use super::bounds::ProbeBounds;
use super::conclusion::{conclude, is_cap_known, is_rate_known, refutes_cap};
use super::confirmation::{Confirmation, pause_before};
use super::evidence::Evidence;
use super::experiment::ExperimentPlanner;
use super::finding::{LimitFinding, ProbeStop};
use super::fit::FitScope;
use super::level::{ProbeLevel, find_knee, unloaded_latency};
use super::pacer::MeasurePacer;
use super::sample::{
    RequestSample, SampleOutcome, max_accepted_run, max_rejection_span, median_latency,
    peak_concurrency,
};
use super::stage::{LevelProgress, NextAction, ProbeStage};

/// Minimum ratio of the latency for which connections are recommended and the median latency.
const MIN_LATENCY_MARGIN: f64 = 1.2;
/// Maximum pause between levels that the provider did not ask for, in seconds.
const MAX_PAUSE: f64 = 20.0;
/// The same for the ramp, before the first rejection.
const MAX_RAMP_PAUSE: f64 = 3.0;
/// Maximum number of attempts to confirm a recommendation; each rejected one lowers it.
const MAX_CONFIRMATIONS: u32 = 4;

/// State of a probe.
#[derive(Debug)]
pub(super) struct ProbeState {
    bounds: ProbeBounds,
    stage: ProbeStage,
    /// Whether the current level sends no more requests.
    is_closing: bool,
    evidence: Evidence,
    planner: ExperimentPlanner,
    sent: u32,
    sent_in_level: u32,
    last_sent: f64,
    not_before: f64,
    /// Time when all limits are restored according to the headers.
    restored_at: f64,
    /// Start of the current level.
    level_start: f64,
    confirmations: u32,
    /// Highest rate per second that was not rejected by a confirmation.
    max_rate: f64,
    /// Whether a cap was refuted.
    is_rate: bool,
    /// Longest wait that a rejection announced, in seconds; 0 without announcements.
    max_wait: f64,
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
            evidence: Evidence::default(),
            planner: ExperimentPlanner::new(bounds.max_connections),
            sent: 0,
            sent_in_level: 0,
            last_sent: f64::NEG_INFINITY,
            not_before: 0.0,
            restored_at: 0.0,
            level_start: 0.0,
            confirmations: 0,
            max_rate: f64::INFINITY,
            is_rate: false,
            max_wait: 0.0,
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
                return if self.evidence.in_flight.is_empty() {
                    NextAction::Done
                } else {
                    NextAction::WaitForOutcome
                };
            }
            if self.is_closing {
                if !self.evidence.in_flight.is_empty() {
                    return NextAction::WaitForOutcome;
                }
                if self.is_known
                    && self.stop.is_none()
                    && matches!(self.stage, ProbeStage::Measure(_))
                {
                    // The last outcomes may contradict the conclusion that closed the measurement.
                    self.next_assessment = 0;
                    self.assess_measurement();
                    if !self.is_known && self.sent < self.bounds.measure_budget() {
                        continue;
                    }
                    self.is_closing = true;
                }
                self.close_level(now);
                continue;
            }
            if self.stage.is_confirmed(self.sent_in_level, now - self.level_start) {
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
                let in_flight = self.evidence.in_flight.len();
                let is_full = in_flight >= self.bounds.max_connections as usize;
                match self.next_of_level(now) {
                    Some(NextAction::Send) if is_full => return NextAction::WaitForOutcome,
                    Some(next) => return next,
                    None => self.is_closing = true,
                }
            }
        }
    }

    /// Records that a request was sent.
    pub(super) fn record_sent(&mut self, now: f64, number: u64) {
        self.evidence.in_flight.insert(number, now);
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
        let Some(sent) = self.evidence.in_flight.remove(&number) else { return };
        self.evidence.level.push(RequestSample { sent, ended: now, outcome });
        if let Some(reset) = reset {
            self.restored_at = now + reset;
        }
        if outcome == SampleOutcome::Rejected {
            // No request is sent during the wait that the provider asks for.
            self.not_before = self.not_before.max(now + wait.unwrap_or(0.0));
            self.max_wait = self.max_wait.max(wait.unwrap_or(0.0));
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
        self.evidence.in_flight.len()
    }

    /// Returns the number of requests sent.
    pub(super) fn requests(&self) -> u32 {
        self.sent
    }

    /// Returns the median latency of the last level without rejections, in seconds.
    pub(super) fn latency(&self) -> f64 {
        let of_levels = unloaded_latency(&self.levels);
        of_levels.or_else(|| median_latency(&self.evidence.level)).unwrap_or(0.1)
    }

    /// Returns the latency that nine of ten requests do not exceed, and at least a fifth more than the median.
    pub(super) fn slow_latency(&self) -> f64 {
        self.evidence.slow_latency().max(MIN_LATENCY_MARGIN * self.latency())
    }

    fn next_of_level(&mut self, now: f64) -> Option<NextAction> {
        let is_measuring = matches!(self.stage, ProbeStage::Measure(_) | ProbeStage::Experiment(_));
        if is_measuring && self.sent >= self.bounds.measure_budget() {
            return None;
        }
        let progress = LevelProgress {
            now,
            sent: self.sent_in_level,
            last_sent: self.last_sent,
            in_flight: self.evidence.in_flight.len() as u32,
            rejected: self.evidence.level_counts().1 as u32,
            acceptance_delay: self.evidence.acceptance_delay(self.latency()),
            max_connections: self.bounds.max_connections,
        };
        self.stage.next(progress)
    }

    /// Ends the measurement when the kind and the value of the limit are known.
    fn assess_measurement(&mut self) {
        let count = self.evidence.count();
        if count < self.next_assessment {
            return;
        }
        self.next_assessment = count + (count / 10).max(4);
        let Some(found) = self.evidence.fit(FitScope::Simple) else { return };
        let is_rate = self.is_rate || refutes_cap(&found);
        self.is_known = match is_rate {
            true => is_rate_known(&self.evidence, &found),
            false => is_cap_known(&self.evidence, &found),
        };
        self.is_closing = self.is_known;
        if let ProbeStage::Measure(pacer) = &mut self.stage {
            pacer.is_rate = is_rate;
        }
    }

    fn close_level(&mut self, now: f64) {
        let Some((purpose, connections, spacing)) = self.stage.load() else { return };
        let level = ProbeLevel::new(purpose, connections, spacing, &self.evidence.level);
        self.evidence.history.append(&mut self.evidence.level);
        let next = match self.stage {
            ProbeStage::Ramp { connections } => self.after_ramp(now, connections, &level),
            ProbeStage::Measure(_) => {
                self.conclude();
                self.confirm(now)
            }
            ProbeStage::Experiment(_) => self.next_experiment(now),
            ProbeStage::Confirm(confirmation) => self.after_confirm(now, confirmation, &level),
            ProbeStage::Over => ProbeStage::Over,
        };
        if level.sent > 0 {
            self.levels.push(level);
        }
        self.sent_in_level = 0;
        self.is_closing = false;
        self.stage = if self.stop.is_some() { ProbeStage::Over } else { next };
        let is_over = matches!(self.stage, ProbeStage::Over);
        if is_over && self.max_rate.is_finite() && !self.is_confirmed {
            // A confirmation was rejected, and no other one passed.
            self.limit = LimitFinding::Unknown;
        }
    }

    fn after_ramp(&mut self, now: f64, connections: u32, level: &ProbeLevel) -> ProbeStage {
        if level.failed > 2 && level.failed * 2 > level.sent {
            self.stop.get_or_insert(ProbeStop::Failures);
        }
        if level.rejected == 0 {
            if level.accepted >= connections {
                self.limit = LimitFinding::NotReached { connections };
            }
            if let Some(knee) = find_knee(&self.levels, level) {
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
        if self.max_wait > 0.0 {
            return self.next_experiment(now);
        }
        self.next_assessment = 0;
        let peak = peak_concurrency(&self.evidence.history).max(1.0) as u32;
        ProbeStage::Measure(MeasurePacer::new(now, peak + (peak / 8).max(2), self.latency() / 4.0))
    }

    /// Returns the experiment that distinguishes the plausible limits, or the confirmation if none is needed.
    fn next_experiment(&mut self, now: f64) -> ProbeStage {
        let is_possible = self.stop.is_none() && self.sent < self.bounds.measure_budget();
        let found = if is_possible { self.evidence.fit(FitScope::All) } else { None };
        let latency = self.latency();
        let next = found
            .and_then(|found| self.planner.next(&self.evidence, &found, self.is_rate, latency));
        if let Some(experiment) = next {
            return ProbeStage::Experiment(experiment);
        }
        self.conclude();
        self.confirm(now)
    }

    /// Sets the limit from the evidence.
    fn conclude(&mut self) {
        let is_cap_tested = self.planner.is_cap_tested || self.is_known;
        let is_complete = self.stop.is_none() || self.max_wait == 0.0;
        if let Some(limit) = conclude(&self.evidence, self.is_rate, is_cap_tested, is_complete) {
            self.limit = limit.at_most(self.max_rate);
        }
    }

    fn after_confirm(
        &mut self,
        now: f64,
        confirmation: Confirmation,
        level: &ProbeLevel,
    ) -> ProbeStage {
        if level.rejected == 0 {
            self.is_confirmed = confirmation.is_passed(level.accepted) && self.stop.is_none();
            return ProbeStage::Over;
        }
        self.confirmations += 1;
        match &mut self.limit {
            // Rejections below the cap refute it: the limit is a rate.
            LimitFinding::Cap { connections } if self.confirmations > 1 || *connections < 2.0 => {
                self.is_rate = true;
                return self.measure(now);
            }
            LimitFinding::Cap { connections } => *connections = (*connections * 0.9).max(1.0),
            // Without an accepted request, the pause before was too short.
            LimitFinding::Rate { per_second } | LimitFinding::RateAndCap { per_second, .. }
                if level.accepted > 0 =>
            {
                self.max_rate = self.max_rate.min(0.9 * *per_second);
                self.is_rate = true;
                // The rejection is new evidence.
                if self.max_wait > 0.0 {
                    return self.next_experiment(now);
                }
                self.conclude();
                if self.limit == LimitFinding::Unknown {
                    return self.measure(now);
                }
            }
            _ => {}
        }
        self.confirm(now)
    }

    /// Pauses, and returns the level that tries the recommendation.
    fn confirm(&mut self, now: f64) -> ProbeStage {
        if self.confirmations >= MAX_CONFIRMATIONS {
            // Settings that were rejected so often are not worth recommending.
            self.limit = LimitFinding::Unknown;
            return ProbeStage::Over;
        }
        let latency = self.latency();
        // Pauses of the probe are no rejections.
        let max_span = if self.max_wait > 0.0 { self.max_wait } else { f64::INFINITY };
        let span = max_rejection_span(&self.evidence.history).min(max_span);
        let run = max_accepted_run(&self.evidence.history);
        let pause = pause_before(self.limit, latency, span, self.confirmations);
        let max_seconds = self.bounds.max_seconds - now - pause;
        let max_requests = self.bounds.max_requests.saturating_sub(self.sent);
        let Some(confirmation) =
            Confirmation::new(self.limit, latency, span, run, max_seconds, max_requests)
        else {
            return ProbeStage::Over;
        };
        self.pause(now, pause, MAX_PAUSE.max(pause));
        ProbeStage::Confirm(confirmation)
    }

    /// Sends nothing for `seconds`, or until the limits are restored according to the headers if that is
    /// later, but for at most `max_seconds`.
    fn pause(&mut self, now: f64, seconds: f64, max_seconds: f64) {
        let until_restored = (self.restored_at - now).max(0.0);
        let seconds = seconds.max(until_restored).min(max_seconds);
        self.not_before = self.not_before.max(now + seconds);
    }
}
