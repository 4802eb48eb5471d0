//! Windows as an explanation of the outcomes: a number of requests per period of a fixed length.

use super::event::{Event, MAX_DELAY};
use super::fit::RateFit;
use super::search::{find_best, grid};
use super::threshold::{Reading, Threshold, find_threshold};

/// Ratio of neighbouring window lengths that are tried.
const WINDOW_STEP: f64 = 1.01;
/// Half of the distance to the next window length.
const WINDOW_TOLERANCE: f64 = 0.006;
/// Range of window lengths in seconds.
const WINDOWS: (f64, f64) = (0.2, 200.0);
/// Maximum number of openings that determine the start of a window.
const MAX_OPENINGS: usize = 12;
/// Possible starts of a window between the latest (0) and the earliest one (1) that explains the openings. With
/// announced waits the start is near the latest one.
const STARTS: [f64; 6] = [0.0, 0.06, 0.12, 0.25, 0.5, 1.0];

/// Fits a number of requests in any period of some length.
pub(super) fn fit_sliding_window(events: &[Event]) -> Option<RateFit> {
    let accepted = accepted_times(events);
    let mut readings = Vec::with_capacity(events.len());
    let best = find_best(&window_lengths(events), |shortest, longest| {
        readings.clear();
        let tolerance = MAX_DELAY + WINDOW_TOLERANCE * longest;
        // Accepted requests before the current one, before the shortest and before the longest window.
        let (mut before, mut expired, mut surely_expired) = (0_usize, 0, 0);
        for event in events {
            let is_before = |index: usize, time: f64| {
                index < before && accepted.get(index).is_some_and(|sent| *sent <= time)
            };
            while is_before(expired, event.sent - shortest + tolerance) {
                expired += 1;
            }
            while is_before(surely_expired, event.sent - longest - tolerance) {
                surely_expired += 1;
            }
            readings.push(Reading {
                low: (before - expired) as f64,
                high: (before - surely_expired) as f64,
                is_accepted: event.is_accepted,
            });
            before += usize::from(event.is_accepted);
        }
        find_threshold(&readings)
    });
    of_windows(&best)
}

/// Fits a number of requests per window, where all windows have the same length.
pub(super) fn fit_fixed_window(events: &[Event]) -> Option<RateFit> {
    let openings = openings(events);
    let accepted = accepted_times(events);
    let min_seconds = max_rejection_seconds(events);
    let mut readings = Vec::with_capacity(events.len());
    let mut best: Vec<(f64, Threshold)> = Vec::new();
    for seconds in window_lengths(events) {
        let tolerance = MAX_DELAY + WINDOW_TOLERANCE * seconds;
        let Some((earliest, latest)) = common_start(&openings, seconds, tolerance) else {
            continue;
        };
        if seconds + tolerance < min_seconds {
            continue;
        }
        let mut last_start = f64::INFINITY;
        for share in STARTS {
            let start = latest - share * (latest - earliest);
            if last_start - start < tolerance {
                continue;
            }
            last_start = start;
            readings.clear();
            let (mut window, mut used) = (f64::NEG_INFINITY, 0.0);
            let mut is_after_rejection = false;
            let (mut before, mut expired) = (0_usize, 0);
            for event in events {
                let position = (event.sent - start) / seconds;
                // Near its edges, a request may belong to the neighbouring window. The requests of the last
                // `seconds` belong to at most two windows, so one of them accepted half of them.
                // The error of the length adds up over the windows.
                let distance = (event.sent - start).abs().max(seconds);
                let tolerance = MAX_DELAY + WINDOW_TOLERANCE * distance;
                let is_near_edge = (position - position.round()).abs() * seconds < tolerance;
                let is_opening = is_near_edge && is_after_rejection && event.is_accepted;
                let number = if is_opening { position.round() } else { position.floor() };
                if number > window {
                    (window, used) = (number, 0.0);
                }
                let is_expired = |sent: &f64| *sent <= event.sent - seconds - MAX_DELAY;
                while expired < before && accepted.get(expired).is_some_and(is_expired) {
                    expired += 1;
                }
                let recent = before - expired;
                readings.push(Reading {
                    low: if is_near_edge { (recent / 2) as f64 } else { used },
                    high: if is_near_edge { recent as f64 } else { used },
                    is_accepted: event.is_accepted,
                });
                if event.is_accepted {
                    used += 1.0;
                    before += 1;
                }
                is_after_rejection = !event.is_accepted;
            }
            let Some(found) = find_threshold(&readings) else { continue };
            let fewest = best.first().map_or(u32::MAX, |best| best.1.contradictions);
            if found.contradictions < fewest {
                best.clear();
            }
            if found.contradictions <= fewest {
                best.push((seconds, found));
            }
        }
    }
    of_windows(&best)
}

