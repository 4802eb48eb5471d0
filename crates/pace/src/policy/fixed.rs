//! `fixed`: so many at once, whatever happens; `none` is the same without a bound. There is no
//! pacing: rejected requests come back when the retry policy says so.

use crate::{Cost, Ending, Flight, Gate, Policy, View};

/// A window that never changes.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    connections: u32,
}

impl Fixed {
    /// So many in flight, at least one.
    pub fn new(connections: u32) -> Fixed {
        Fixed { connections: connections.max(1) }
    }

    /// Everything at once.
    pub fn unbounded() -> Fixed {
        Fixed { connections: u32::MAX }
    }
}

impl Policy for Fixed {
    fn gate(&mut self, view: View, _cost: Cost) -> Gate {
        if view.in_flight < self.connections { Gate::Open } else { Gate::Shut }
    }

    fn sent(&mut self, _view: View, _flight: Flight, _cost: Cost) {}

    fn ended(&mut self, _view: View, _flight: Flight, _cost: Cost, _ending: &Ending) {}

    fn limit(&self) -> u32 {
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Comeback, Quota, Scheduler};
    use std::time::Duration;

    #[test]
    fn everything_goes_out_at_once_as_far_as_there_are_connections() {
        for (policy, granted) in
            [(Fixed::unbounded(), 1000), (Fixed::new(7), 7), (Fixed::new(0), 1)]
        {
            let mut pool = Scheduler::new(Box::new(policy));
            for _ in 0..1000 {
                pool.on_ask(Ask::default());
            }
            pool.on_tick(Duration::ZERO, |_, _| {});
            assert_eq!(pool.in_flight(), granted, "{policy:?}");
            assert_eq!(pool.wake_at(), None);
        }
    }

    #[test]
    fn a_rejection_changes_nothing() {
        let mut pool = Scheduler::new(Box::new(Fixed::new(1)));
        for _ in 0..100 {
            pool.on_ask(Ask::default());
            let mut granted = None;
            pool.on_tick(Duration::ZERO, |_, flight| granted = Some(flight));
            let quota = Quota { retry_after: Some(Duration::from_secs(60)), ..Quota::default() };
            pool.on_end(Duration::ZERO, granted.unwrap(), &Ending::Rejected { quota });
            assert_eq!(pool.limit(), 1);
            assert_eq!(pool.comeback(Duration::ZERO), Comeback::Backoff);
        }
    }
}
