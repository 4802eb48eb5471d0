//! Detection of fixed windows from the resets in headers.
//!
//! A bucket is full again at a time that moves with the clock and with the usage; a window ends at a
//! fixed time.

use super::window_search::LENGTHS;

/// Seconds after the announced end at which a window has ended for certain.
const END_MARGIN_S: f64 = 0.01;
/// Variation of the time on the network, by which announced ends differ.
const NETWORK_JITTER_S: f64 = 0.15;
/// Relative error of the predicted reset of a bucket.
const BUCKET_TOLERANCE: f64 = 0.5;
/// Minimum length of a window in seconds.
const MIN_WINDOW_S: f64 = 0.5;
/// Seconds between two requests that test whether the next window has started.
const PROBE_INTERVAL_S: f64 = 0.25;

/// The kind of limit that headers describe.
#[derive(Debug, Clone, Copy)]
pub(super) enum Boundary {
    /// Not known yet: an early response.
    Unknown(ResetReading),
    /// A bucket without windows.
    Bucket,
    /// Windows: end of the current one, and their length, 0 while unknown. Until the length is known,
    /// single requests test whether the next window has started.
    Window { end: f64, length: f64, next_probe: f64 },
    /// A sliding window: the reset follows the latest request, and says nothing about the next place.
    Sliding,
}

/// The reset in the headers of one response.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResetReading {
    /// When the request was sent.
    pub(super) sent_at: f64,
    /// When the limit is reset.
    pub(super) end: f64,
    /// The part of the limit in use.
    pub(super) used: f64,
}

impl Boundary {
    /// Processes the reset of a response. Returns whether a new window has started.
    pub(super) fn observe(&mut self, reading: ResetReading, rate: f64, is_coarse: bool) -> bool {
        let tolerance = if is_coarse { 1.05 } else { NETWORK_JITTER_S };
        let end = reading.end;
        match self {
            Boundary::Unknown(first) => {
                // By how much the reset of a bucket would have moved.
                let shift =
                    reading.sent_at - first.sent_at + (reading.used - first.used) / rate.max(1e-9);
                let threshold = if is_coarse { 4.0 } else { 2.0 } * tolerance;
                let is_significant = shift.abs() > threshold;
                // A reset in whole seconds that is nearly over allows any rate, so usage proves little.
                let max_rate = first.used / (first.end - first.sent_at - 1.0).max(0.0);
                let min_shift =
                    reading.sent_at - first.sent_at + (reading.used - first.used) / max_rate;
                let proves_window = !is_coarse || min_shift > threshold;
                let moved = end - first.end;
                if is_significant && proves_window && moved.abs() < tolerance {
                    *self = Boundary::Window { end, length: 0.0, next_probe: end };
                } else if is_significant && (moved / shift - 1.0).abs() < BUCKET_TOLERANCE {
                    *self = Boundary::Bucket;
                } else if is_significant || reading.used < first.used {
                    *self = Boundary::Unknown(reading);
                }
            }
            Boundary::Window { end: known, length, .. } => {
                // A response to a request sent after the end is about the next window.
                let is_later = reading.sent_at > *known + NETWORK_JITTER_S;
                let min_distance =
                    if is_later { MIN_WINDOW_S } else { tolerance.max(MIN_WINDOW_S) };
                if end > *known + min_distance {
                    let distance = end - *known;
                    if distance + 2.0 * tolerance < end - reading.sent_at {
                        // The end of a fixed window moves by a whole length.
                        *self = Boundary::Sliding;
                        return false;
                    }
                    let distance = LENGTHS
                        .into_iter()
                        .find(|length| (distance / length - 1.0).abs() < 0.02)
                        .unwrap_or(distance);
                    *length = if *length == 0.0 { distance } else { length.min(distance) };
                    *known = end;
                    return true;
                }
                let start = *known - *length;
                let is_earlier = end < *known - tolerance && end > start + tolerance;
                if *length > 0.0 && is_earlier {
                    // The length was overestimated, because some windows were not observed.
                    *length = end - start;
                    *known = end;
                } else if is_coarse {
                    // Whole seconds are rounded up.
                    *known = known.min(end);
                } else if (end - *known).abs() < tolerance {
                    // The reset counts from the arrival of the request, which is after its sending.
                    *known = known.max(end);
                }
            }
            Boundary::Bucket | Boundary::Sliding => {}
        }
        false
    }

