//! Outages and delayed retries, under every strategy.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use bakeoff_pace::{
    DelayEnd, Flight, Limits, PermitRequest, Quota, RunTag, Scheduler, SendOutcome, Strategy,
    Ticket,
};
use std::time::Duration;

const FAILED: SendOutcome = SendOutcome::Failed { retry_after: None };

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn answered() -> SendOutcome {
    SendOutcome::Answered { quota: Quota::default(), usage: None, clean: false }
}

/// Returns a pool of every strategy that allows several requests in flight.
fn pools() -> Vec<(Strategy, Scheduler)> {
    Strategy::ALL
        .into_iter()
        .map(|strategy| {
            let limits = match strategy {
                Strategy::Proactive => Limits::new(strategy).rpm(1000),
                _ => Limits::new(strategy),
            };
            (strategy, Scheduler::new(limits.policy(None).unwrap()))
        })
        .collect()
}

/// Grants permits and returns them.
fn tick(pool: &mut Scheduler, now: Duration) -> Vec<(Ticket, Flight)> {
    let mut granted = Vec::new();
    pool.on_tick(now, |ticket, flight| granted.push((ticket, flight)));
    granted
}

/// Grants permits until `until`, with all wake-ups in between.
fn pass(pool: &mut Scheduler, until: Duration) -> Vec<(Ticket, Flight)> {
    let mut granted = Vec::new();
    while let Some(at) = pool.wake_at().filter(|at| *at <= until) {
        granted.extend(tick(pool, at));
    }
    granted
}

/// Sends five requests at time zero, which all fail; each retry waits for a minute.
fn break_down(pool: &mut Scheduler) -> Vec<Ticket> {
    let mut sent = Vec::new();
    for _ in 0..5 {
        pool.on_request(Duration::ZERO, PermitRequest::default());
        sent.extend(tick(pool, Duration::ZERO));
        sent.extend(pass(pool, secs(1.0)));
    }
    assert_eq!(sent.len(), 5);
    let retry = PermitRequest::default().delayed(secs(60.0), DelayEnd::Recovery);
    let retries = sent.into_iter().map(|(_, flight)| {
        pool.on_end(secs(1.0), flight, &FAILED);
        pool.on_request(secs(1.0), retry)
    });
    let retries = retries.collect();
    assert!(tick(pool, secs(1.0)).is_empty());
    retries
}

#[test]
fn retries_test_the_provider_and_are_released_in_order() {
    for (strategy, mut pool) in pools() {
        let mut retries = break_down(&mut pool);
        // Those that waited when the outage was detected need not wait for their time any more.
        assert_eq!((pool.delayed(), pool.outage_since()), (1, Some(secs(1.0))), "{strategy}");
        let later = pool.on_request(secs(1.0), PermitRequest::default());
        assert!(tick(&mut pool, secs(1.0)).is_empty(), "{strategy}");
        let granted = pass(&mut pool, secs(20.0));
        let [(ticket, flight)] = granted[..] else { panic!("{strategy}: {granted:?}") };
        assert_eq!(ticket, retries.remove(0), "{strategy}");
        pool.on_end(secs(20.0), flight, &answered());
        assert_eq!((pool.delayed(), pool.outage_since()), (0, None), "{strategy}");
        let mut granted = tick(&mut pool, secs(20.0));
        granted.extend(pass(&mut pool, secs(30.0)));
        let tickets: Vec<Ticket> = granted.into_iter().map(|(ticket, _)| ticket).collect();
        let expected: Vec<Ticket> = retries.into_iter().chain([later]).collect();
        assert_eq!(tickets, expected, "{strategy}");
    }
}

#[test]
fn delay_for_a_rejection_outlasts_a_recovery() {
    let mut pool = Scheduler::new(Limits::fixed(10).policy(None).unwrap());
    let throttled =
        pool.on_request(secs(0.0), PermitRequest::default().delayed(secs(40.0), DelayEnd::Never));
    break_down(&mut pool);
    pool.on_request(secs(1.0), PermitRequest::default());
    tick(&mut pool, secs(1.0));
    let (_, flight) = pass(&mut pool, secs(2.0))[0];
    pool.on_end(secs(2.0), flight, &answered());
    assert_eq!(tick(&mut pool, secs(2.0)).len(), 5);
    let granted = pass(&mut pool, secs(50.0));
    assert_eq!(granted.iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>(), [throttled]);
}

#[test]
fn answers_release_rejected_requests_if_nothing_else_waits() {
    let mut pool = Scheduler::new(Limits::fixed(2).policy(None).unwrap());
    let rejected = |seconds| PermitRequest::default().delayed(secs(seconds), DelayEnd::Idle);
    let hinted = PermitRequest::default().delayed(secs(20.0), DelayEnd::Never);
    pool.on_request(secs(0.0), hinted);
    let [later, sooner] = [50.0, 40.0].map(|seconds| pool.on_request(secs(0.0), rejected(seconds)));
    let new = [(); 3].map(|()| pool.on_request(secs(0.0), PermitRequest::default()));
    let mut flights = tick(&mut pool, secs(0.0));
    let mut order = Vec::new();
    for second in 1..=5 {
        let (ticket, flight) = flights.remove(0);
        order.push(ticket);
        pool.on_end(secs(f64::from(second)), flight, &answered());
        flights.extend(tick(&mut pool, secs(f64::from(second))));
    }
    assert_eq!(order, [new[0], new[1], new[2], sooner, later]);
    assert_eq!((pool.delayed(), pool.in_flight()), (1, 0), "an announced wait is kept");
}

#[test]
fn delayed_retries_can_be_cancelled_and_end_with_the_pool() {
    let mut pool = Scheduler::new(Limits::fixed(10).policy(None).unwrap());
    let retry = |run| PermitRequest::default().run(RunTag(run)).delayed(secs(5.0), DelayEnd::Never);
    let (first, second) =
        (pool.on_request(secs(0.0), retry(0)), pool.on_request(secs(0.0), retry(1)));
    tick(&mut pool, secs(0.0));
    pool.on_cancel(first);
    assert_eq!((pool.delayed(), pool.wake_at()), (1, Some(secs(5.0))));
    assert_eq!(pool.stop("over".to_owned()), [second]);
    assert_eq!(pool.delayed(), 0);
    assert!(pass(&mut pool, secs(9.0)).is_empty());
}