fn of_windows(windows: &[(f64, Threshold)]) -> Option<RateFit> {
    let rate = |seconds: f64, threshold: Threshold| (threshold.max_accepted + 1.0) / seconds;
    let rates = windows.iter().map(|(seconds, threshold)| (rate(*seconds, *threshold), *threshold));
    RateFit::of_all(rates, None)
}

fn accepted_times(events: &[Event]) -> Vec<f64> {
    events.iter().filter(|event| event.is_accepted).map(|event| event.sent).collect()
}

/// Returns the window lengths to try. A window must have ended before its length can be known.
fn window_lengths(events: &[Event]) -> Vec<f64> {
    let first = events.first().map_or(0.0, |event| event.sent);
    let seconds = events.last().map_or(0.0, |event| event.sent) - first;
    let mut lengths = grid(WINDOWS, WINDOW_STEP);
    lengths.retain(|length| *length <= seconds);
    lengths
}

/// Returns periods that contain the start of a window, from a rejected request to the next accepted one: those
/// after the longest rejections.
fn openings(events: &[Event]) -> Vec<(f64, f64)> {
    let mut openings: Vec<(f64, (f64, f64))> = Vec::new();
    let mut rejecting_since: Option<f64> = None;
    for pair in events.windows(2) {
        let [one, next] = pair else { continue };
        if one.is_accepted {
            rejecting_since = None;
            continue;
        }
        let since = *rejecting_since.get_or_insert(one.sent);
        if next.is_accepted {
            openings.push((next.sent - since, (one.sent, next.sent)));
        }
    }
    openings.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut longest: Vec<(f64, f64)> =
        openings.into_iter().take(MAX_OPENINGS).map(|(_, opening)| opening).collect();
    // The shortest openings restrict the start of the windows most.
    longest.sort_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    longest
}

/// Returns the longest time between two rejected requests with no accepted one between them.
fn max_rejection_seconds(events: &[Event]) -> f64 {
    let (mut since, mut longest) = (None, 0.0_f64);
    for event in events {
        match event.is_accepted {
            true => since = None,
            false => longest = longest.max(event.sent - *since.get_or_insert(event.sent)),
        }
    }
    longest
}

/// Returns the earliest and the latest start of a window of which every opening contains a repetition, or
/// `None` if there is none.
fn common_start(openings: &[(f64, f64)], seconds: f64, tolerance: f64) -> Option<(f64, f64)> {
    let (from, to) = openings.first()?;
    let mut range = (from.max(to - seconds), *to);
    for (from, to) in openings.iter().filter(|(from, to)| to - from < seconds) {
        // Part of the range that explains this opening, if it is so many windows later.
        let common = |windows: f64| {
            // The error of the length adds up over the windows.
            let tolerance = tolerance + (windows * WINDOW_TOLERANCE * seconds).abs();
            let offset = windows * seconds;
            (range.0.max(from - offset - tolerance), range.1.min(to - offset + tolerance))
        };
        let windows = ((to - range.1) / seconds).floor();
        let (one, other) = (common(windows), common(windows + 1.0));
        range = if one.1 - one.0 >= other.1 - other.0 { one } else { other };
        if range.0 > range.1 {
            return None;
        }
    }
    Some(range)
}
