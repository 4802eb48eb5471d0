//! The rate of a bucket, from the moments when it was empty.
//!
//! A rejection says that the bucket held less than one request at that moment. What was accepted
//! between two such moments is what was refilled, to within one, however hard we knocked.

use std::collections::VecDeque;

/// Most marks, and how long they are kept.
const MOST: usize = 60;
const SECONDS: f64 = 180.0;

/// A moment when the bucket was empty.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: f64,
    /// The number of the request that found it empty.
    number: u64,
    /// Requests accepted before.
    accepted: f64,
}

/// What the marks say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// Requests per second.
    pub(super) rate: f64,
    /// Requests it rests on.
    pub(super) count: f64,
    /// Older marks contradict the newest ones, and were forgotten: the rate has changed.
    pub(super) has_changed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: VecDeque<Mark>,
    bounces: u64,
}

impl Marks {
    /// A request was rejected: the one with that number, sent at that time.
    pub(super) fn add(&mut self, at: f64, number: u64) {
        // A rejection that comes late was counted as accepted by the newer marks.
        for mark in self.marks.iter_mut().filter(|mark| mark.number > number) {
            mark.accepted -= 1.0;
        }
        let before = self.marks.iter().filter(|mark| mark.number < number).count();
        let _ = before;
        let later = self.marks.iter().filter(|mark| mark.number > number).count() as u64;
        let accepted = number as f64 - (self.bounces - later) as f64;
        self.bounces += 1;
        let place = self.marks.partition_point(|mark| mark.number < number);
        self.marks.insert(place, Mark { at, number, accepted });
        while self.marks.len() > MOST
            || self.marks.front().is_some_and(|mark| at - mark.at > SECONDS)
        {
            self.marks.pop_front();
        }
    }

    /// Forgets all marks but the newest.
    pub(super) fn forget(&mut self) {
        let newest = self.marks.pop_back();
        self.marks.clear();
        self.marks.extend(newest);
    }

    /// The rate; `None` before there are two marks.
    pub(super) fn estimate(&mut self) -> Option<Estimate> {
        let newest = *self.marks.back()?;
        let (mut low, mut high) = (0.0_f64, f64::INFINITY);
        let mut best = None;
        let mut keep_from = 0;
        for (index, mark) in self.marks.iter().enumerate().rev().skip(1) {
            let (count, span) = (newest.accepted - mark.accepted, newest.at - mark.at);
            if span <= 0.0 {
                continue;
            }
            // One is exact for a bucket of requests; the root covers what tokens and other
            // tenants add.
            let error = 1.0 + 0.9 * count.max(0.0).sqrt();
            low = low.max((count - error) / span);
            high = high.min((count + error) / span);
            if low > high {
                keep_from = index + 1;
                break;
            }
            best = Some((count, span));
        }
        self.marks.drain(..keep_from);
        let (count, span) = best?;
        // High for few: what is too fast is noticed at once, what is too slow is not.
        let rate = (count + 2.0 / (1.0 + count)) / span;
        Some(Estimate { rate, count, has_changed: keep_from > 0 })
    }
}
