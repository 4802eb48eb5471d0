//! Kinds of limits that explain the outcomes of all requests.
//!
//! Each hypothesis predicts which requests are rejected. A hypothesis is scored by its contradictions, the
//! requests with another outcome. Hypotheses with as few contradictions as the best one are equally plausible,
//! and the next requests have to distinguish them.

use super::bucket::{fit_bucket, fit_bucket_and_cap};
use super::event::{delay, events, in_flight_readings};
use super::sample::RequestSample;
use super::threshold::{Threshold, find_threshold};
use super::window::{fit_fixed_window, fit_sliding_window};

/// Contradictions up to which a simple hypothesis is sufficient, and others are not tried.
const MAX_CONTRADICTIONS: u32 = 1;
/// Contradictions by which a hypothesis with more parameters must be better.
const MIN_IMPROVEMENT: u32 = 3;

/// A cap on the requests in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CapFit {
    pub(super) connections: f64,
    pub(super) contradictions: u32,
}

/// A limit of requests per time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateFit {
    /// Lowest plausible rate per second.
    pub(super) low: f64,
    /// Highest plausible rate per second.
    pub(super) high: f64,
    /// Lowest plausible number of requests that are accepted at once after a pause.
    pub(super) min_burst: f64,
    /// Highest plausible number of such requests.
    pub(super) max_burst: f64,
    /// Cap on the requests in flight that applies in addition.
    pub(super) cap: Option<f64>,
    pub(super) contradictions: u32,
}

impl RateFit {
    /// Combines equally plausible rates.
    pub(super) fn of_all(
        rates: impl Iterator<Item = (f64, Threshold)>,
        cap: Option<f64>,
    ) -> Option<RateFit> {
        let fits = rates.map(|(per_second, threshold)| RateFit {
            low: per_second,
            high: per_second,
            min_burst: threshold.max_accepted + 1.0,
            max_burst: threshold.max_accepted + 1.0,
            cap,
            contradictions: threshold.contradictions,
        });
        fits.reduce(RateFit::or)
    }

    /// Returns the middle of the plausible rates.
    pub(super) fn per_second(&self) -> f64 {
        (self.low * self.high).sqrt()
    }

    /// Returns the ratio of the highest and the lowest plausible rate.
    pub(super) fn uncertainty(&self) -> f64 {
        self.high / self.low
    }

    /// Combines two sets of plausible rates.
    pub(super) fn or(self, other: RateFit) -> RateFit {
        RateFit {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            min_burst: self.min_burst.min(other.min_burst),
            max_burst: self.max_burst.max(other.max_burst),
            cap: self.cap,
            contradictions: self.contradictions.min(other.contradictions),
        }
    }
}

/// The best hypothesis of each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    pub(super) cap: CapFit,
    /// The best rate: a bucket unless another kind explains much more.
    pub(super) rate: RateFit,
    /// The best window, if windows were tried.
    pub(super) window: Option<RateFit>,
}

impl Fit {
    /// Returns the window if it explains the outcomes as well as the best rate.
    pub(super) fn plausible_window(&self) -> Option<RateFit> {
        self.window.filter(|window| window.contradictions <= self.rate.contradictions)
    }
}

/// Hypotheses to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FitScope {
    /// All kinds of limits.
    All,
    /// Kinds with more parameters only if no other explains the outcomes.
    Simple,
}

/// Fits all kinds of limits to the samples since the start of the probe. `pending` are the times when the
/// requests in flight were sent; they count as accepted.
///
/// Returns `None` if no request was accepted or none was rejected.
pub(super) fn fit(
    samples: &[RequestSample],
    pending: impl Iterator<Item = f64>,
    scope: FitScope,
) -> Option<Fit> {
    let delay = delay(samples)?;
    let events = events(samples, pending, delay);
    if events.iter().all(|event| event.is_accepted) {
        return None;
    }
    let in_flight = in_flight_readings(&events, delay);
    let cap = find_threshold(&in_flight)?;
    let cap = CapFit { connections: cap.max_accepted + 1.0, contradictions: cap.contradictions };
    let mut rate = fit_bucket(&events)?;
    let mut window = None;
    let is_explained = rate.contradictions.min(cap.contradictions) <= MAX_CONTRADICTIONS;
    if scope == FitScope::All || !is_explained {
        let windows = [fit_fixed_window(&events), fit_sliding_window(&events)];
        window = windows.into_iter().flatten().min_by_key(|window| window.contradictions);
        for other in [window, fit_bucket_and_cap(&events, &in_flight)].into_iter().flatten() {
            if other.contradictions + MIN_IMPROVEMENT <= rate.contradictions {
                rate = other;
            }
        }
    }
    Some(Fit { cap, rate, window })
}
