//! Whether the limit that headers describe is one of fixed windows.
//!
//! The reset of a bucket grows with what was used; that of a window names its end, whatever was
//! used.

use super::window::LENGTHS;

/// A window has surely ended so long after its end.
const END_MARGIN_S: f64 = 0.01;
/// Seconds between two requests that find out whether the next window has begun.
const PROBE_INTERVAL_S: f64 = 0.25;

#[derive(Debug, Clone, Copy)]
pub(super) enum Boundary {
    /// End and usage of an early response in this window, or bucket.
    Unknown { end: f64, used: f64 },
    /// There are no windows.
    Bucket,
    /// The present window ends then; windows are so long, once that is known. Until then single
    /// requests find out whether the next has begun.
    Window { end: f64, length: f64, next_probe: f64 },
}

impl Boundary {
    /// A response says when everything is there again. Returns whether a new window has begun.
    pub(super) fn look(&mut self, end: f64, used: f64, rate: f64, is_coarse: bool) -> bool {
        let tolerance = if is_coarse { 1.05 } else { 0.05 };
        match self {
            Boundary::Unknown { end: first_end, used: first_used } => {
                let grown = (used - *first_used) / rate.max(1e-9);
                let is_telling = grown > if is_coarse { 4.0 } else { 2.0 } * tolerance;
                if used > 2.0 * *first_used && is_telling {
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
                if end > *known + tolerance {
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
                    // Windows were taken for longer, because none was seen for a while.
                    *length = end - start;
                    *known = end;
                } else if is_coarse || (end - *known).abs() < tolerance {
                    *known = known.min(end);
                }
            }
            Boundary::Bucket => {}
        }
        false
    }

    /// When the next window begins, if there are windows.
    pub(super) fn next_at(&self, now: f64) -> Option<f64> {
        match *self {
            Boundary::Window { end, next_probe, .. } => {
                Some((end + END_MARGIN_S).max(next_probe).max(now + 1e-3))
            }
            _ => None,
        }
    }

    /// Returns whether a window has ended by now whose length is known.
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

    /// Whether one request may find out whether the next window has begun.
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
    fn an_earlier_end_than_the_known_one_means_shorter_windows() {
        let mut boundary = Boundary::Window { end: 60.0, length: 0.0, next_probe: 0.0 };
        // Nobody asked from 60 to 90, so windows of 30 seconds look like windows of 60.
        assert!(boundary.look(120.0, 1.0, 1.0, false));
        assert!(boundary.advance(120.1));
        boundary.look(150.0, 1.0, 1.0, false);
        assert_eq!(boundary.next_at(121.0), Some(150.0 + END_MARGIN_S));
        assert!(boundary.advance(150.1));
        assert_eq!(boundary.next_at(151.0), Some(180.0 + END_MARGIN_S));
    }

    const EARLY: Boundary = Boundary::Unknown { end: 60.0, used: 10.0 };
    const WINDOW: Boundary = Boundary::Window { end: 60.0, length: 0.0, next_probe: 60.0 };

    /// What it is after a second response that tells of so much usage at one per second.
    fn after(end: f64, used: f64, is_coarse: bool) -> Boundary {
        let mut boundary = EARLY;
        assert!(!boundary.look(end, used, 1.0, is_coarse));
        boundary
    }

    #[test]
    fn an_end_that_stays_whatever_is_used_is_that_of_a_window() {
        assert!(matches!(after(60.0, 30.0, false), Boundary::Window { end: 60.0, .. }));
        assert!(matches!(after(80.0, 30.0, false), Boundary::Bucket));
        assert!(matches!(after(60.0, 15.0, false), Boundary::Unknown { .. }), "not much more");
        let less = after(70.0, 5.0, false);
        assert!(matches!(less, Boundary::Unknown { end: 70.0, used: 5.0 }), "{less:?}");
    }

    #[test]
    fn an_end_in_whole_seconds_is_up_to_one_too_late() {
        assert!(matches!(after(61.0, 30.0, false), Boundary::Bucket));
        let mut boundary = after(61.0, 30.0, true);
        assert!(matches!(boundary, Boundary::Window { end: 61.0, .. }), "{boundary:?}");
        assert!(!boundary.look(60.2, 31.0, 1.0, true));
        assert!(matches!(boundary, Boundary::Window { end: 60.2, .. }), "{boundary:?}");
    }

    #[test]
    fn the_next_end_tells_the_length() {
        let mut boundary = WINDOW;
        assert!(!boundary.advance(61.0), "not known yet");
        assert!(boundary.look(119.5, 1.0, 1.0, false));
        // What is nearly a minute is one.
        assert!(matches!(boundary, Boundary::Window { length: 60.0, .. }), "{boundary:?}");
        assert!(!boundary.advance(119.5), "just about to end");
        assert!(boundary.advance(119.6));
        assert_eq!(boundary.next_at(119.6), Some(179.51));
        // Nobody may have asked in some of the windows: the shortest distance counts.
        assert!(boundary.look(209.5, 1.0, 1.0, false));
        assert!(matches!(boundary, Boundary::Window { length: 30.0, .. }), "{boundary:?}");
    }

    #[test]
    fn until_the_length_is_known_single_requests_look_for_the_next_window() {
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
