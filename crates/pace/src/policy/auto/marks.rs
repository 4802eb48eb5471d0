//! The rate of a bucket, from the moments when it was empty.
//!
//! A rejection says that the bucket held less than one request at that moment. What was accepted
//! between two such moments is what was refilled, to within one, however hard we knocked.

use std::collections::VecDeque;

/// Most marks, and how long they are kept.
const MOST: usize = 60;
const SECONDS: f64 = 180.0;
/// Marks closer together say nothing about a rate.
const SHORTEST_SPAN: f64 = 0.02;
/// Cycles from mark to mark before the unit is judged.
const CYCLES: f64 = 5.0;

/// How much was accepted, in both units that limits have.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) requests: f64,
    pub(super) tokens: f64,
}

impl Amount {
    fn of(self, unit: Unit) -> f64 {
        match unit {
            Unit::Requests => self.requests,
            Unit::Tokens { mean } => self.tokens / mean,
        }
    }

    pub(super) fn subtract(&mut self, tokens: f64) {
        self.requests -= 1.0;
        self.tokens -= tokens;
    }
}

/// What the bucket counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Requests,
    /// Tokens, in requests of mean size.
    Tokens {
        mean: f64,
    },
}

impl Unit {
    /// How much a request of so many tokens takes.
    pub(super) fn weight(self, tokens: f64) -> f64 {
        match self {
            Unit::Requests => 1.0,
            Unit::Tokens { mean } => tokens / mean,
        }
    }
}

/// A moment when the bucket was empty.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: f64,
    accepted: Amount,
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

#[derive(Debug)]
pub(super) struct Marks {
    marks: VecDeque<Mark>,
    unit: Unit,
}

impl Marks {
    pub(super) fn new() -> Marks {
        Marks { marks: VecDeque::new(), unit: Unit::Requests }
    }

    pub(super) fn unit(&self) -> Unit {
        self.unit
    }

