//! The rate of a bucket, estimated from the times at which it was empty.
//!
//! A rejection shows that the bucket held less than one request at that time. The number accepted
//! between two such times equals the refill to within one request, independent of the send rate.

use std::collections::VecDeque;

/// Maximum number of marks, and their lifetime.
const MAX_MARKS: usize = 30;
const MARK_LIFETIME_S: f64 = 180.0;
/// Minimum time span for an estimate.
const MIN_SPAN_S: f64 = 0.02;

/// A time at which the bucket was empty.
#[derive(Debug, Clone, Copy)]
struct RateMark {
    at: f64,
    /// Requests accepted before it.
    accepted: f64,
}

/// The estimate of the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// Requests per second.
    pub(super) rate: f64,
    /// Number of requests it is based on.
    pub(super) count: f64,
}

/// The recent marks, in order of time.
#[derive(Debug, Default)]
pub(super) struct RateMarks {
    marks: VecDeque<RateMark>,
}

impl RateMarks {
    /// Adds a rejection; `accepted` is the number accepted before it was sent.
    pub(super) fn add(&mut self, at: f64, accepted: f64) {
        // Newer marks counted a late rejection as accepted.
        for mark in self.marks.iter_mut().filter(|mark| mark.at > at) {
            mark.accepted -= 1.0;
        }
        let index = self.marks.partition_point(|mark| mark.at < at);
        self.marks.insert(index, RateMark { at, accepted });
        // Two marks are kept at any age, because an estimate needs two.
        let is_old = |mark: &RateMark| at - mark.at > MARK_LIFETIME_S;
        while self.marks.len() > MAX_MARKS
            || (self.marks.len() > 2 && self.marks.front().is_some_and(is_old))
        {
            self.marks.pop_front();
        }
    }

    /// Removes all marks.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Removes all marks but the newest.
    pub(super) fn keep_newest(&mut self) {
        self.marks.drain(..self.marks.len().saturating_sub(1));
    }

    /// Returns the estimated rate, or `None` if there are fewer than two marks.
    pub(super) fn estimate(&self) -> Option<Estimate> {
        let (oldest, newest) = (self.marks.front()?, self.marks.back()?);
        let span = newest.at - oldest.at;
        let count = (newest.accepted - oldest.accepted).max(0.0);
        // Biased upwards for small counts: a rate that is too high is noticed at once, one that is too
        // low is not.
        let rate = (count + 2.0 / (1.0 + count)) / span;
        (span > MIN_SPAN_S).then_some(Estimate { rate, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the marks of a bucket with that rate that was empty after each of these numbers of
    /// requests.
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
    fn accepted_requests_between_marks_give_the_rate() {
        assert_eq!(RateMarks::default().estimate(), None);
        assert_eq!(marks(5.0, &[]).estimate(), None);
        let estimate = marks(5.0, &[20, 30, 25]).estimate().unwrap();
        assert!((estimate.rate / 5.0 - 1.0).abs() < 0.01, "{estimate:?}");
        assert_eq!(estimate.count, 75.0);
    }

    #[test]
    fn old_marks_are_removed() {
        let mut marks = marks(5.0, &[30; MAX_MARKS]);
        let at = 10.0 + 6.0 * MAX_MARKS as f64;
        let mut accepted = 30.0 * MAX_MARKS as f64;
        for number in 1..=MAX_MARKS {
            accepted += 40.0;
            marks.add(at + 2.0 * number as f64, accepted);
        }
        let rate = marks.estimate().unwrap().rate;
        assert!((rate / 20.0 - 1.0).abs() < 0.01, "{rate}");
        marks.keep_newest();
        assert_eq!(marks.estimate(), None);
    }

    #[test]
    fn rejections_out_of_order_give_no_negative_rate() {
        let mut marks = RateMarks::default();
        marks.add(1.0, 5.0);
        marks.add(2.0, 3.0);
        assert_eq!(marks.estimate(), Some(Estimate { rate: 2.0, count: 0.0 }));
    }

    #[test]
    fn late_rejection_corrects_newer_marks() {
        let mut marks = RateMarks::default();
        marks.add(1.0, 0.0);
        marks.add(11.0, 51.0);
        marks.add(10.0, 45.0);
        assert_eq!(marks.estimate().unwrap().count, 50.0);
    }
}
