//! The ramp-up at the start: the rate grows until the first rejection.

use std::collections::VecDeque;

/// Requests in flight from the start.
const INITIAL_LIMIT: f64 = 20.0;
/// Growth of the limit per answer.
const GROWTH_PER_ANSWER: f64 = 2.0;
/// Number of answers over which their rate is measured.
const RATE_SAMPLES: usize = 32;
/// Send rate as a multiple of the answer rate.
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

    /// Continues at that level, because no limit was found there.
    pub(super) fn resume(now: f64, level: u32) -> Ramp {
        let completions = (f64::from(level) - INITIAL_LIMIT).max(0.0) / GROWTH_PER_ANSWER;
        Ramp { next: now, completions, ..Ramp::new() }
    }

    /// Returns the requests per second, `elapsed` seconds after the start. Requests sent before the
    /// first rejection arrives overshoot the limit, so growth over time is bounded; a multiple of the
    /// answer rate is always allowed.
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

    /// Returns the concurrency limit.
    pub(super) fn limit(&self) -> f64 {
        INITIAL_LIMIT + GROWTH_PER_ANSWER * self.completions
    }

    pub(super) fn on_sent(&mut self, now: f64) {
        let started = *self.started.get_or_insert(now);
        self.next = self.next.max(now - 0.1) + 1.0 / self.speed(now - started);
    }

    /// Handles an answer. Only answers of normal latency raise the limit.
    pub(super) fn on_answered(&mut self, now: f64, is_normal: bool) {
        if is_normal {
            self.completions += 1.0;
        }
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
    fn limit_grows_with_time_and_answers() {
        let mut ramp = Ramp::new();
        assert_eq!(ramp.limit(), INITIAL_LIMIT);
        let mut sends = 0;
        while ramp.next_at() <= 0.1 {
            let now = ramp.next_at();
            ramp.on_sent(now);
            sends += 1;
        }
        assert!((4..=6).contains(&sends), "{sends} in the first tenth of a second");
        (0..10).for_each(|_| ramp.on_answered(0.1, true));
        assert_eq!(ramp.limit(), INITIAL_LIMIT + 10.0 * GROWTH_PER_ANSWER);
    }

    #[test]
    fn answer_rate_is_always_allowed() {
        let mut ramp = Ramp::new();
        ramp.on_sent(0.0);
        assert!(ramp.speed(1.0) < 400.0);
        (0..RATE_SAMPLES).for_each(|number| ramp.on_answered(number as f64 / 1000.0, true));
        assert!(ramp.speed(1.0) > 2500.0);
    }

    #[test]
    fn resumed_ramp_starts_at_its_level() {
        let ramp = Ramp::resume(5.0, 120);
        assert_eq!((ramp.limit(), ramp.next_at()), (120.0, 5.0));
        assert_eq!(Ramp::resume(5.0, 3).limit(), INITIAL_LIMIT);
    }
}
