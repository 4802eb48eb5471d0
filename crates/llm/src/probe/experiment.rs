//! Experiments for providers that announce waits.
//!
//! Each experiment sends some requests at once and then others at even intervals, until one is rejected. It is
//! chosen so that the plausible limits predict different numbers of accepted requests.

use super::conclusion::{MAX_FINAL_UNCERTAINTY, MAX_UNCERTAINTY};
use super::evidence::Evidence;
use super::fit::{Fit, RateFit};

/// Requests of an experiment after its burst.
const SPACED_REQUESTS: u32 = 20;
/// The same for the experiment that distinguishes a cap from a rate.
const CAP_TEST_REQUESTS: u32 = 6;
/// Interval of that experiment as a share of the shortest latency: no request has ended by then.
const CAP_TEST_INTERVAL: f64 = 0.7;
/// Maximum number of these experiments.
const MAX_CAP_TESTS: u32 = 3;
/// Rate per second that is tried before slower ones, with which an experiment would take most of the time.
const MIN_SPACED_RATE: f64 = 3.0;
/// Maximum number of experiments that distinguish a bucket from a window.
const MAX_WINDOW_TESTS: u32 = 2;
/// Ratio of a rate that must be rejected and the known rate.
const EXCESS: f64 = 1.25;
/// Maximum number of requests of the experiment with that rate.
const MAX_EXCESS_REQUESTS: u32 = 120;
/// Maximum time of an experiment in seconds.
const MAX_EXPERIMENT_SECONDS: f64 = 25.0;
/// Maximum number of experiments.
const MAX_EXPERIMENTS: u32 = 16;
/// Maximum number of experiments in a row that do not narrow the plausible rates.
const MAX_STALE_EXPERIMENTS: u32 = 3;

/// Requests of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Experiment {
    /// Requests sent at once.
    pub(super) burst: u32,
    /// Seconds between the other requests.
    pub(super) spacing: f64,
    /// All requests.
    pub(super) requests: u32,
}

impl Experiment {
    /// Creates an experiment with at most this number of requests after its burst.
    fn new(burst: u32, per_second: f64, requests: u32) -> Experiment {
        let max_requests = (MAX_EXPERIMENT_SECONDS * per_second).ceil().max(2.0) as u32;
        let requests = burst + requests.min(max_requests);
        Experiment { burst, spacing: 1.0 / per_second, requests }
    }
}

/// Choice of the next experiment.
#[derive(Debug)]
pub(super) struct ExperimentPlanner {
    /// Maximum number of requests in flight.
    max_connections: u32,
    experiments: u32,
    /// Whether the experiment that distinguishes a cap from a rate was planned.
    pub(super) is_cap_tested: bool,
    cap_tests: u32,
    /// Shortest latency before the last of these experiments, in seconds.
    cap_test_latency: f64,
    /// Experiments in a row that did not narrow the plausible rates.
    stale_experiments: u32,
    last_uncertainty: f64,
    /// Experiments that distinguished a bucket from a window.
    window_tests: u32,
    /// Rate of the last experiment above the known rate.
    exceeded_rate: f64,
}

impl ExperimentPlanner {
    pub(super) fn new(max_connections: u32) -> ExperimentPlanner {
        ExperimentPlanner {
            max_connections,
            experiments: 0,
            is_cap_tested: false,
            cap_tests: 0,
            cap_test_latency: 0.0,
            stale_experiments: 0,
            last_uncertainty: f64::INFINITY,
            window_tests: 0,
            exceeded_rate: 0.0,
        }
    }

    /// Returns the next experiment, or `None` if the limit is known or no other experiment would help. `is_rate`
    /// tells that a cap was refuted; `latency` is the median in seconds.
    pub(super) fn next(
        &mut self,
        evidence: &Evidence,
        found: &Fit,
        is_rate: bool,
        latency: f64,
    ) -> Option<Experiment> {
        if self.experiments >= MAX_EXPERIMENTS {
            return None;
        }
        let experiment = if !is_rate && found.cap.contradictions <= found.rate.contradictions {
            self.test_cap(evidence, found)
        } else {
            self.measure_rate(found, latency)
        };
        self.experiments += u32::from(experiment.is_some());
        experiment
    }

