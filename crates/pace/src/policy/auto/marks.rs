//! The rate of a bucket, from the moments when it was empty.
//!
//! A rejection says that the bucket held less than one request at that moment. What was accepted
//! between two such moments is what was refilled, to within one, however hard we knocked.

use std::collections::VecDeque;

/// Most marks, and how long they are kept.
const MAX_MARKS: usize = 30;
const MARK_LIFETIME_S: f64 = 180.0;
/// RateMarks closer together say nothing about a rate.
const MIN_SPAN_S: f64 = 0.02;

/// A moment when the bucket was empty.
#[derive(Debug, Clone, Copy)]
struct RateMark {
    at: f64,
    /// Requests accepted before it.
    accepted: f64,
}

/// What the marks say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// Requests per second.
    pub(super) rate: f64,
    /// How many requests it rests on.
    pub(super) count: f64,
}

#[derive(Debug, Default)]
pub(super) struct RateMarks {
    marks: VecDeque<RateMark>,
}

impl RateMarks {
    /// A request was rejected; so many had been accepted before it was sent.
    pub(super) fn add(&mut self, at: f64, accepted: f64) {
        // A rejection that comes late was counted as accepted by the newer marks.
        for mark in self.marks.iter_mut().filter(|mark| mark.at > at) {
            mark.accepted -= 1.0;
        }
        let place = self.marks.partition_point(|mark| mark.at < at);
        self.marks.insert(place, RateMark { at, accepted });
        // Two make an estimate, however old.
        let is_old = |mark: &RateMark| at - mark.at > MARK_LIFETIME_S;
        while self.marks.len() > MAX_MARKS
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

    /// The rate; `None` before there are two marks.
    pub(super) fn estimate(&self) -> Option<Estimate> {
        let (oldest, newest) = (self.marks.front()?, self.marks.back()?);
        let span = newest.at - oldest.at;
        let count = (newest.accepted - oldest.accepted).max(0.0);
        // High for few: what is too fast is noticed at once, what is too slow is not.
        let rate = (count + 2.0 / (1.0 + count)) / span;
        (span > MIN_SPAN_S).then_some(Estimate { rate, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RateMarks of a bucket with that rate, found empty after each of these numbers of requests.
    fn marks(rate: f64, counts: &[u32]) -> RateMarks {
        let mut marks = RateMarks::default();
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
        assert_eq!(RateMarks::default().estimate(), None);
        assert_eq!(marks(5.0, &[]).estimate(), None);
        let estimate = marks(5.0, &[20, 30, 25]).estimate().unwrap();
        assert!((estimate.rate / 5.0 - 1.0).abs() < 0.01, "{estimate:?}");
        assert_eq!(estimate.count, 75.0);
    }

    #[test]
    fn old_marks_are_forgotten() {
        let mut marks = marks(5.0, &[30; MAX_MARKS]);
        let at = 10.0 + 6.0 * MAX_MARKS as f64;
        let mut accepted = 30.0 * MAX_MARKS as f64;
        for number in 1..=MAX_MARKS {
            accepted += 40.0;
            marks.add(at + 2.0 * number as f64, accepted);
        }
        let rate = marks.estimate().unwrap().rate;
        assert!((rate / 20.0 - 1.0).abs() < 0.01, "{rate}");
        marks.forget();
        assert_eq!(marks.estimate(), None);
    }

    #[test]
    fn rejections_out_of_order_make_no_negative_rate() {
        let mut marks = RateMarks::default();
        marks.add(1.0, 5.0);
        marks.add(2.0, 3.0);
        assert_eq!(marks.estimate(), Some(Estimate { rate: 2.0, count: 0.0 }));
    }

    #[test]
    fn a_late_rejection_was_not_accepted_after_all() {
        let mut marks = RateMarks::default();
        marks.add(1.0, 0.0);
        marks.add(11.0, 51.0);
        marks.add(10.0, 45.0);
        assert_eq!(marks.estimate().unwrap().count, 50.0);
    }
}
