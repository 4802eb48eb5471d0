//! `fixed`: so many at once, whatever happens; `none` is the same without a bound. There is no
//! pacing: rejected requests come back when the retry policy says so.

use crate::{Flight, Gate, Policy, PoolView, SendOutcome, TokenCost};

/// A window that never changes.
#[derive(Debug, Clone, Copy)]
pub struct FixedPolicy {
    connections: u32,
}

impl FixedPolicy {
    /// So many in flight, at least one.
    pub fn new(connections: u32) -> FixedPolicy {
        FixedPolicy { connections: connections.max(1) }
    }

    /// Everything at once.
    pub fn unbounded() -> FixedPolicy {
        FixedPolicy { connections: u32::MAX }
    }
}

impl Policy for FixedPolicy {
    fn gate(&mut self, view: PoolView, _cost: TokenCost) -> Gate {
        if view.in_flight < self.connections { Gate::Open } else { Gate::Closed }
    }

    fn on_sent(&mut self, _view: PoolView, _flight: Flight, _cost: TokenCost) {}

    fn on_ended(
        &mut self,
        _view: PoolView,
        _flight: Flight,
        _cost: TokenCost,
        _ending: &SendOutcome,
    ) {
    }

    fn limit(&self) -> u32 {
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PermitRequest, Quota, RetryMode, Scheduler};
    use std::time::Duration;

    #[test]
    fn everything_goes_out_at_once_as_far_as_there_are_connections() {
        for (policy, granted) in
            [(FixedPolicy::unbounded(), 1000), (FixedPolicy::new(7), 7), (FixedPolicy::new(0), 1)]
        {
            let mut pool = Scheduler::new(Box::new(policy));
            for _ in 0..1000 {
                pool.on_request(PermitRequest::default());
            }
            pool.on_tick(Duration::ZERO, |_, _| {});
            assert_eq!(pool.in_flight(), granted, "{policy:?}");
            assert_eq!(pool.wake_at(), None);
        }
    }

    #[test]
    fn a_rejection_changes_nothing() {
        let mut pool = Scheduler::new(Box::new(FixedPolicy::new(1)));
        for _ in 0..100 {
            pool.on_request(PermitRequest::default());
            let mut granted = None;
            pool.on_tick(Duration::ZERO, |_, flight| granted = Some(flight));
            let quota = Quota { retry_after: Some(Duration::from_secs(60)), ..Quota::default() };
            pool.on_end(Duration::ZERO, granted.unwrap(), &SendOutcome::Rejected { quota });
            assert_eq!(pool.limit(), 1);
            assert_eq!(pool.retry_mode(Duration::ZERO), RetryMode::Backoff);
        }
    }
}
