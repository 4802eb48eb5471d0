//! Classification of rejections: do they depend on the requests in flight, or on the requests per time?
//!
//! A concurrency cap rejects if and only if its number of requests is in flight, so every rejection coincides
//! with the highest concurrency that was ever accepted. A rate limit also rejects at lower concurrency once
//! the initial burst is used up. Under overload it accepts requests at its own rate, whatever the load.

use super::sample::{RequestSample, median_latency, quantile};

/// Minimum number of accepted requests for a measured rate; one more or less changes it by 3 %.
const MIN_ACCEPTED: usize = 30;
/// The same at the end of the measurement, when there will be no more requests.
const MIN_ACCEPTED_AT_END: usize = 3;
/// Maximum difference of the gaps at the two ends of a measurement, as a share of its duration.
const MAX_GAP_DIFFERENCE: f64 = 0.1;
/// Tolerance for requests that were delayed on the network, in requests.
const DELAY_TOLERANCE: f64 = 0.1;

/// Kind of a limit, as far as the samples show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LimitKind {
    /// The samples do not suffice.
    Unclear,
    /// A rate limit, but too few requests were accepted to measure it.
    UnmeasuredRate,
    /// A cap on the requests in flight.
    Cap(f64),
    /// A rate limit, and the longest time in seconds for which all requests were rejected.
    Rate { per_second: f64, max_rejection_span: f64 },
}

/// Classifies samples in the order of their sending.
///
/// `horizon` is the time when the oldest request still in flight was sent; concurrency after it is not known
/// yet, so later samples are ignored. `is_rate` is set when the limit is known to be a rate, and `is_final`
/// when no more samples will follow.
pub(super) fn classify(
    samples: &[RequestSample],
    horizon: f64,
    is_rate: bool,
    is_final: bool,
) -> LimitKind {
    let known: Vec<RequestSample> = samples.iter().copied().filter(|s| s.sent < horizon).collect();
    let accepted: Vec<RequestSample> =
        known.iter().copied().filter(RequestSample::is_accepted).collect();
    let rejected: Vec<RequestSample> =
        known.iter().copied().filter(|s| s.is_rejected() && s.ended < horizon).collect();
    let (Some(latency), Some(first)) = (median_latency(&accepted), rejected.first()) else {
        return LimitKind::Unclear;
    };
    let concurrency: Vec<f64> = rejected.iter().map(|r| concurrency_at(&accepted, r)).collect();
    let peak = peak_concurrency(&accepted);
    // Before the first responses have arrived, a burst and a cap are indistinguishable.
    let first_responses = first.sent + 0.9 * latency;
    let late: Vec<f64> = (rejected.iter().zip(&concurrency))
        .filter(|(r, _)| r.sent > first_responses)
        .map(|(_, concurrency)| *concurrency)
        .collect();
    let tolerance = if peak < 5.0 { 0.5 } else { (0.06 * peak).max(1.0) };
    let is_often_below_peak = |concurrency: &[f64]| {
        let below = concurrency.iter().filter(|value| **value < peak - tolerance).count();
        below as f64 > 0.3 * concurrency.len() as f64
    };
    let accepted_since_first = accepted.iter().filter(|s| s.sent > first.sent).count() as f64;
    if is_rate
        || late.len() >= 3 && (is_often_below_peak(&late) || is_often_below_peak(&concurrency))
    {
        return measure_rate(&known, is_final);
    }
    if late.len() >= 3 && accepted_since_first >= peak + 3.0 || is_final && late.is_empty() {
        let median = quantile(concurrency.into_iter(), 0.5).unwrap_or(peak);
        return LimitKind::Cap(median.min(peak).max(1.0));
    }
    if is_final { measure_rate(&known, true) } else { LimitKind::Unclear }
}

/// Counts the accepted requests that were in flight together with a rejected one.
fn concurrency_at(accepted: &[RequestSample], rejected: &RequestSample) -> f64 {
    let overlaps = |s: &&RequestSample| s.sent <= rejected.ended && s.ended > rejected.sent;
    accepted.iter().filter(overlaps).count() as f64
}

/// Returns the highest number of accepted requests that were in flight together for a significant time.
///
/// Shorter peaks are ignored: when many responses arrive at once, the client still counts requests as in
/// flight that are finished for the provider.
pub(super) fn peak_concurrency(accepted: &[RequestSample]) -> f64 {
    let significant_seconds = 0.1 * median_latency(accepted).unwrap_or(0.0);
    let mut edges: Vec<(f64, i32)> =
        accepted.iter().flat_map(|s| [(s.sent, 1), (s.ended, -1)]).collect();
    // At equal times ends come first, because the next request takes the slot of the finished one.
    edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut seconds_at = vec![0.0; accepted.len() + 1];
    let mut concurrency = 0_i32;
    for pair in edges.windows(2) {
        concurrency += pair[0].1;
        if let Some(seconds) = seconds_at.get_mut(concurrency.unsigned_abs() as usize) {
            *seconds += pair[1].0 - pair[0].0;
        }
    }
    let mut seconds_above = 0.0;
    let peak = seconds_at.iter().rposition(|seconds| {
        seconds_above += seconds;
        seconds_above > significant_seconds
    });
    peak.unwrap_or(0) as f64
}

