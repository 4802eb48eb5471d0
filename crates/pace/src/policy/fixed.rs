//! `fixed`: so many at once, whatever happens.

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
