//! Concurrency limit that may change at known times.

use super::InFlight;
use crate::latency::seconds;
use crate::{ConcurrencyStep, Profile};
use std::time::Duration;

/// State of the concurrency limit.
#[derive(Debug, Default)]
pub(crate) struct Cap {
    limit: Option<u64>,
    /// Future changes, the next one last.
    steps: Vec<(Duration, u64)>,
}

impl Cap {
    pub(crate) fn new(profile: &Profile) -> Cap {
        let step = |step: &ConcurrencyStep| (seconds(step.at_s), step.concurrency);
        Cap {
            limit: profile.concurrency,
            steps: profile.concurrency_steps.iter().rev().map(step).collect(),
        }
    }

    /// Applies the changes until `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some(&(at, limit)) = self.steps.last()
            && at <= now
        {
            self.limit = Some(limit);
            self.steps.pop();
        }
    }

    /// Returns the time at which a request would be admitted, if the limit is reached. Requests in flight
    /// above a lowered limit are not cancelled.
    pub(crate) fn opens_at(&self, flight: &InFlight) -> Option<Duration> {
        let limit = self.limit?;
        let excess = flight.count().checked_sub(limit)?;
        let ends = flight.nth_end(excess);
        // Only a higher limit that comes first ends the wait earlier.
        let raised = self.steps.iter().rev().find(|(_, limit)| flight.count() < *limit);
        Some(raised.map_or(ends, |(at, _)| ends.min(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn changes_apply_at_their_time() {
        let step = |at_s, concurrency| ConcurrencyStep { at_s, concurrency };
        let mut cap = Cap::new(&Profile {
            concurrency: Some(2),
            concurrency_steps: vec![step(5.0, 3), step(8.0, 1)],
            ..Profile::default()
        });
        let mut flight = InFlight::default();
        flight.add(second(20));
        assert_eq!(cap.opens_at(&flight), None);
        flight.add(second(10));
        // The higher limit comes before the end of a request.
        assert_eq!(cap.opens_at(&flight), Some(second(5)));
        cap.advance(second(5));
        assert_eq!(cap.opens_at(&flight), None);
        flight.add(second(30));
        assert_eq!(cap.opens_at(&flight), Some(second(10)));
        // Under a limit of 1, all three requests must end.
        cap.advance(second(8));
        assert_eq!(cap.opens_at(&flight), Some(second(30)));
        assert_eq!(Cap::default().opens_at(&flight), None);
    }
}
