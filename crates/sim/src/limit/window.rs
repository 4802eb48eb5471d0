//! Fixed windows with a maximum number of requests each.

use super::{LimitLevel, wait_from_seconds};
use crate::FixedWindow;
use std::time::Duration;

/// State of the current window.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    limit: f64,
    length_s: f64,
    phase_s: f64,
    /// Requests per second of another tenant.
    foreign: f64,
    number: f64,
    used: f64,
    /// Elapsed time of the window.
    elapsed_s: f64,
}

impl Window {
    pub(crate) fn new(window: FixedWindow, foreign: f64) -> Window {
        let mut window = Window {
            limit: window.requests as f64,
            length_s: window.seconds,
            phase_s: window.phase_s,
            foreign,
            number: 0.0,
            used: 0.0,
            elapsed_s: 0.0,
        };
        window.advance(Duration::ZERO);
        window
    }

    /// Advances to the window of `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        let since = now.as_secs_f64() + self.phase_s;
        let number = (since / self.length_s).floor();
        if number > self.number {
            self.number = number;
            self.used = 0.0;
        }
        self.elapsed_s = since - self.number * self.length_s;
    }

    /// Returns the remaining requests. ForeignTraffic traffic is spread evenly over the window.
    fn remaining(&self) -> f64 {
        (self.limit - self.used - self.foreign * self.elapsed_s).floor().max(0.0)
    }

    /// Counts a request.
    pub(crate) fn take(&mut self) {
        self.used = (self.used + 1.0).min(self.limit);
    }

    /// Returns the time until the next window, if this one is exhausted.
    pub(crate) fn wait(&self) -> Option<Duration> {
        (self.remaining() < 1.0).then(|| self.reset())
    }

    fn reset(&self) -> Duration {
        wait_from_seconds(self.length_s - self.elapsed_s)
    }

    /// Returns the level for headers.
    pub(crate) fn level(&self) -> LimitLevel {
        LimitLevel { limit: self.limit, remaining: self.remaining(), reset: self.reset() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(requests: u64, foreign: f64) -> Window {
        Window::new(FixedWindow { requests, seconds: 10.0, phase_s: 3.0 }, foreign)
    }

    fn accepted_at(window: &mut Window, second: f64) -> u64 {
        window.advance(Duration::from_secs_f64(second));
        let mut accepted = 0;
        while window.wait().is_none() {
            window.take();
            accepted += 1;
        }
        accepted
    }

    #[test]
    fn windows_count_separately_and_the_first_is_shortened_by_the_phase() {
        let mut window = window(100, 0.0);
        let times = [0.0, 6.9, 7.0, 16.9, 17.1, 40.0];
        let accepted = times.map(|time| accepted_at(&mut window, time));
        assert_eq!(accepted, [100, 0, 100, 0, 100, 100]);
    }

    #[test]
    fn wait_ends_with_the_window() {
        let mut window = window(1, 0.0);
        window.take();
        let wait = window.wait().unwrap();
        assert_eq!(wait.as_millis(), 7000);
        window.advance(wait);
        assert_eq!(window.wait(), None);
    }

    #[test]
    fn foreign_traffic_reduces_the_window() {
        // By the end of a window of 10 s, foreign traffic used 20 of the 100.
        assert_eq!(accepted_at(&mut window(100, 2.0), 6.999), 80);
    }
}