    /// Returns when the next window starts, or when a request may test that, if there are windows.
    pub(super) fn next_at(&self, now: f64) -> Option<f64> {
        match *self {
            Boundary::Window { end, next_probe, .. } => {
                Some((end + END_MARGIN_S).max(next_probe).max(now))
            }
            _ => None,
        }
    }

    /// Advances to the current window if the length is known; returns whether a window has ended.
    pub(super) fn advance(&mut self, now: f64) -> bool {
        let mut has_ended = false;
        if let Boundary::Window { end, length, .. } = self {
            while *end + END_MARGIN_S <= now && *length > 0.0 {
                *end += *length;
                has_ended = true;
            }
        }
        has_ended
    }

    /// Returns whether a time is in the current window, as far as its length is known.
    pub(super) fn contains(&self, at: f64) -> bool {
        match *self {
            Boundary::Window { end, length, .. } => {
                at < end && (length == 0.0 || at >= end - length)
            }
            _ => false,
        }
    }

    /// Delays the next test if the current window has ended, because this request is one.
    pub(super) fn on_sent(&mut self, now: f64) {
        if let Boundary::Window { end, next_probe, .. } = self
            && *end + END_MARGIN_S <= now
        {
            *next_probe = now + PROBE_INTERVAL_S;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_end_shortens_the_windows() {
        let mut boundary = Boundary::Window { end: 60.0, length: 0.0, next_probe: 0.0 };
        // Without requests from 60 to 90, windows of 30 seconds look like windows of 60.
        assert!(observe(&mut boundary, 120.0, 1.0, false));
        assert!(boundary.advance(120.1));
        observe(&mut boundary, 150.0, 1.0, false);
        assert_eq!(boundary.next_at(121.0), Some(150.0 + END_MARGIN_S));
        assert!(boundary.advance(150.1));
        assert_eq!(boundary.next_at(151.0), Some(180.0 + END_MARGIN_S));
    }

    const EARLY: Boundary = Boundary::Unknown(ResetReading { sent_at: 0.0, end: 60.0, used: 10.0 });
    const WINDOW: Boundary = Boundary::Window { end: 60.0, length: 0.0, next_probe: 60.0 };

    fn observe(boundary: &mut Boundary, end: f64, used: f64, is_coarse: bool) -> bool {
        let sent_at = if end > 100.0 { end - 30.0 } else { 0.0 };
        boundary.observe(ResetReading { sent_at, end, used }, 1.0, is_coarse)
    }

    /// Returns the boundary after a second response with that usage, at one per second.
    fn after(end: f64, used: f64, is_coarse: bool) -> Boundary {
        let mut boundary = EARLY;
        assert!(!observe(&mut boundary, end, used, is_coarse));
        boundary
    }

    /// Returns the boundary after a second response with the same usage, sent later.
    fn later(sent_at: f64, end: f64) -> Boundary {
        let mut boundary = EARLY;
        assert!(!boundary.observe(ResetReading { sent_at, end, used: 10.0 }, 1.0, false));
        boundary
    }

    #[test]
    fn end_that_moves_with_the_clock_is_that_of_a_bucket() {
        assert!(matches!(later(5.0, 65.0), Boundary::Bucket));
        assert!(matches!(later(5.0, 60.0), Boundary::Window { end: 60.0, .. }));
        // Neither: a later window. Its responses decide.
        assert!(matches!(later(5.0, 120.0), Boundary::Unknown(reading) if reading.end == 120.0));
    }

    #[test]
    fn end_independent_of_usage_is_a_window() {
        assert!(matches!(after(60.0, 30.0, false), Boundary::Window { end: 60.0, .. }));
        assert!(matches!(after(80.0, 30.0, false), Boundary::Bucket));
        assert!(matches!(after(60.0, 10.2, false), Boundary::Unknown(_)), "usage has hardly grown");
        let less = after(70.0, 5.0, false);
        assert!(matches!(less, Boundary::Unknown(reading) if reading.used == 5.0), "{less:?}");
    }

    #[test]
    fn end_that_follows_the_requests_is_that_of_a_sliding_window() {
        let mut boundary = WINDOW;
        boundary.observe(ResetReading { sent_at: 1.0, end: 61.0, used: 20.0 }, 1.0, false);
        assert!(matches!(boundary, Boundary::Sliding), "{boundary:?}");
    }

    #[test]
    fn coarse_end_is_up_to_one_second_late() {
        assert!(matches!(after(61.0, 30.0, false), Boundary::Unknown(_)));
        let mut boundary = after(61.0, 30.0, true);
        assert!(matches!(boundary, Boundary::Window { end: 61.0, .. }), "{boundary:?}");
        assert!(!observe(&mut boundary, 60.2, 31.0, true));
        assert!(matches!(boundary, Boundary::Window { end: 60.2, .. }), "{boundary:?}");
    }

    #[test]
    fn next_end_gives_the_length() {
        let mut boundary = WINDOW;
        assert!(!boundary.advance(61.0), "not known yet");
        assert!(observe(&mut boundary, 119.5, 1.0, false));
        // Nearly a minute is rounded to a minute.
        assert!(matches!(boundary, Boundary::Window { length: 60.0, .. }), "{boundary:?}");
        assert!(!boundary.advance(119.5), "within the margin");
        assert!(boundary.advance(119.6));
        assert_eq!(boundary.next_at(119.6), Some(179.51));
        // Some windows may pass without a request, so the shortest distance counts.
        assert!(observe(&mut boundary, 209.5, 1.0, false));
        assert!(matches!(boundary, Boundary::Window { length: 30.0, .. }), "{boundary:?}");
    }

    #[test]
    fn nearly_expired_coarse_reset_does_not_prove_a_window() {
        let first = ResetReading { sent_at: 0.0, end: 1.0, used: 10.0 };
        let second = ResetReading { sent_at: 0.9, end: 1.9, used: 300.0 };
        let mut boundary = Boundary::Unknown(first);
        boundary.observe(second, 40.0, true);
        assert!(!matches!(boundary, Boundary::Window { .. }), "{boundary:?}");
        let mut exact = Boundary::Unknown(first);
        exact.observe(ResetReading { end: 1.05, ..second }, 40.0, false);
        assert!(matches!(exact, Boundary::Window { .. }), "{exact:?}");
    }

    #[test]
    fn coarse_end_after_the_known_one_is_that_of_the_next_window() {
        let mut boundary = WINDOW;
        let early = ResetReading { sent_at: 60.1, end: 61.0, used: 1.0 };
        assert!(!boundary.observe(early, 1.0, true), "the window may not have ended");
        assert!(boundary.observe(ResetReading { sent_at: 60.2, ..early }, 1.0, true));
        assert!(matches!(boundary, Boundary::Window { length: 1.0, .. }), "{boundary:?}");
    }

    #[test]
    fn sent_requests_test_for_the_next_window_until_the_length_is_known() {
        let mut boundary = WINDOW;
        assert_eq!(boundary.next_at(10.0), Some(60.01));
        boundary.on_sent(60.0);
        assert_eq!(boundary.next_at(60.5), Some(60.5));
        assert_eq!(boundary.next_at(60.5), Some(60.5), "nothing was sent");
        boundary.on_sent(60.5);
        assert_eq!(boundary.next_at(60.5), Some(60.75));
        assert_eq!(EARLY.next_at(10.0), None);
        assert_eq!(Boundary::Bucket.next_at(10.0), None);
    }
}
