//! Equal calls take turns, so that the second finds the answer of the first.

use crate::cache::CacheKey;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The calls under way whose answers will be kept.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<CacheKey, Flight>>);

/// Calls of one name.
#[derive(Debug)]
struct Flight {
    /// One of them at a time, in the order in which they came.
    turns: Arc<Semaphore>,
    /// How many there are, with the one whose turn it is.
    calls: usize,
}

/// A place in the queue; who drops it, whatever it was waiting for, leaves no trace.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    flights: &'a Flights,
    key: CacheKey,
    turns: Arc<Semaphore>,
}

/// The right to make the call of that name.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    // Given back first: fields are dropped in this order.
    _permit: Option<OwnedSemaphorePermit>,
    _place: Place<'a>,
}

impl Flights {
    /// Queues up for the call of that name.
    pub(crate) fn queue(&self, key: CacheKey) -> Place<'_> {
        let mut flights = self.lock();
        let new = || Flight { turns: Arc::new(Semaphore::new(1)), calls: 0 };
        let flight = flights.entry(key).or_insert_with(new);
        flight.calls += 1;
        Place { flights: self, key, turns: Arc::clone(&flight.turns) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CacheKey, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

impl<'a> Place<'a> {
    /// Waits for its turn.
    pub(crate) async fn turn(self) -> Turn<'a> {
        // Nobody closes the semaphore; without it everybody would go at once.
        let permit = Arc::clone(&self.turns).acquire_owned().await.ok();
        Turn { _permit: permit, _place: self }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut flight) = self.flights.lock().entry(self.key) {
            flight.get_mut().calls -= 1;
            if flight.get().calls == 0 {
                flight.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn key(trial: u32) -> CacheKey {
        CacheKey::new("run", "endpoint", b"request", trial, 0)
    }

    #[test]
    fn equal_calls_take_turns_and_leave_nothing_behind() {
        let flights = Flights::default();
        let first = flights.queue(key(1)).turn().now_or_never().unwrap();
        assert!(flights.queue(key(2)).turn().now_or_never().is_some(), "another name");
        let mut second = Box::pin(flights.queue(key(1)).turn());
        assert!(second.as_mut().now_or_never().is_none());
        let third = Box::pin(flights.queue(key(1)).turn());
        // Who gives up holds nobody up, before its turn or at it.
        drop(third);
        drop(first);
        let second = second.now_or_never().unwrap();
        assert!(!flights.is_empty());
        drop(second);
        assert!(flights.is_empty());
    }
}
