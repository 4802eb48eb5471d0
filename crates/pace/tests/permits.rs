#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
//! Invariants of permits and waiters under random operations.

use bakeoff_pace::{Limits, Permit, PermitRequest, Pool, PoolStopped, RunTag, SendOutcome};
use proptest::prelude::*;
use proptest::sample::Index;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[derive(Debug, Clone)]
enum PermitStep {
    Request {
        run: u64,
        is_retry: bool,
    },
    /// Polls all waiters.
    Poll,
    /// Drops a waiter, granted or not.
    Cancel(Index),
    /// Drops a permit, as when its task is cancelled or panics.
    Drop(Index),
    End(Index),
}

fn steps() -> impl Strategy<Value = Vec<PermitStep>> {
    let step = prop_oneof![
        6 => (0_u64..3, any::<bool>()).prop_map(|(run, is_retry)| PermitStep::Request { run, is_retry }),
        4 => Just(PermitStep::Poll),
        2 => any::<Index>().prop_map(PermitStep::Cancel),
        2 => any::<Index>().prop_map(PermitStep::Drop),
        2 => any::<Index>().prop_map(PermitStep::End),
    ];
    prop::collection::vec(step, 0..120)
}

type Waiter = Pin<Box<dyn Future<Output = Result<Permit, PoolStopped>>>>;

#[derive(Default)]
struct Clients {
    waiters: Vec<Waiter>,
    permits: Vec<Permit>,
}

impl Clients {
    fn apply(&mut self, pool: &Pool, step: &PermitStep) {
        match step {
            PermitStep::Request { run, is_retry } => {
                let request = PermitRequest::default().run(RunTag(*run)).retry(*is_retry);
                let pool = pool.clone();
                self.waiters.push(Box::pin(async move { pool.acquire(request).await }));
            }
            PermitStep::Poll => self.poll(),
            PermitStep::Cancel(which) if !self.waiters.is_empty() => {
                drop(self.waiters.remove(which.index(self.waiters.len())));
            }
            PermitStep::Drop(which) if !self.permits.is_empty() => {
                drop(self.permits.remove(which.index(self.permits.len())));
            }
            PermitStep::End(which) if !self.permits.is_empty() => {
                self.permits.remove(which.index(self.permits.len())).end(SendOutcome::Refused);
            }
            PermitStep::Cancel(_) | PermitStep::Drop(_) | PermitStep::End(_) => {}
        }
    }

    fn poll(&mut self) {
        let mut pending = Vec::new();
        for mut waiter in self.waiters.drain(..) {
            match waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(permit) => self.permits.push(permit.unwrap()),
                Poll::Pending => pending.push(waiter),
            }
        }
        self.waiters = pending;
    }
}

proptest! {
    #[test]
    fn permits_return_and_cancelled_waiters_leave_the_queue(
        connections in 1_u32..5,
        steps in steps(),
    ) {
        let pool = Pool::new("m", Limits::fixed(connections)).unwrap();
        let mut clients = Clients::default();
        for step in &steps {
            clients.apply(&pool, step);
            let held = u32::try_from(clients.permits.len()).unwrap();
            let snapshot = pool.snapshot();
            prop_assert!(snapshot.in_flight <= connections, "{snapshot:?}");
            prop_assert!(snapshot.in_flight >= held, "{snapshot:?} with {held} permits");
            prop_assert!(snapshot.waiting <= clients.waiters.len(), "{snapshot:?}");
            // No request waits below the limit.
            prop_assert!(snapshot.waiting == 0 || snapshot.in_flight == connections);
        }
        drop(clients);
        let snapshot = pool.snapshot();
        prop_assert_eq!((snapshot.in_flight, snapshot.waiting), (0, 0));
        // All permits can be granted again.
        let mut clients = Clients::default();
        for _ in 0..connections {
            clients.apply(&pool, &PermitStep::Request { run: 0, is_retry: false });
        }
        clients.poll();
        prop_assert_eq!(clients.permits.len(), connections as usize);
    }
}