/// Start of a batch of accepted requests.
struct BatchStart {
    /// Midpoint between the last rejected request and the first accepted one.
    at: f64,
    /// Seconds between these two requests.
    gap: f64,
    /// Number of requests accepted before the batch.
    accepted_before: usize,
}

/// Measures a rate from the start of one batch to the start of another.
///
/// A batch starts with the first accepted request after a rejection. At that time a token bucket has just
/// enough for one request, or a window has just opened.
fn measure_rate(known: &[RequestSample], is_final: bool) -> LimitKind {
    let (starts, max_rejection_span) = batch_starts(known);
    let Some(end) = starts.last() else { return LimitKind::UnmeasuredRate };
    // With unequal gaps, different amounts of quota have accumulated at the two ends.
    let is_usable = |start: &&BatchStart, min_accepted: usize| {
        let is_even = (start.gap - end.gap).abs() <= MAX_GAP_DIFFERENCE * (end.at - start.at);
        end.accepted_before - start.accepted_before >= min_accepted && is_even
    };
    // The latest interval that is long enough, because polling may have been too slow at the beginning.
    let latest = starts.iter().rev().find(|start| is_usable(start, MIN_ACCEPTED));
    let longest = || starts.iter().find(|start| is_usable(start, MIN_ACCEPTED_AT_END));
    let start = if is_final { latest.or_else(longest) } else { latest };
    match start {
        Some(start) if end.at > start.at => {
            let mean = (end.accepted_before - start.accepted_before) as f64 / (end.at - start.at);
            let since: Vec<RequestSample> =
                known.iter().copied().filter(|s| s.sent >= start.at).collect();
            let interval_rate = || rate_from_intervals(&since).unwrap_or(mean);
            let per_second = if accumulates_quota(&since, mean) { mean } else { interval_rate() };
            LimitKind::Rate { per_second, max_rejection_span }
        }
        _ => LimitKind::UnmeasuredRate,
    }
}

/// Returns the starts of batches, and the longest time for which all requests were rejected.
fn batch_starts(known: &[RequestSample]) -> (Vec<BatchStart>, f64) {
    let mut starts: Vec<BatchStart> = Vec::new();
    let mut rejections: Vec<&RequestSample> = known.iter().filter(|s| s.is_rejected()).collect();
    rejections.sort_by(|one, other| one.ended.total_cmp(&other.ended));
    let mut rejections = rejections.into_iter().peekable();
    let mut max_span: f64 = 0.0;
    let accepted = known.iter().filter(|s| s.is_accepted());
    for (accepted_before, sample) in accepted.enumerate() {
        // A request sent before the rejection had arrived belongs to the previous batch.
        let mut rejecting: Option<(f64, f64)> = None;
        while let Some(rejection) = rejections.next_if(|r| r.ended <= sample.sent) {
            let since = rejecting.map_or(rejection.ended, |(since, _)| since);
            rejecting = Some((since, rejection.sent));
        }
        if let Some((since, last_sent)) = rejecting {
            let gap = sample.sent - last_sent;
            starts.push(BatchStart { at: sample.sent - gap / 2.0, gap, accepted_before });
            max_span = max_span.max(sample.sent - since);
        }
    }
    (starts, max_span)
}

/// Whether unused quota accumulates. If so, a bucket with this rate explains all samples: it has quota for
/// every accepted request and none for any rejected one.
fn accumulates_quota(known: &[RequestSample], per_second: f64) -> bool {
    let (mut min_level, mut max_level) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut used = 0.0;
    for sample in known {
        let needed = used + 1.0 - per_second * sample.sent;
        if sample.is_accepted() {
            min_level = min_level.max(needed);
            used += 1.0;
        } else if sample.is_rejected() {
            max_level = max_level.min(needed);
        }
    }
    min_level <= max_level + DELAY_TOLERANCE
}

/// Measures the rate of a bucket with capacity one from the intervals between requests.
///
/// Such a bucket loses quota when a request is late, so the mean rate is too low. It accepts a request after
/// at least one interval since the last accepted one, and rejects earlier ones. Returns `None` if the samples
/// contradict that or are too imprecise.
fn rate_from_intervals(known: &[RequestSample]) -> Option<f64> {
    let (mut too_early, mut late_enough) = (Vec::new(), Vec::new());
    let mut last_accepted: Option<f64> = None;
    let mut last_rejected = None;
    for sample in known {
        let interval = last_accepted.map(|last| sample.sent - last);
        if sample.is_accepted() {
            too_early.extend(last_rejected.take().filter(|_| interval.is_some()));
            late_enough.extend(interval);
            last_accepted = Some(sample.sent);
        } else if sample.is_rejected() {
            last_rejected = interval;
        }
    }
    // Quantiles instead of extremes, because some requests are delayed on the network.
    let longest = quantile(too_early.into_iter(), 0.95)?;
    let shortest = quantile(late_enough.into_iter(), 0.05)?;
    let is_consistent = longest < shortest && shortest < 1.2 * longest;
    is_consistent.then(|| 2.0 / (longest + shortest))
}
