//! Kinds of limits that explain the outcomes of all requests.
//!
//! Each hypothesis predicts which requests are rejected. A hypothesis is scored by its contradictions, the
//! requests with another outcome. Hypotheses with as few contradictions as the best one are equally plausible,
//! and the next requests have to distinguish them.

use super::sample::{RequestSample, median_latency};
use super::threshold::{Reading, Threshold, find_threshold};

/// Ratio of neighbouring rates that are tried.
const RATE_STEP: f64 = 1.03;
/// Ratio of neighbouring window lengths that are tried.
const WINDOW_STEP: f64 = 1.01;
/// Half of the distance to the next window length.
const WINDOW_TOLERANCE: f64 = 0.006;
/// Range of rates per second.
const RATES: (f64, f64) = (0.01, 1000.0);
/// Range of window lengths in seconds.
const WINDOWS: (f64, f64) = (0.2, 200.0);
/// Maximum number of window starts that are tried per window length.
const MAX_STARTS: usize = 8;
/// Maximum number of seconds by which a request may be delayed on the network.
const MAX_DELAY: f64 = 0.01;
/// The same as a share of the latency.
const MAX_DELAY_SHARE: f64 = 0.1;
/// Contradictions up to which a simple hypothesis is sufficient, and others are not tried.
const MAX_CONTRADICTIONS: u32 = 1;

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
    /// Returns the middle of the plausible rates.
    pub(super) fn per_second(&self) -> f64 {
        (self.low * self.high).sqrt()
    }

    /// Returns the ratio of the highest and the lowest plausible rate.
    pub(super) fn uncertainty(&self) -> f64 {
        self.high / self.low
    }
}

/// The best hypothesis of each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    pub(super) cap: CapFit,
    pub(super) rate: RateFit,
}

/// Fits all kinds of limits to the samples since the start of the probe. `pending` are the times when the
/// requests in flight were sent; they count as accepted.
///
/// Returns `None` if no request was accepted or none was rejected.
pub(super) fn fit(samples: &[RequestSample], pending: impl Iterator<Item = f64>) -> Option<Fit> {
    let delay = delay(samples)?;
    let events = events(samples, pending, delay);
    if events.iter().all(|event| event.is_accepted) {
        return None;
    }
    let in_flight = in_flight_readings(&events, delay);
    let cap = find_threshold(in_flight.iter().copied())?;
    let cap = CapFit { connections: cap.max_accepted + 1.0, contradictions: cap.contradictions };
    let is_relevant = vec![true; events.len()];
    let mut rate = fit_bucket(&events, &is_relevant, None)?;
    if rate.contradictions.min(cap.contradictions) > MAX_CONTRADICTIONS {
        let others = [
            fit_sliding_window(&events),
            fit_fixed_window(&events),
            fit_bucket_and_cap(&events, &in_flight),
        ];
        for other in others.into_iter().flatten() {
            // Hypotheses with more parameters must explain more.
            if other.contradictions + 2 < rate.contradictions {
                rate = other;
            }
        }
    }
    Some(Fit { cap, rate })
}

/// Fits windows alone, for samples that do not determine the rate of a bucket.
pub(super) fn fit_window(samples: &[RequestSample]) -> Option<RateFit> {
    let events = events(samples, std::iter::empty(), delay(samples)?);
    let windows = [fit_fixed_window(&events), fit_sliding_window(&events)];
    windows.into_iter().flatten().min_by_key(|window| window.contradictions)
}

/// Returns the seconds by which a request may be delayed on the network.
fn delay(samples: &[RequestSample]) -> Option<f64> {
    Some((MAX_DELAY_SHARE * median_latency(samples)?).min(MAX_DELAY))
}

/// Returns accepted and rejected requests in the order of their arrival.
fn events(samples: &[RequestSample], pending: impl Iterator<Item = f64>, delay: f64) -> Vec<Event> {
    let mut events: Vec<Event> = (samples.iter())
        .filter(|s| s.is_accepted() || s.is_rejected())
        .map(|s| Event { sent: s.sent, ended: s.ended, is_accepted: s.is_accepted() })
        .chain(pending.map(|sent| Event { sent, ended: f64::INFINITY, is_accepted: true }))
        .collect();
    sort_by_arrival(&mut events, delay);
    events
}

