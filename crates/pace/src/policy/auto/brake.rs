//! The brake: whatever we believe, a provider that rejects a third of what we send is not
//! stormed. It bounds the damage of a wrong hypothesis.

use std::collections::VecDeque;

/// How far back the accepted rate is measured.
const SECONDS: f64 = 3.0;
/// How much one outcome counts, and which share of rejections is too much.
const SHARE: f64 = 0.05;
const TOO_MUCH: f64 = 0.33;

#[derive(Debug, Default)]
pub(super) struct Brake {
    /// Times of recent admissions.
    admitted: VecDeque<f64>,
    rejections: f64,
    /// What went out before the brake was last used says nothing about it.
    since: f64,
}

impl Brake {
    pub(super) fn admitted(&mut self, now: f64) {
        self.rejections *= 1.0 - SHARE;
        self.admitted.push_back(now);
        self.forget(now);
    }

    /// Returns the rate that was accepted lately, when it is time to brake.
    pub(super) fn bounced(&mut self, now: f64, sent_at: f64) -> Option<f64> {
        if sent_at < self.since {
            return None;
        }
        self.rejections += SHARE * (1.0 - self.rejections);
        if self.rejections < TOO_MUCH {
            return None;
        }
        self.rejections = 0.0;
        self.since = now;
        self.forget(now);
        Some(self.admitted.len() as f64 / SECONDS)
    }

    fn forget(&mut self, now: f64) {
        while self.admitted.front().is_some_and(|at| now - at > SECONDS) {
            self.admitted.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_rejections_is_too_much_and_a_few_are_not() {
        let mut brake = Brake::default();
        for number in 0..300 {
            let now = f64::from(number) / 10.0;
            brake.admitted(now);
            if number % 20 == 0 {
                assert_eq!(brake.bounced(now, now), None);
            }
        }
        let braked: Vec<f64> = (0..20).filter_map(|_| brake.bounced(30.0, 29.9)).collect();
        // Ten a second were let in during the last three seconds; told once, as what went out
        // before says nothing about the brake.
        assert_eq!(braked.len(), 1);
        assert!((braked[0] - 10.0).abs() < 0.5, "{braked:?}");
    }
}
