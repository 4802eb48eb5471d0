//! Protection against overload: bounds the estimated rate by the measured one while much is rejected.

/// Outcomes after which the share of rejections is checked, and the share that is too high.
const OUTCOMES: f64 = 40.0;
const MAX_REJECTED_SHARE: f64 = 0.4;

/// The outcomes since the last check.
#[derive(Debug)]
pub(super) struct OverloadGuard {
    since: f64,
    admitted: f64,
    rejected: f64,
}

impl OverloadGuard {
    pub(super) fn new(now: f64) -> OverloadGuard {
        OverloadGuard { since: now, admitted: 0.0, rejected: 0.0 }
    }

    /// Counts an outcome; returns the measured rate if too much was rejected.
    pub(super) fn on_decided(&mut self, now: f64, is_rejected: bool) -> Option<f64> {
        *(if is_rejected { &mut self.rejected } else { &mut self.admitted }) += 1.0;
        let outcomes = self.admitted + self.rejected;
        if outcomes < OUTCOMES {
            return None;
        }
        let is_overload = self.rejected > MAX_REJECTED_SHARE * outcomes;
        let rate = self.admitted.max(1.0) / (now - self.since).max(1e-3);
        *self = OverloadGuard::new(now);
        is_overload.then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rejections_give_the_measured_rate() {
        let mut guard = OverloadGuard::new(10.0);
        let mut decide = |is_rejected: fn(u32) -> bool| {
            (0..40).find_map(|number| guard.on_decided(14.0, is_rejected(number)))
        };
        assert_eq!(decide(|number| number >= 24), None, "40 % are not too much");
        assert_eq!(decide(|_| false), None);
        let mut guard = OverloadGuard::new(10.0);
        let rates = (0..40).map(|number| guard.on_decided(14.0, number >= 20));
        assert_eq!(rates.last(), Some(Some(5.0)));
    }
}
