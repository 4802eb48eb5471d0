//! Detection of fixed windows from the resets in headers.
//!
//! The reset of a bucket grows with the usage; the reset of a window is its end, independent of the
//! usage.

use super::window_search::LENGTHS;

/// Seconds after the announced end at which a window has ended for certain.
const END_MARGIN_S: f64 = 0.01;
/// Variation of the time on the network, by which announced ends differ.
const NETWORK_JITTER_S: f64 = 0.15;
/// Minimum length of a window in seconds.
const MIN_WINDOW_S: f64 = 0.5;
/// Seconds between two requests that test whether the next window has started.
const PROBE_INTERVAL_S: f64 = 0.25;

/// The kind of limit that headers describe.
#[derive(Debug, Clone, Copy)]
pub(super) enum Boundary {
    /// Not known yet: end and usage of an early response.
    Unknown { end: f64, used: f64 },
    /// A bucket without windows.
    Bucket,
    /// Windows: end of the current one, and their length, 0 while unknown. Until the length is known,
    /// single requests test whether the next window has started.
    Window { end: f64, length: f64, next_probe: f64 },
}

impl Boundary {
    /// Processes the reset of a response. Returns whether a new window has started.
    pub(super) fn observe(&mut self, end: f64, used: f64, rate: f64, is_coarse: bool) -> bool {
        let tolerance = if is_coarse { 1.05 } else { NETWORK_JITTER_S };
        match self {
            Boundary::Unknown { end: first_end, used: first_used } => {
                let grown = (used - *first_used) / rate.max(1e-9);
                let is_significant = grown > if is_coarse { 4.0 } else { 2.0 } * tolerance;
                if used > 2.0 * *first_used && is_significant {
                    *self = if (end - *first_end).abs() < tolerance {
                        Boundary::Window { end, length: 0.0, next_probe: end }
                    } else {
                        Boundary::Bucket
                    };
                } else if used < *first_used {
                    *self = Boundary::Unknown { end, used };
                }
            }
            Boundary::Window { end: known, length, .. } => {
                if end > *known + tolerance.max(MIN_WINDOW_S) {
                    let distance = end - *known;
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
            Boundary::Bucket => {}
        }
        false
    }

    /// Returns the start of the next window, if there are windows.
    pub(super) fn next_at(&self, now: f64) -> Option<f64> {
        match *self {
            Boundary::Window { end, next_probe, .. } => {
                Some((end + END_MARGIN_S).max(next_probe).max(now + 1e-3))
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

    /// Returns whether a request may now test whether the next window has started.
    pub(super) fn is_probe_due(&mut self, now: f64) -> bool {
        match self {
            Boundary::Window { end, next_probe, .. }
                if *end + END_MARGIN_S <= now && *next_probe <= now =>
            {
                *next_probe = now + PROBE_INTERVAL_S;
                true
            }
            _ => false,
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
        assert!(boundary.observe(120.0, 1.0, 1.0, false));
        assert!(boundary.advance(120.1));
        boundary.observe(150.0, 1.0, 1.0, false);
        assert_eq!(boundary.next_at(121.0), Some(150.0 + END_MARGIN_S));
        assert!(boundary.advance(150.1));
        assert_eq!(boundary.next_at(151.0), Some(180.0 + END_MARGIN_S));
    }

    const EARLY: Boundary = Boundary::Unknown { end: 60.0, used: 10.0 };
    const WINDOW: Boundary = Boundary::Window { end: 60.0, length: 0.0, next_probe: 60.0 };

    /// Returns the boundary after a second response with that usage, at one per second.
    fn after(end: f64, used: f64, is_coarse: bool) -> Boundary {
        let mut boundary = EARLY;
        assert!(!boundary.observe(end, used, 1.0, is_coarse));
        boundary
    }

    #[test]
    fn end_independent_of_usage_is_a_window() {
        assert!(matches!(after(60.0, 30.0, false), Boundary::Window { end: 60.0, .. }));
        assert!(matches!(after(80.0, 30.0, false), Boundary::Bucket));
        assert!(
            matches!(after(60.0, 15.0, false), Boundary::Unknown { .. }),
            "usage has hardly grown"
        );
        let less = after(70.0, 5.0, false);
        assert!(matches!(less, Boundary::Unknown { end: 70.0, used: 5.0 }), "{less:?}");
    }

    #[test]
    fn coarse_end_is_up_to_one_second_late() {
        assert!(matches!(after(61.0, 30.0, false), Boundary::Bucket));
        let mut boundary = after(61.0, 30.0, true);
        assert!(matches!(boundary, Boundary::Window { end: 61.0, .. }), "{boundary:?}");
        assert!(!boundary.observe(60.2, 31.0, 1.0, true));
        assert!(matches!(boundary, Boundary::Window { end: 60.2, .. }), "{boundary:?}");
    }

    #[test]
    fn next_end_gives_the_length() {
        let mut boundary = WINDOW;
        assert!(!boundary.advance(61.0), "not known yet");
        assert!(boundary.observe(119.5, 1.0, 1.0, false));
        // Nearly a minute is rounded to a minute.
        assert!(matches!(boundary, Boundary::Window { length: 60.0, .. }), "{boundary:?}");
        assert!(!boundary.advance(119.5), "within the margin");
        assert!(boundary.advance(119.6));
        assert_eq!(boundary.next_at(119.6), Some(179.51));
        // Some windows may pass without a request, so the shortest distance counts.
        assert!(boundary.observe(209.5, 1.0, 1.0, false));
        assert!(matches!(boundary, Boundary::Window { length: 30.0, .. }), "{boundary:?}");
    }

    #[test]
    fn probes_look_for_the_next_window_until_the_length_is_known() {
        let mut boundary = WINDOW;
        assert_eq!(boundary.next_at(10.0), Some(60.01));
        assert!(!boundary.is_probe_due(60.0));
        assert!(boundary.is_probe_due(60.5));
        assert!(!boundary.is_probe_due(60.5));
        assert_eq!(boundary.next_at(60.5), Some(60.75));
        assert!(boundary.is_probe_due(60.75));
        assert_eq!(EARLY.next_at(10.0), None);
        assert_eq!(Boundary::Bucket.next_at(10.0), None);
    }
}
