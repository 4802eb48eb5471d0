//! The start, when nothing is known: faster and faster until something gives.

use std::collections::VecDeque;

/// In flight from the first moment on.
const INITIAL_LIMIT: f64 = 20.0;
/// The rate of answers is that of so many.
const RATE_SAMPLES: usize = 32;
/// How many times that rate may be sent.
const RATE_FACTOR: f64 = 3.0;

#[derive(Debug)]
pub(super) struct Ramp {
    started: Option<f64>,
    next: f64,
    completions: f64,
    /// Times of the latest answers.
    answers: VecDeque<f64>,
}

impl Ramp {
    pub(super) fn new() -> Ramp {
        Ramp { started: None, next: 0.0, completions: 0.0, answers: VecDeque::new() }
    }

    /// Requests per second, so long after the start: what goes out before the first rejection is
    /// back is what overshoots. What is answered each second can be sent for sure.
    fn speed(&self, elapsed: f64) -> f64 {
        let by_time = (40.0 * (elapsed / 0.4).exp2()).min(150.0 + 200.0 * elapsed);
        let answered = match (self.answers.front(), self.answers.back()) {
            (Some(first), Some(last)) if self.answers.len() >= RATE_SAMPLES => {
                self.answers.len() as f64 / (last - first).max(1e-3)
            }
            _ => 0.0,
        };
        by_time.max(RATE_FACTOR * answered)
    }

    pub(super) fn next_at(&self) -> f64 {
        self.next
    }

    /// How many may be in flight.
    pub(super) fn limit(&self) -> f64 {
        INITIAL_LIMIT + self.completions
    }

    pub(super) fn on_sent(&mut self, now: f64) {
        let started = *self.started.get_or_insert(now);
        self.next = self.next.max(now - 0.1) + 1.0 / self.speed(now - started);
    }

    pub(super) fn on_answered(&mut self, now: f64) {
        self.completions += 1.0;
        self.answers.push_back(now);
        if self.answers.len() > RATE_SAMPLES {
            self.answers.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_time_and_with_answers() {
        let mut ramp = Ramp::new();
        assert_eq!(ramp.limit(), INITIAL_LIMIT);
        let mut sends = 0;
        while ramp.next_at() <= 0.1 {
            let now = ramp.next_at();
            ramp.on_sent(now);
            sends += 1;
        }
        assert!((4..=6).contains(&sends), "{sends} in the first tenth of a second");
        (0..10).for_each(|_| ramp.on_answered(0.1));
        assert_eq!(ramp.limit(), INITIAL_LIMIT + 10.0);
    }

    #[test]
    fn what_is_answered_each_second_can_be_sent() {
        let mut ramp = Ramp::new();
        ramp.on_sent(0.0);
        assert!(ramp.speed(1.0) < 400.0);
        (0..RATE_SAMPLES).for_each(|number| ramp.on_answered(number as f64 / 1000.0));
        assert!(ramp.speed(1.0) > 2500.0);
    }
}
