#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
//! What holds for permits and for those who wait for them, whatever happens to either.

use bakeoff_pace::{Limits, Permit, PermitRequest, Pool, PoolStopped, RunTag, SendOutcome};
use proptest::prelude::*;
use proptest::sample::Index;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[derive(Debug, Clone)]
enum Step {
    PermitRequest {
        run: u64,
        is_retry: bool,
    },
    /// Those who wait look whether they were called.
    Look,
    /// One who waits gives up, called or not.
    GiveUp(Index),
    /// A permit is dropped, as when its task is cancelled or panics.
    Drop(Index),
    End(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_u64..3, any::<bool>()).prop_map(|(run, is_retry)| Step::PermitRequest { run, is_retry }),
        4 => Just(Step::Look),
        2 => any::<Index>().prop_map(Step::GiveUp),
        2 => any::<Index>().prop_map(Step::Drop),
        2 => any::<Index>().prop_map(Step::End),
    ];
    prop::collection::vec(step, 0..120)
}

type Waiter = Pin<Box<dyn Future<Output = Result<Permit, PoolStopped>>>>;

#[derive(Default)]
struct Crowd {
    waiters: Vec<Waiter>,
    permits: Vec<Permit>,
}

impl Crowd {
    fn take(&mut self, pool: &Pool, step: &Step) {
        match step {
            Step::PermitRequest { run, is_retry } => {
                let ask = PermitRequest {
                    run: RunTag(*run),
                    is_retry: *is_retry,
                    ..PermitRequest::default()
                };
                let pool = pool.clone();
                self.waiters.push(Box::pin(async move { pool.acquire(ask).await }));
            }
            Step::Look => self.look(),
            Step::GiveUp(which) if !self.waiters.is_empty() => {
                drop(self.waiters.remove(which.index(self.waiters.len())));
            }
            Step::Drop(which) if !self.permits.is_empty() => {
                drop(self.permits.remove(which.index(self.permits.len())));
            }
            Step::End(which) if !self.permits.is_empty() => {
                self.permits.remove(which.index(self.permits.len())).end(SendOutcome::Failed);
            }
            Step::GiveUp(_) | Step::Drop(_) | Step::End(_) => {}
        }
    }

    fn look(&mut self) {
        let mut still = Vec::new();
        for mut waiter in self.waiters.drain(..) {
            match waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(permit) => self.permits.push(permit.unwrap()),
                Poll::Pending => still.push(waiter),
            }
        }
        self.waiters = still;
    }
}

proptest! {
    #[test]
    fn every_permit_returns_and_who_gives_up_leaves_no_trace(
        connections in 1_u32..5,
        steps in steps(),
    ) {
        let pool = Pool::new("m", Limits::fixed(connections)).unwrap();
        let mut crowd = Crowd::default();
        for step in &steps {
            crowd.take(&pool, step);
            let held = u32::try_from(crowd.permits.len()).unwrap();
            let snapshot = pool.snapshot();
            prop_assert!(snapshot.in_flight <= connections, "{snapshot:?}");
            prop_assert!(snapshot.in_flight >= held, "{snapshot:?} with {held} permits");
            prop_assert!(snapshot.waiting <= crowd.waiters.len(), "{snapshot:?}");
            // Nobody waits while there is room.
            prop_assert!(snapshot.waiting == 0 || snapshot.in_flight == connections);
        }
        drop(crowd);
        let snapshot = pool.snapshot();
        prop_assert_eq!((snapshot.in_flight, snapshot.waiting), (0, 0));
        // Each of them can be had again.
        let mut crowd = Crowd::default();
        for _ in 0..connections {
            crowd.take(&pool, &Step::PermitRequest { run: 0, is_retry: false });
        }
        crowd.look();
        prop_assert_eq!(crowd.permits.len(), connections as usize);
    }
}