    /// A request of so many tokens was rejected; so much had been accepted before it was sent.
    pub(super) fn add(&mut self, at: f64, accepted: Amount, tokens: f64) {
        // A rejection that comes late was counted as accepted by the newer marks.
        for mark in self.marks.iter_mut().filter(|mark| mark.at > at) {
            mark.accepted.subtract(tokens);
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
        self.choose_unit();
    }

    /// The unit in which what is accepted per time varies less from one mark to the next.
    fn choose_unit(&mut self) {
        let Some((first, last)) = self.marks.front().zip(self.marks.back()) else { return };
        let requests = last.accepted.requests - first.accepted.requests;
        let mean = (last.accepted.tokens - first.accepted.tokens) / requests.max(1.0);
        let mut logs = [(0.0, 0.0); 2];
        let mut cycles = 0.0;
        for (one, two) in self.marks.iter().zip(self.marks.iter().skip(1)) {
            let amount = two.accepted.requests - one.accepted.requests;
            let tokens = (two.accepted.tokens - one.accepted.tokens) / mean;
            let span = two.at - one.at;
            if amount >= 2.0 && tokens > 0.0 && span > 0.0 {
                cycles += 1.0;
                for (sums, amount) in logs.iter_mut().zip([amount, tokens]) {
                    let log = (amount / span).ln();
                    sums.0 += log;
                    sums.1 += log * log;
                }
            }
        }
        if cycles < CYCLES {
            return;
        }
        let [by_requests, by_tokens] =
            logs.map(|(sum, squares)| (squares / cycles - (sum / cycles).powi(2)).max(0.0));
        self.unit = match self.unit {
            // Where requests explain it well enough, nothing else is needed.
            Unit::Requests if by_requests > 0.01 && by_tokens < 0.6 * by_requests => {
                Unit::Tokens { mean }
            }
            Unit::Tokens { .. } if by_tokens < by_requests => Unit::Tokens { mean },
            _ => Unit::Requests,
        };
    }

    /// Forgets all marks.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Forgets all marks but the newest.
    pub(super) fn forget(&mut self) {
        let newest = self.marks.pop_back();
        self.marks.clear();
        self.marks.extend(newest);
    }

    /// Requests accepted per second since the oldest mark.
    pub(super) fn since_first(&self, now: f64, accepted: f64) -> f64 {
        self.marks.front().map_or(1.0, |mark| {
            (accepted - mark.accepted.requests).max(1.0) / (now - mark.at).max(1e-3)
        })
    }

    /// The rate; `None` before there are two marks.
    pub(super) fn estimate(&mut self) -> Option<Estimate> {
        let newest = *self.marks.back()?;
        let (mut low, mut high) = (0.0_f64, f64::INFINITY);
        let mut best = None;
        let mut keep_from = 0;
        for (index, mark) in self.marks.iter().enumerate().rev().skip(1) {
            let count = newest.accepted.of(self.unit) - mark.accepted.of(self.unit);
            let span = newest.at - mark.at;
            if span < SHORTEST_SPAN {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of a bucket with that rate, found empty after each of these numbers of requests.
    fn marks(rate: f64, counts: &[u32]) -> Marks {
        let mut marks = Marks::new();
        let (mut accepted, mut at) = (Amount::default(), 10.0);
        marks.add(at, accepted, 1.0);
        for count in counts {
            accepted.requests += f64::from(*count);
            accepted.tokens += f64::from(*count);
            at += f64::from(*count) / rate;
            marks.add(at, accepted, 1.0);
        }
        marks
    }

    #[test]
    fn what_is_accepted_between_two_marks_is_the_rate() {
        assert_eq!(Marks::new().estimate(), None);
        assert_eq!(marks(5.0, &[]).estimate(), None);
        let estimate = marks(5.0, &[20, 30, 25]).estimate().unwrap();
        assert!((estimate.rate / 5.0 - 1.0).abs() < 0.01, "{estimate:?}");
        assert_eq!((estimate.count, estimate.has_changed), (75.0, false));
    }

    #[test]
    fn a_changed_rate_makes_older_marks_forgotten() {
        let mut marks = marks(5.0, &[30, 30, 30]);
        let (mut accepted, mut at) = (Amount { requests: 90.0, tokens: 90.0 }, 10.0 + 18.0);
        for _ in 0..3 {
            accepted.requests += 40.0;
            at += 2.0;
            marks.add(at, accepted, 1.0);
            marks.estimate();
        }
        let estimate = marks.estimate().unwrap();
        assert!((estimate.rate / 20.0 - 1.0).abs() < 0.1, "{estimate:?}");
    }

    #[test]
    fn a_late_rejection_was_not_accepted_after_all() {
        let mut marks = Marks::new();
        marks.add(1.0, Amount::default(), 1.0);
        marks.add(11.0, Amount { requests: 51.0, tokens: 51.0 }, 1.0);
        marks.add(10.0, Amount { requests: 45.0, tokens: 45.0 }, 1.0);
        let estimate = marks.estimate().unwrap();
        assert_eq!(estimate.count, 50.0);
    }

    #[test]
    fn tokens_are_the_unit_where_they_explain_more() {
        let mut marks = Marks::new();
        let (mut accepted, mut at) = (Amount::default(), 0.0);
        assert_eq!(marks.unit(), Unit::Requests);
        // A thousand tokens a second, in requests of very different sizes.
        for size in [100.0, 900.0, 300.0, 2000.0, 150.0, 700.0, 1200.0, 90.0] {
            marks.add(at, accepted, size);
            accepted.requests += 10.0;
            accepted.tokens += 10.0 * size;
            at += 10.0 * size / 1000.0;
        }
        assert!(matches!(marks.unit(), Unit::Tokens { .. }));
        let unit = marks.unit();
        assert!((unit.weight(2000.0) / unit.weight(1000.0) - 2.0).abs() < 1e-9);
    }
}
