//! `fixed`: a constant concurrency limit; `none` is the same without a limit. Rejected requests are
//! retried by the retry policy.

use crate::{BindingLimit, Flight, Gate, Policy, PoolView, SendOutcome, TokenCost};

/// The strategies `fixed` and `none`.
#[derive(Debug, Clone, Copy)]
pub struct FixedPolicy {
    connections: u32,
}

impl FixedPolicy {
    /// Creates a strategy with that many requests in flight, at least one.
    pub fn new(connections: u32) -> FixedPolicy {
        FixedPolicy { connections: connections.max(1) }
    }

    /// Creates a strategy without a limit.
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

    fn set_max_connections(&mut self, max: u32) {
        self.connections = max.max(1);
    }

    fn binding(&self) -> Option<BindingLimit> {
        (self.connections < u32::MAX).then_some(BindingLimit::ConfiguredCap(self.connections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PermitRequest, Quota, RetryMode, Scheduler};
    use std::time::Duration;

    #[test]
    fn requests_are_sent_at_once_up_to_the_limit() {
        for (policy, granted) in
            [(FixedPolicy::unbounded(), 1000), (FixedPolicy::new(7), 7), (FixedPolicy::new(0), 1)]
        {
            let mut pool = Scheduler::new(Box::new(policy));
            for _ in 0..1000 {
                pool.on_request(Duration::ZERO, PermitRequest::default());
            }
            pool.on_tick(Duration::ZERO, |_, _| {});
            assert_eq!(pool.in_flight(), granted, "{policy:?}");
            assert_eq!(pool.wake_at(), None);
        }
    }

    #[test]
    fn rejection_leaves_the_limit_unchanged() {
        let mut pool = Scheduler::new(Box::new(FixedPolicy::new(1)));
        for _ in 0..100 {
            pool.on_request(Duration::ZERO, PermitRequest::default());
            let mut granted = None;
            pool.on_tick(Duration::ZERO, |_, flight| granted = Some(flight));
            let quota = Quota { retry_after: Some(Duration::from_secs(60)), ..Quota::default() };
            pool.on_end(Duration::ZERO, granted.unwrap(), &SendOutcome::Rejected { quota });
            assert_eq!(pool.limit(), 1);
            assert_eq!(pool.retry_mode(Duration::ZERO), RetryMode::Backoff);
        }
    }
}
