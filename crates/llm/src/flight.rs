//! Coalescing of equal calls: they run one at a time, so that the second finds the cached response of the
//! first.

use crate::cache::CacheKey;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Cacheable calls in flight, by cache key.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<CacheKey, Flight>>);

/// Calls with the same cache key.
#[derive(Debug)]
struct Flight {
    /// Admits one call at a time, in order of arrival.
    semaphore: Arc<Semaphore>,
    /// Number of calls, waiting or in flight.
    calls: usize,
}

/// Position of a call in the queue for its cache key; dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct QueueEntry<'a> {
    flights: &'a Flights,
    key: CacheKey,
    semaphore: Arc<Semaphore>,
}

/// Right to make the call for a cache key.
#[derive(Debug)]
pub(crate) struct FlightPermit<'a> {
    // Fields are dropped in order: the permit must be returned before the queue entry is removed.
    _permit: Option<OwnedSemaphorePermit>,
    _entry: QueueEntry<'a>,
}

impl Flights {
    /// Joins the queue for a cache key.
    pub(crate) fn enqueue(&self, key: CacheKey) -> QueueEntry<'_> {
        let mut flights = self.lock();
        let new = || Flight { semaphore: Arc::new(Semaphore::new(1)), calls: 0 };
        let flight = flights.entry(key).or_insert_with(new);
        flight.calls += 1;
        QueueEntry { flights: self, key, semaphore: Arc::clone(&flight.semaphore) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CacheKey, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

impl<'a> QueueEntry<'a> {
    /// Waits until earlier calls with the same key have finished.
    pub(crate) async fn acquire(self) -> FlightPermit<'a> {
        // The semaphore is never closed. If it were, equal calls would merely run concurrently.
        let permit = Arc::clone(&self.semaphore).acquire_owned().await.ok();
        FlightPermit { _permit: permit, _entry: self }
    }
}

impl Drop for QueueEntry<'_> {
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
    fn equal_calls_run_one_at_a_time_and_leave_no_entry() {
        let flights = Flights::default();
        let first = flights.enqueue(key(1)).acquire().now_or_never().unwrap();
        assert!(flights.enqueue(key(2)).acquire().now_or_never().is_some(), "different key");
        let mut second = Box::pin(flights.enqueue(key(1)).acquire());
        assert!(second.as_mut().now_or_never().is_none());
        let third = Box::pin(flights.enqueue(key(1)).acquire());
        // A dropped waiter must not block the others.
        drop(third);
        drop(first);
        let second = second.now_or_never().unwrap();
        assert!(!flights.is_empty());
        drop(second);
        assert!(flights.is_empty());
    }
}
