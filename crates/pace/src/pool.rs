//! Pools and permits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What shares one quota: an account at an endpoint, and a model there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// Base URL, or `sim` for the simulated provider in this process.
    pub endpoint: String,
    /// The provider's name of the model.
    pub model: String,
    /// A hash of the API key; never the key.
    pub account: u64,
}

/// How much of a provider may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most requests in flight.
    pub connections: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 10 }
    }
}

/// All pools of a process.
#[derive(Debug, Default)]
pub struct Pools {
    pools: Mutex<HashMap<PoolKey, Arc<Pool>>>,
}

impl Pools {
    /// The pool of that key; who asks first sets its limits.
    pub fn get(&self, key: &PoolKey, limits: Limits) -> Arc<Pool> {
        // A panic elsewhere cannot leave a map of finished pools in a bad state.
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        match pools.get(key) {
            Some(pool) => Arc::clone(pool),
            None => {
                let pool = Arc::new(Pool::new(limits));
                pools.insert(key.clone(), Arc::clone(&pool));
                pool
            }
        }
    }
}

/// Grants permits in the order they are asked for, as many at a time as its window is wide.
#[derive(Debug)]
pub struct Pool {
    window: Arc<Semaphore>,
    limits: Limits,
}

impl Pool {
    /// A pool with a fixed window.
    pub fn new(limits: Limits) -> Pool {
        let width = (limits.connections.max(1) as usize).min(Semaphore::MAX_PERMITS);
        Pool { window: Arc::new(Semaphore::new(width)), limits }
    }

    /// Waits for its turn. Dropping the future leaves the queue without a trace.
    pub async fn acquire(&self) -> Permit {
        let slot = Arc::clone(&self.window).acquire_owned().await;
        // The semaphore is never closed, so there always is a slot.
        Permit { _slot: slot.ok() }
    }

    /// How many permits are out.
    pub fn in_flight(&self) -> u32 {
        self.limits.connections.saturating_sub(self.window.available_permits() as u32)
    }
}

/// The right to have one request in flight; dropping it gives it back.
#[derive(Debug)]
pub struct Permit {
    _slot: Option<OwnedSemaphorePermit>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn grants_in_order_and_never_more_than_the_window() {
        let pool = Pool::new(Limits { connections: 2 });
        let (mut first, mut second) = (pin!(pool.acquire()), pin!(pool.acquire()));
        let (mut third, mut fourth) = (pin!(pool.acquire()), pin!(pool.acquire()));
        let Poll::Ready(permit) = poll(first.as_mut()) else { panic!("the window is free") };
        let Poll::Ready(_kept) = poll(second.as_mut()) else { panic!("the window is free") };
        assert!(poll(third.as_mut()).is_pending());
        assert!(poll(fourth.as_mut()).is_pending());
        assert_eq!(pool.in_flight(), 2);
        drop(permit);
        assert!(poll(fourth.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_ready());
    }

    #[test]
    fn a_waiter_that_gives_up_leaves_no_trace() {
        let pool = Pool::new(Limits { connections: 1 });
        let Poll::Ready(permit) = poll(pin!(pool.acquire())) else { panic!("the window is free") };
        assert!(poll(pin!(pool.acquire())).is_pending());
        drop(permit);
        assert!(poll(pin!(pool.acquire())).is_ready());
        assert_eq!(pool.in_flight(), 0);
    }

    #[test]
    fn one_key_has_one_pool() {
        let pools = Pools::default();
        let key = |model: &str| PoolKey {
            endpoint: "https://api.example".to_owned(),
            model: model.to_owned(),
            account: 1,
        };
        let limits = Limits::default();
        assert!(Arc::ptr_eq(&pools.get(&key("a"), limits), &pools.get(&key("a"), limits)));
        assert!(!Arc::ptr_eq(&pools.get(&key("a"), limits), &pools.get(&key("b"), limits)));
    }
}