/// A request with a known outcome. Times are seconds since the start of the probe.
struct Event {
    sent: f64,
    ended: f64,
    is_accepted: bool,
}

/// Sorts requests by the time at which they were sent. Requests sent at nearly the same time may arrive in any
/// order; the rejected ones arrived last, because a limit rejects what exceeds it.
fn sort_by_arrival(events: &mut [Event], delay: f64) {
    events.sort_by(|one, other| one.sent.total_cmp(&other.sent));
    let is_simultaneous = |one: &Event, other: &Event| other.sent - one.sent <= delay;
    let mut rest = events;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|other| is_simultaneous(first, other)).count();
        let (group, later) = rest.split_at_mut(count);
        group.sort_by_key(|event| !event.is_accepted);
        rest = later;
    }
}

/// Counts the accepted requests in flight at the time of each request.
fn in_flight_readings(events: &[Event], delay: f64) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let before = events.iter().take(index).filter(|other| other.is_accepted);
        let (mut low, mut high) = (0.0, 0.0);
        for other in before {
            low += f64::from(u8::from(other.ended > event.sent + 2.0 * delay));
            high += f64::from(u8::from(other.ended > event.sent - 2.0 * delay));
        }
        readings.push(Reading { low, high, is_accepted: event.is_accepted });
    }
    readings
}

/// Returns values from `range` in equal ratios.
fn grid(range: (f64, f64), step: f64) -> impl Iterator<Item = f64> {
    let steps = ((range.1 / range.0).ln() / step.ln()).ceil() as i32;
    (0..=steps).map(move |index| range.0 * step.powi(index))
}

/// Collects rates with the fewest contradictions.
#[derive(Default)]
struct RateRange(Option<RateFit>);

impl RateRange {
    fn add(&mut self, per_second: f64, threshold: Threshold, cap: Option<f64>) {
        let found = RateFit {
            low: per_second,
            high: per_second,
            min_burst: threshold.max_accepted + 1.0,
            max_burst: threshold.max_accepted + 1.0,
            cap,
            contradictions: threshold.contradictions,
        };
        match &mut self.0 {
            Some(best) if found.contradictions == best.contradictions => {
                best.low = best.low.min(per_second);
                best.high = best.high.max(per_second);
                best.min_burst = best.min_burst.min(found.min_burst);
                best.max_burst = best.max_burst.max(found.max_burst);
            }
            Some(best) if found.contradictions > best.contradictions => {}
            best => *best = Some(found),
        }
    }
}

/// Fits a token bucket. The quantity is the quota that is not yet restored: one more per accepted request, and
/// less with time.
fn fit_bucket(events: &[Event], is_relevant: &[bool], cap: Option<f64>) -> Option<RateFit> {
    let mut range = RateRange::default();
    for per_second in grid(RATES, RATE_STEP) {
        let tolerance = (0.02 + 0.5 * MAX_DELAY * per_second).min(0.3);
        let (mut used, mut last) = (0.0_f64, 0.0);
        let readings = events.iter().zip(is_relevant).filter_map(|(event, is_relevant)| {
            used -= per_second * (event.sent - last).max(0.0);
            last = event.sent.max(last);
            // A full bucket rejects nothing.
            let is_full = used < -tolerance;
            used = used.max(0.0);
            let reading = Reading {
                low: used - tolerance,
                high: if is_full { f64::NEG_INFINITY } else { used + tolerance },
                is_accepted: event.is_accepted,
            };
            used += f64::from(u8::from(event.is_accepted));
            is_relevant.then_some(reading)
        });
        if let Some(threshold) = find_threshold(readings) {
            range.add(per_second, threshold, cap);
        }
    }
    range.0
}

