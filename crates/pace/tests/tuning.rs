//! Changes of limits while a pool is in use.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use bakeoff_pace::{
    ChangeReason, LimitTuning, Limits, PermitRequest, Quota, Scheduler, SendOutcome, Strategy,
};
use std::time::Duration;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn answered() -> SendOutcome {
    SendOutcome::Answered { quota: Quota::default(), usage: None, clean: true }
}

/// Returns a pool with a thousand waiting requests.
fn pool(limits: Limits) -> Scheduler {
    let mut pool = Scheduler::new(limits.policy(None).unwrap());
    for _ in 0..1000 {
        pool.on_request(Duration::ZERO, PermitRequest::default());
    }
    pool
}

/// Grants what is allowed until `until`, and returns the number of grants.
fn run_until(pool: &mut Scheduler, until: Duration) -> usize {
    let mut granted = 0;
    pool.on_tick(pool.wake_at().unwrap_or_default().min(until), |_, _| granted += 1);
    while let Some(at) = pool.wake_at().filter(|at| *at <= until) {
        pool.on_tick(at, |_, _| granted += 1);
    }
    granted
}

#[test]
fn maximum_can_be_raised_and_lowered_under_every_strategy() {
    for strategy in Strategy::ALL {
        let limits = match strategy {
            Strategy::Proactive => Limits::new(strategy).rpm(100_000).connections(3),
            _ => Limits::new(strategy).connections(3),
        };
        let mut pool = pool(limits);
        run_until(&mut pool, secs(5));
        assert_eq!(pool.in_flight(), 3, "{strategy}");
        pool.take_changes();
        pool.tune(secs(5), LimitTuning { max_connections: Some(9), ..LimitTuning::default() });
        if strategy != Strategy::Adaptive {
            run_until(&mut pool, secs(10));
            assert_eq!(pool.in_flight(), 9, "{strategy}");
        }
        let before = pool.limit();
        pool.tune(secs(10), LimitTuning { max_connections: Some(2), ..LimitTuning::default() });
        let in_flight = pool.in_flight();
        assert_eq!(run_until(&mut pool, secs(20)), 0, "{strategy}");
        assert_eq!(pool.in_flight(), in_flight, "requests in flight are not affected");
        let changes = pool.take_changes();
        let last = changes.last().unwrap();
        assert_eq!(
            (last.old_limit, last.new_limit, last.reason),
            (before, 2, ChangeReason::Manual)
        );
    }
}

#[test]
fn rate_can_be_set_under_every_strategy() {
    for strategy in Strategy::ALL {
        let limits = match strategy {
            Strategy::Proactive => Limits::new(strategy).rpm(100_000),
            _ => Limits::new(strategy),
        };
        let mut pool = Scheduler::new(limits.connections(500).policy(None).unwrap());
        pool.tune(secs(0), LimitTuning { rpm: Some(60), ..LimitTuning::default() });
        let mut flights = Vec::new();
        let mut sent = 0;
        for second in 0..600 {
            pool.on_request(secs(second), PermitRequest::default());
            pool.on_request(secs(second), PermitRequest::default());
            pool.on_tick(secs(second), |_, flight| flights.push(flight));
            sent += flights.len();
            for flight in flights.drain(..) {
                pool.on_end(secs(second), flight, &answered());
            }
        }
        assert!((560..=620).contains(&sent), "{strategy}: {sent}");
        assert_eq!(pool.take_changes()[0].rpm, Some(60), "{strategy}");
    }
}

#[test]
fn pause_sends_nothing_until_it_ends() {
    let mut pool = pool(Limits::fixed(5));
    let mut flights = Vec::new();
    pool.on_tick(secs(0), |_, flight| flights.push(flight));
    pool.tune(secs(1), LimitTuning { paused: Some(true), ..LimitTuning::default() });
    pool.on_end(secs(1), flights[0], &answered());
    assert_eq!(run_until(&mut pool, secs(1)), 0);
    assert_eq!((pool.limit(), pool.in_flight(), pool.is_paused()), (0, 4, true));
    pool.tune(secs(2), LimitTuning { max_connections: Some(7), ..LimitTuning::default() });
    assert!(pool.is_paused(), "another change does not end the pause");
    pool.tune(secs(3), LimitTuning { paused: Some(false), ..LimitTuning::default() });
    assert_eq!(run_until(&mut pool, secs(3)), 3);
    let limits: Vec<_> =
        pool.take_changes().iter().map(|change| (change.old_limit, change.new_limit)).collect();
    assert_eq!(limits, [(5, 0), (0, 0), (0, 7)]);
}