    /// A cap rejects the next request as long as none has ended; a rate limit has restored quota.
    fn test_cap(&mut self, evidence: &Evidence, found: &Fit) -> Option<Experiment> {
        // If responses arrived sooner than expected, the cap may not have been exceeded.
        let latency = evidence.min_latency();
        let is_conclusive = self.is_cap_tested && latency > 0.9 * self.cap_test_latency;
        if is_conclusive || self.cap_tests >= MAX_CAP_TESTS {
            return None;
        }
        self.is_cap_tested = true;
        self.cap_tests += 1;
        self.cap_test_latency = latency;
        let burst = (found.cap.connections as u32).clamp(1, self.max_connections);
        let spacing = CAP_TEST_INTERVAL * latency;
        Some(Experiment { burst, spacing, requests: burst + CAP_TEST_REQUESTS })
    }

    fn measure_rate(&mut self, found: &Fit, latency: f64) -> Option<Experiment> {
        let rate = found.rate;
        if rate.uncertainty() <= MAX_UNCERTAINTY {
            return self.test_window(found).or_else(|| self.exceed_rate(&rate));
        }
        if self.is_exhausted(&rate) {
            return None;
        }
        let uncertainty = rate.uncertainty()
            * found.plausible_window().map_or(1.0, |window| window.uncertainty());
        let is_stale = uncertainty > 0.98 * self.last_uncertainty;
        self.stale_experiments = if is_stale { self.stale_experiments + 1 } else { 0 };
        self.last_uncertainty = uncertainty;
        if let Some(window) = found.plausible_window()
            && (window == found.rate || self.stale_experiments > 0)
        {
            // After a burst, a window rejects everything until it ends. Requests at even intervals show whether
            // it ends before its number is used up.
            let per_second = window.per_second();
            let requests = 2 * window.max_burst as u32 + SPACED_REQUESTS;
            return Some(Experiment::new(1, per_second, requests));
        }
        // Rates far below the highest plausible one are refuted if that is accepted.
        let middle = (rate.low.max(rate.high / 16.0) * rate.high).sqrt();
        let min_rate = MIN_SPACED_RATE.max(1.0 / latency);
        let per_second = middle.min((2.0 * rate.low).max(min_rate));
        // One request less than the burst: how many spaced requests are accepted then depends on the rate
        // alone. If that did not help, the burst was wrong, and exceeding it shows its size.
        let burst = match self.stale_experiments {
            0 => (rate.min_burst + 0.2).floor() - 1.0,
            _ => rate.max_burst.ceil() + 1.0,
        };
        let burst = (burst as u32).clamp(1, self.max_connections);
        Some(Experiment::new(burst, per_second, SPACED_REQUESTS))
    }

    /// Returns an experiment if a bucket and a window explain the outcomes equally well, but with different rates.
    /// After nearly as many requests as the window accepts, a bucket with a smaller burst has rejected some, one
    /// with a larger burst accepts more, and the window rejects what exceeds its number.
    fn test_window(&mut self, found: &Fit) -> Option<Experiment> {
        let window = found.plausible_window()?;
        let is_contradiction = window.uncertainty() <= MAX_FINAL_UNCERTAINTY
            && found.rate.or(window).uncertainty() > MAX_UNCERTAINTY;
        if !is_contradiction || self.window_tests >= MAX_WINDOW_TESTS {
            return None;
        }
        self.window_tests += 1;
        let burst = ((window.min_burst - 1.0) as u32).clamp(1, self.max_connections);
        Some(Experiment::new(burst, found.rate.low, SPACED_REQUESTS))
    }

    /// Returns an experiment with a rate above the known one, unless there was one. If it is accepted, the known
    /// rate is too low: no experiment was sensitive to the actual kind of limit.
    fn exceed_rate(&mut self, rate: &RateFit) -> Option<Experiment> {
        let per_second = EXCESS * rate.high;
        if (per_second / self.exceeded_rate - 1.0).abs() < 0.1 {
            return None;
        }
        self.exceeded_rate = per_second;
        let requests = rate.max_burst * EXCESS / (EXCESS - 1.0);
        Some(Experiment::new(
            1,
            per_second,
            (requests as u32).clamp(SPACED_REQUESTS, MAX_EXCESS_REQUESTS),
        ))
    }

    /// Whether more experiments would not narrow the plausible rates.
    fn is_exhausted(&self, rate: &RateFit) -> bool {
        let is_burst_known = rate.max_burst - rate.min_burst < 1.0;
        let is_narrow = rate.uncertainty() <= MAX_FINAL_UNCERTAINTY;
        let max_stale = if is_burst_known && is_narrow { 1 } else { MAX_STALE_EXPERIMENTS };
        self.stale_experiments >= max_stale
    }
}
