//! The right to send, and waiting for it.

use super::PoolStopped;
use super::shared::SharedPool;
use crate::{Flight, SendOutcome, Ticket};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The right to have one request in flight. Dropping it says that nobody waits for the answer any
/// more.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<SharedPool>,
    /// Absent when the end has been told.
    flight: Option<Flight>,
    in_flight: u32,
    /// Somebody has it, so that a request may have gone out.
    is_held: bool,
}

impl Permit {
    pub(super) fn new(shared: Arc<SharedPool>, flight: Flight, in_flight: u32) -> Permit {
        Permit { shared, flight: Some(flight), in_flight, is_held: false }
    }

    pub(super) fn held(mut self) -> Permit {
        self.is_held = true;
        self
    }

    /// Requests in flight when it was granted, this one among them.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The request has ended.
    pub fn end(mut self, ending: SendOutcome) {
        if let Some(flight) = self.flight.take() {
            self.shared.end(flight, &ending);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.flight.take() {
            Some(flight) if self.is_held => self.shared.end(flight, &SendOutcome::Dropped),
            Some(flight) => self.shared.withdraw(flight),
            None => {}
        }
    }
}

/// A place in the queue; given up on drop.
#[derive(Debug)]
pub(super) struct PermitWaiter {
    shared: Arc<SharedPool>,
    /// Absent when it was called.
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
        // A permit that was under way when the pool was stopped is not used any more.
        match (self.shared.stopped(), granted) {
            (None, Ok(permit)) => Ok(permit.held()),
            (Some(stopped), _) => Err(stopped),
            (None, Err(_)) => Err(PoolStopped { reason: "the pool is gone".into() }),
        }
    }
}

impl Drop for PermitWaiter {
    fn drop(&mut self) {
        // A permit that is already in the channel goes back with the channel.
        if let Some(ticket) = self.ticket.take() {
            self.shared.cancel(ticket);
        }
    }
}