/// Fits a token bucket next to a cap, which explains the rejections at the highest number in flight.
fn fit_bucket_and_cap(events: &[Event], in_flight: &[Reading]) -> Option<RateFit> {
    let accepted = in_flight.iter().filter(|reading| reading.is_accepted);
    let cap = accepted.map(|reading| reading.low).fold(0.0, f64::max) + 1.0;
    let is_relevant: Vec<bool> =
        in_flight.iter().map(|reading| reading.is_accepted || reading.high < cap).collect();
    if is_relevant.iter().all(|is_relevant| *is_relevant) {
        return None;
    }
    fit_bucket(events, &is_relevant, Some(cap))
}

/// Fits a number of requests in any period of some length.
fn fit_sliding_window(events: &[Event]) -> Option<RateFit> {
    let accepted: Vec<f64> = events.iter().filter(|e| e.is_accepted).map(|e| e.sent).collect();
    let mut range = RateRange::default();
    for seconds in window_lengths(events) {
        let tolerance = MAX_DELAY + WINDOW_TOLERANCE * seconds;
        let mut before = 0;
        let readings = events.iter().map(|event| {
            let count = |from: f64| {
                (before - accepted.partition_point(|sent| *sent <= from).min(before)) as f64
            };
            let from = event.sent - seconds;
            let reading = Reading {
                low: count(from + tolerance),
                high: count(from - tolerance),
                is_accepted: event.is_accepted,
            };
            before += usize::from(event.is_accepted);
            reading
        });
        if let Some(threshold) = find_threshold(readings) {
            range.add((threshold.max_accepted + 1.0) / seconds, threshold, None);
        }
    }
    range.0
}

/// Returns the window lengths to try. A window must have ended before its length can be known.
fn window_lengths(events: &[Event]) -> impl Iterator<Item = f64> {
    let first = events.first().map_or(0.0, |event| event.sent);
    let seconds = events.last().map_or(0.0, |event| event.sent) - first;
    grid(WINDOWS, WINDOW_STEP).take_while(move |length| *length <= seconds)
}

/// Fits a number of requests per window, where all windows have the same length.
fn fit_fixed_window(events: &[Event]) -> Option<RateFit> {
    let mut range = RateRange::default();
    let starts = window_starts(events);
    for seconds in window_lengths(events) {
        for start in &starts {
            let (mut window, mut used) = (f64::NEG_INFINITY, 0.0_f64);
            let readings = events.iter().map(|event| {
                let position = (event.sent - start) / seconds;
                if position.floor() > window {
                    (window, used) = (position.floor(), 0.0);
                }
                // Near its edges, a request may belong to the neighbouring window.
                let edge = (position - position.round()).abs() * seconds;
                let is_near_edge = edge < MAX_DELAY + WINDOW_TOLERANCE * seconds;
                let reading = Reading {
                    low: if is_near_edge { 0.0 } else { used },
                    high: if is_near_edge { f64::INFINITY } else { used },
                    is_accepted: event.is_accepted,
                };
                used += f64::from(u8::from(event.is_accepted));
                reading
            });
            if let Some(threshold) = find_threshold(readings) {
                range.add((threshold.max_accepted + 1.0) / seconds, threshold, None);
            }
        }
    }
    range.0
}

/// Returns possible starts of windows, between a rejected request and the next accepted one: those with the longest rejections before them.
fn window_starts(events: &[Event]) -> Vec<f64> {
    let mut starts: Vec<(f64, f64)> = Vec::new();
    let mut rejecting_since: Option<f64> = None;
    for pair in events.windows(2) {
        let [one, next] = pair else { continue };
        if one.is_accepted {
            rejecting_since = None;
            continue;
        }
        let since = *rejecting_since.get_or_insert(one.sent);
        if next.is_accepted {
            // After an announced wait, the window started shortly before the accepted request.
            starts.push((next.sent - since, (one.sent + next.sent) / 2.0));
            starts.push((next.sent - since, next.sent - MAX_DELAY));
        }
    }
    starts.sort_by(|one, other| other.0.total_cmp(&one.0));
    starts.into_iter().take(MAX_STARTS).map(|(_, at)| at).collect()
}
