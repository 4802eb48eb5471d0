//! Permits and the futures that wait for them.

use super::PoolStopped;
use super::shared::SharedPool;
use crate::{Flight, SendOutcome, Ticket};
use bakeoff_core::ErrorKind;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The right to have one request in flight. Dropping it counts the request as dropped by the caller.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<SharedPool>,
    /// `None` once the outcome was recorded.
    flight: Option<Flight>,
    in_flight: u32,
    /// Whether the caller received the permit, so that a request may have been sent.
    is_held: bool,
}

impl Permit {
    pub(super) fn new(shared: Arc<SharedPool>, flight: Flight, in_flight: u32) -> Permit {
        Permit { shared, flight: Some(flight), in_flight, is_held: false }
    }

    pub(super) fn into_held(mut self) -> Permit {
        self.is_held = true;
        self
    }

    /// Returns the requests in flight at the time of the grant, including this one.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Ends the request. Returns whether it counts as rejected.
    pub fn end(mut self, outcome: SendOutcome) -> bool {
        self.flight.take().is_some_and(|flight| self.shared.end(flight, &outcome))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.flight.take() {
            Some(flight) if self.is_held => {
                self.shared.end(flight, &SendOutcome::Dropped);
            }
            Some(flight) => self.shared.withdraw(flight),
            None => {}
        }
    }
}

/// An entry in the queue; cancelled on drop.
#[derive(Debug)]
pub(super) struct PermitWaiter {
    shared: Arc<SharedPool>,
    /// `None` once the permit was granted.
    ticket: Option<Ticket>,
    receiver: oneshot::Receiver<Permit>,
}

impl PermitWaiter {
    pub(super) fn new(
        shared: Arc<SharedPool>,
        ticket: Ticket,
        receiver: oneshot::Receiver<Permit>,
    ) -> PermitWaiter {
        PermitWaiter { shared, ticket: Some(ticket), receiver }
    }

    pub(super) async fn granted(mut self) -> Result<Permit, PoolStopped> {
        let granted = (&mut self.receiver).await;
        self.ticket = None;
        // A permit that was granted just before the pool was stopped is not used.
        match (self.shared.stopped(), granted) {
            (None, Ok(permit)) => Ok(permit.into_held()),
            (Some(stopped), _) => Err(stopped),
            (None, Err(_)) => Err(PoolStopped::new(ErrorKind::Cancelled, "the pool was dropped")),
        }
    }
}

impl Drop for PermitWaiter {
    fn drop(&mut self) {
        // A permit that is already in the channel is returned when the channel is dropped.
        if let Some(ticket) = self.ticket.take() {
            self.shared.cancel(ticket);
        }
    }
}
