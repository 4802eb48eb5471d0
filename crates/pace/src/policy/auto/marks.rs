//! The rate of a bucket, from the moments when it was empty.
//!
//! A rejection says that the bucket held less than one request at that moment. What was accepted
//! between two such moments is what was refilled, to within one, however hard we knocked.

use std::collections::VecDeque;

/// Most marks, and how long they are kept.
const MOST: usize = 30;
const SECONDS: f64 = 180.0;
/// Marks closer together say nothing about a rate.
const SHORTEST_SPAN: f64 = 0.02;

/// A moment when the bucket was empty.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: f64,
    /// Requests accepted before it.
    accepted: f64,
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: VecDeque<Mark>,
}

impl Marks {
    /// A request was rejected; so many had been accepted before it was sent.
    pub(super) fn add(&mut self, at: f64, accepted: f64) {
        // A rejection that comes late was counted as accepted by the newer marks.
        for mark in self.marks.iter_mut().filter(|mark| mark.at > at) {
            mark.accepted -= 1.0;
        }
        let place = self.marks.partition_point(|mark| mark.at < at);
        self.marks.insert(place, Mark { at, accepted });
        // Two make an estimate, however old.
        let is_old = |mark: &Mark| at - mark.at > SECONDS;
        while self.marks.len() > MOST
            || (self.marks.len() > 2 && self.marks.front().is_some_and(is_old))
        {
            self.marks.pop_front();
        }
    }

    /// Forgets all marks.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Forgets all marks but the newest.
    pub(super) fn forget(&mut self) {
        self.marks.drain(..self.marks.len().saturating_sub(1));
    }

    /// Requests accepted per second since the oldest mark.
    pub(super) fn since_first(&self, now: f64, accepted: f64) -> f64 {
        self.marks
            .front()
            .map_or(1.0, |mark| (accepted - mark.accepted).max(1.0) / (now - mark.at).max(1e-3))
    }

    /// Requests per second, and how many of them this rests on; `None` before there are two marks.
    pub(super) fn estimate(&self) -> Option<(f64, f64)> {
        let (oldest, newest) = (self.marks.front()?, self.marks.back()?);
        let (count, span) = (newest.accepted - oldest.accepted, newest.at - oldest.at);
        // High for few: what is too fast is noticed at once, what is too slow is not.
        (span > SHORTEST_SPAN).then(|| ((count + 2.0 / (1.0 + count)) / span, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of a bucket with that rate, found empty after each of these numbers of requests.
    fn marks(rate: f64, counts: &[u32]) -> Marks {
        let mut marks = Marks::default();
        let (mut accepted, mut at) = (0.0, 10.0);
        marks.add(at, accepted);
        for count in counts {
            accepted += f64::from(*count);
            at += f64::from(*count) / rate;
            marks.add(at, accepted);
        }
        marks
    }

    #[test]
    fn what_is_accepted_between_two_marks_is_the_rate() {
        assert_eq!(Marks::default().estimate(), None);
        assert_eq!(marks(5.0, &[]).estimate(), None);
        let (rate, count) = marks(5.0, &[20, 30, 25]).estimate().unwrap();
        assert!((rate / 5.0 - 1.0).abs() < 0.01, "{rate}");
        assert_eq!(count, 75.0);
    }

    #[test]
    fn a_changed_rate_makes_older_marks_forgotten() {
        let mut marks = marks(5.0, &[30, 30, 30]);
        let (mut accepted, mut at) = (90.0, 10.0 + 18.0);
        for _ in 0..3 {
            accepted += 40.0;
            at += 2.0;
            marks.add(at, accepted);
            marks.estimate();
        }
        let (rate, _) = marks.estimate().unwrap();
        assert!((rate / 20.0 - 1.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn a_late_rejection_was_not_accepted_after_all() {
        let mut marks = Marks::default();
        marks.add(1.0, 0.0);
        marks.add(11.0, 51.0);
        marks.add(10.0, 45.0);
        let (_, count) = marks.estimate().unwrap();
        assert_eq!(count, 50.0);
    }
}
