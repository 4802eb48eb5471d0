//! `none`: no pacing. Rejected requests come back when the retry policy says so.

use crate::{Cost, Ending, Flight, Gate, Policy, View};

/// Everything goes out at once, as far as there are connections.
#[derive(Debug, Clone, Copy)]
pub struct Unpaced {
    connections: u32,
}

impl Unpaced {
    /// So many in flight, at least one; without a bound where there is no number.
    pub fn new(connections: Option<u32>) -> Unpaced {
        Unpaced { connections: connections.map_or(u32::MAX, |connections| connections.max(1)) }
    }
}

impl Policy for Unpaced {
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
        for (connections, granted) in [(None, 1000), (Some(7), 7), (Some(0), 1)] {
            let mut pool = Scheduler::new(Box::new(Unpaced::new(connections)));
            for _ in 0..1000 {
                pool.on_ask(Ask::default());
            }
            pool.on_tick(Duration::ZERO, |_, _| {});
            assert_eq!(pool.in_flight(), granted, "{connections:?}");
            assert_eq!(pool.wake_at(), None);
        }
    }

    #[test]
    fn a_rejection_changes_nothing() {
        let mut pool = Scheduler::new(Box::new(Unpaced::new(Some(1))));
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
