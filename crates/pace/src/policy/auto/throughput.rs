//! The throughput of the last half minute. A rate that was never reached is an estimate, not a measured limit.

use std::collections::VecDeque;

/// Shortest measurement in seconds, and the fewest accepted requests of one.
const MIN_SECONDS: f64 = 5.0;
const MIN_ACCEPTED: f64 = 10.0;
/// Seconds for which a measurement counts.
const RETENTION_S: f64 = 30.0;
/// Ratio to the highest throughput up to which a rate counts as reached.
const MAX_RATIO: f64 = 1.25;

/// Measurements of accepted requests per second, one after the other.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    /// Start of the current measurement, and the requests accepted before it.
    start: Option<(f64, f64)>,
    /// Ends and results of earlier measurements.
    measured: VecDeque<(f64, f64)>,
}

impl Throughput {
    /// Handles an admission; `accepted` is the number of all accepted requests.
    pub(super) fn on_admitted(&mut self, now: f64, accepted: f64) {
        let (since, before) = *self.start.get_or_insert((now, accepted));
        let (seconds, count) = (now - since, accepted - before);
        if seconds < MIN_SECONDS || count < MIN_ACCEPTED {
            return;
        }
        self.start = Some((now, accepted));
        self.measured.push_back((now, count / seconds));
        while self.measured.front().is_some_and(|(end, _)| *end < now - RETENTION_S) {
            self.measured.pop_front();
        }
    }

    /// Returns whether about this rate was reached, or nothing is known.
    pub(super) fn reaches(&self, rate: f64) -> bool {
        let highest = self.measured.iter().map(|(_, rate)| *rate).reduce(f64::max);
        highest.is_none_or(|highest| rate <= MAX_RATIO * highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recently_reached_rates_count() {
        let mut throughput = Throughput::default();
        assert!(throughput.reaches(1000.0), "nothing is known");
        let mut accepted = 0.0;
        let mut admit = |throughput: &mut Throughput, from: u32, until: u32, rate: u32| {
            for number in from * rate..until * rate {
                accepted += 1.0;
                throughput.on_admitted(f64::from(number) / f64::from(rate), accepted);
            }
        };
        admit(&mut throughput, 0, 10, 40);
        assert!(throughput.reaches(48.0) && !throughput.reaches(52.0));
        admit(&mut throughput, 10, 60, 10);
        assert!(throughput.reaches(12.0) && !throughput.reaches(13.0));
    }

    #[test]
    fn slow_rates_are_measured_over_enough_requests() {
        let mut throughput = Throughput::default();
        for number in 0..10 {
            throughput.on_admitted(4.0 * f64::from(number), f64::from(number));
        }
        assert!(throughput.reaches(10.0), "nine requests tell little");
        throughput.on_admitted(40.0, 10.0);
        assert!(throughput.reaches(0.3) && !throughput.reaches(0.4));
    }
}
