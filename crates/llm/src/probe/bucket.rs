//! Token bucket as an explanation of the outcomes, alone or next to a cap.

use super::event::{Event, MAX_DELAY};
use super::fit::RateFit;
use super::search::{find_best, grid};
use super::threshold::{Reading, find_threshold};

/// Ratio of neighbouring rates that are tried.
const RATE_STEP: f64 = 1.03;
/// Range of rates per second.
const RATES: (f64, f64) = (0.01, 1000.0);

/// Fits a token bucket. The quantity is the quota that is not yet restored: one more per accepted request, and
/// less with time.
pub(super) fn fit_bucket(events: &[Event]) -> Option<RateFit> {
    fit_relevant(events, |_| true, None)
}

/// Fits a token bucket next to a cap, which explains the rejections at the highest number in flight.
pub(super) fn fit_bucket_and_cap(events: &[Event], in_flight: &[Reading]) -> Option<RateFit> {
    let accepted = in_flight.iter().filter(|reading| reading.is_accepted);
    let cap = accepted.map(|reading| reading.low).fold(0.0, f64::max) + 1.0;
    let is_relevant = |reading: &Reading| reading.is_accepted || reading.high < cap;
    if in_flight.iter().all(is_relevant) {
        return None;
    }
    fit_relevant(events, |index| in_flight.get(index).is_some_and(is_relevant), Some(cap))
}

/// Fits a token bucket to the requests with a relevant index. The others use quota, but their outcome does not
/// depend on it.
fn fit_relevant(
    events: &[Event],
    is_relevant: impl Fn(usize) -> bool,
    cap: Option<f64>,
) -> Option<RateFit> {
    let mut readings = Vec::with_capacity(events.len());
    let best = find_best(&grid(RATES, RATE_STEP), |low_rate, high_rate| {
        readings.clear();
        let tolerance = (0.02 + 0.5 * MAX_DELAY * high_rate).min(0.3);
        let (mut slow, mut fast) =
            (Bucket::new(low_rate, tolerance), Bucket::new(high_rate, tolerance));
        for (index, event) in events.iter().enumerate() {
            slow.restore(event.sent);
            fast.restore(event.sent);
            if is_relevant(index) {
                readings.push(Reading {
                    low: fast.used - tolerance,
                    high: slow.max_used(),
                    is_accepted: event.is_accepted,
                });
            }
            if event.is_accepted {
                slow.used += 1.0;
                fast.used += 1.0;
            }
        }
        find_threshold(&readings)
    });
    RateFit::of_all(best.iter().map(|(rate, threshold)| (*rate, *threshold)), cap)
}

/// A token bucket with a known rate.
struct Bucket {
    per_second: f64,
    tolerance: f64,
    /// Quota that is not yet restored.
    used: f64,
    is_full: bool,
    at: f64,
}

impl Bucket {
    fn new(per_second: f64, tolerance: f64) -> Bucket {
        Bucket { per_second, tolerance, used: 0.0, is_full: true, at: 0.0 }
    }

    fn restore(&mut self, now: f64) {
        if now > self.at {
            self.used -= self.per_second * (now - self.at);
            self.at = now;
        }
        self.is_full = self.used < -self.tolerance;
        if self.used < 0.0 {
            self.used = 0.0;
        }
    }

    /// Returns the highest quantity that explains a rejection; a full bucket rejects nothing.
    fn max_used(&self) -> f64 {
        if self.is_full { f64::NEG_INFINITY } else { self.used + self.tolerance }
    }
}
