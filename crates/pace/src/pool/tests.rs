use super::*;
use crate::{AdaptiveConfig, AdaptivePolicy, ChangeReason, Quota, RunTag, SendOutcome, Strategy};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

fn fixed(connections: u32) -> Pool {
    Pool::new("m", Limits::fixed(connections)).unwrap()
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn granted<T>(future: Pin<&mut impl Future<Output = Result<T, PoolStopped>>>) -> T {
    match poll(future) {
        Poll::Ready(Ok(permit)) => permit,
        Poll::Ready(Err(stopped)) => panic!("stopped: {stopped}"),
        Poll::Pending => panic!("not granted"),
    }
}

fn answered() -> SendOutcome {
    SendOutcome::Answered { quota: Quota::default(), usage: None, clean: true }
}

#[test]
fn grants_in_order_up_to_the_limit() {
    let pool = fixed(2);
    let request = || Box::pin(pool.acquire(PermitRequest::default()));
    let (first, _second) = (granted(request().as_mut()), granted(request().as_mut()));
    let (mut third, mut fourth) = (request(), request());
    assert!(poll(third.as_mut()).is_pending());
    assert!(poll(fourth.as_mut()).is_pending());
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.limit, snapshot.waiting), (2, 2, 2));
    first.end(answered());
    assert!(poll(fourth.as_mut()).is_pending());
    let third = granted(third.as_mut());
    drop(third);
    assert_eq!(granted(fourth.as_mut()).in_flight(), 2);
}

#[test]
fn cancelled_waiter_leaves_the_queue() {
    let pool = fixed(1);
    let permit = granted(pin!(pool.acquire(PermitRequest::default())));
    assert!(poll(pin!(pool.acquire(PermitRequest::default()))).is_pending());
    assert_eq!(pool.snapshot().waiting, 0);
    drop(permit);
    drop(granted(pin!(pool.acquire(PermitRequest::default()))));
    assert_eq!(pool.snapshot().in_flight, 0);
}

#[test]
fn waiter_cancelled_after_its_grant_returns_the_permit() {
    let pool = Pool::new("m", Limits::new(Strategy::Proactive).rpm(2).connections(1)).unwrap();
    let permit = granted(pin!(pool.acquire(PermitRequest::default())));
    {
        let mut waiter = pin!(pool.acquire(PermitRequest::default()));
        assert!(poll(waiter.as_mut()).is_pending());
        // Its permit is in the channel, but the waiter is not polled again.
        drop(permit);
        assert_eq!(pool.snapshot().in_flight, 1);
    }
    assert_eq!(pool.snapshot().in_flight, 0);
    // If it counted as sent, the minute would be full.
    drop(granted(pin!(pool.acquire(PermitRequest::default()))));
    assert!(poll(pin!(pool.acquire(PermitRequest::default()))).is_pending());
}

#[test]
fn cancelling_a_waiter_unblocks_those_behind_it() {
    let pool = Pool::new("m", Limits::new(Strategy::Proactive).tpm(100)).unwrap();
    let request =
        |input| PermitRequest { cost: TokenCost { input, output: 0 }, ..PermitRequest::default() };
    let _held = granted(pin!(pool.acquire(request(50))));
    let mut small = pin!(pool.acquire(request(10)));
    {
        let mut large = pin!(pool.acquire(request(90)));
        assert!(poll(large.as_mut()).is_pending());
        assert!(poll(small.as_mut()).is_pending());
    }
    granted(small);
}

#[test]
fn retry_goes_to_the_front() {
    let pool = fixed(1);
    let permit = granted(pin!(pool.acquire(PermitRequest::default())));
    let mut fresh = pin!(pool.acquire(PermitRequest::default()));
    let mut retry =
        pin!(pool.acquire(PermitRequest { is_retry: true, ..PermitRequest::default() }));
    assert!(poll(fresh.as_mut()).is_pending() && poll(retry.as_mut()).is_pending());
    drop(permit);
    assert!(poll(fresh.as_mut()).is_pending());
    granted(retry);
}

#[tokio::test(start_paused = true)]
async fn runs_alternate() {
    let pool = fixed(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for (run, count) in [(1, 6), (2, 2)] {
        for _ in 0..count {
            let (pool, order) = (pool.clone(), Arc::clone(&order));
            tasks.spawn(async move {
                let permit = pool
                    .acquire(PermitRequest { run: RunTag(run), ..PermitRequest::default() })
                    .await;
                order.lock().unwrap().push(run);
                tokio::time::sleep(Duration::from_secs(1)).await;
                permit.unwrap().end(answered());
            });
        }
        tokio::task::yield_now().await;
    }
    tasks.join_all().await;
    assert_eq!(*order.lock().unwrap(), [1, 1, 2, 1, 2, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn stop_fails_all_waiters_at_once() {
    const WAITERS: usize = 4000;
    let pool = fixed(1);
    let permit = pool.acquire(PermitRequest::default()).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..WAITERS {
        let pool = pool.clone();
        tasks.spawn(async move { pool.acquire(PermitRequest::default()).await.map(drop) });
    }
    while pool.snapshot().waiting < WAITERS {
        tokio::task::yield_now().await;
    }
    let before = Instant::now();
    pool.stop(PoolStopped::new(ErrorKind::Quota, "quota exhausted"));
    pool.stop(PoolStopped::new(ErrorKind::Quota, "another reason"));
    for result in tasks.join_all().await {
        assert_eq!(result.unwrap_err().to_string(), "quota exhausted");
    }
    assert_eq!(Instant::now(), before);
    permit.end(answered());
    assert!(pool.acquire(PermitRequest::default()).await.is_err());
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.waiting), (0, 0));
    assert_eq!(snapshot.stopped.as_deref(), Some("quota exhausted"));
}

#[test]
fn permit_granted_before_the_stop_is_not_used() {
    let pool = fixed(1);
    let permit = granted(pin!(pool.acquire(PermitRequest::default())));
    let mut waiter = pin!(pool.acquire(PermitRequest::default()));
    assert!(poll(waiter.as_mut()).is_pending());
    drop(permit);
    pool.stop(PoolStopped::new(ErrorKind::Quota, "over"));
    assert!(matches!(poll(waiter), Poll::Ready(Err(_))));
    assert_eq!(pool.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn timer_wakes_delayed_waiters() {
    let pool = Pool::new("m", Limits::new(Strategy::Proactive).rpm(10)).unwrap();
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..35 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let permit = pool.acquire(PermitRequest::default()).await.unwrap();
            let at = Instant::now() - started;
            permit.end(answered());
            at.as_secs()
        });
    }
    let mut seconds = tasks.join_all().await;
    seconds.sort_unstable();
    let minutes: Vec<u64> = seconds.iter().map(|second| second / 60).collect();
    let expected: Vec<u64> = (0..35).map(|number| number / 10).collect();
    assert_eq!(minutes, expected);
    assert_eq!(pool.snapshot().answered, 35);
}

#[tokio::test(start_paused = true)]
async fn timer_follows_an_earlier_time() {
    let pool = Pool::new("m", Limits::new(Strategy::Proactive).tpm(100)).unwrap();
    let request =
        |input| PermitRequest { cost: TokenCost { input, output: 0 }, ..PermitRequest::default() };
    let early = pool.acquire(request(30)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let late = pool.acquire(request(70)).await.unwrap();
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire(request(100)).await.map(|_| Instant::now()) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    // It would wait for both until 82 s; the second cost nothing, so it waits until 62 s.
    let before = Instant::now() - Duration::from_secs(21);
    late.end(SendOutcome::Refused);
    let at = waiter.await.unwrap().unwrap();
    assert_eq!((at - before).as_secs(), 62);
    drop(early);
}

#[tokio::test(start_paused = true)]
async fn timer_ends_with_its_pool() {
    let pool = Pool::new("m", Limits::new(Strategy::Proactive).rpm(1)).unwrap();
    let permit = pool.acquire(PermitRequest::default()).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(1), pool.acquire(PermitRequest::default()))
            .await
            .is_err()
    );
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(alive(), 1);
    drop((pool, permit));
    tokio::task::yield_now().await;
    assert_eq!(alive(), 0);
}

#[test]
fn timer_restarts_on_another_runtime() {
    let pool = Pool::new("m", Limits::new(Strategy::Proactive).rpm(1)).unwrap();
    for minute in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let permit = pool.acquire(PermitRequest::default());
            let in_time = tokio::time::timeout(Duration::from_secs(600), permit).await;
            assert!(in_time.is_ok(), "minute {minute}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn limit_changes_carry_model_and_time() {
    let pool =
        Pool::with_policy("some-model", Box::new(AdaptivePolicy::new(AdaptiveConfig::default())));
    let before = std::time::SystemTime::now();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let permit = pool.acquire(PermitRequest::default()).await.unwrap();
    permit.end(SendOutcome::Rejected { quota: Quota::default() });
    let changes = pool.take_changes();
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].change.old_limit, changes[0].change.new_limit), (20, 16));
    assert_eq!(changes[0].change.reason, ChangeReason::RateLimit);
    assert_eq!(&*changes[0].model, "some-model");
    let seconds = changes[0].time.duration_since(before).unwrap().as_secs();
    assert!((99..=101).contains(&seconds), "{seconds}");
    assert!(pool.take_changes().is_empty());
    assert_eq!(pool.snapshot().rejected, 1);
}

#[test]
fn estimate_uses_the_mean_output_capped_by_the_maximum() {
    let pool = fixed(1);
    assert_eq!(pool.estimate(7, None), TokenCost { input: 7, output: 200 });
    let usage = Some(TokenCost { input: 7, output: 50 });
    let answer = SendOutcome::Answered { quota: Quota::default(), usage, clean: true };
    granted(pin!(pool.acquire(PermitRequest::default()))).end(answer);
    assert_eq!(pool.estimate(7, None).output, 50);
    assert_eq!(pool.estimate(7, Some(9000)).output, 50);
    assert_eq!(pool.estimate(7, Some(10)).output, 10);
}

#[test]
fn each_key_has_one_pool_with_its_first_limits() {
    let pools = Pools::with_learned(|key| (key.model == "a").then_some(LearnedLimit::Cap(3)));
    let key = |model: &str| PoolKey {
        endpoint: "https://api.example".to_owned(),
        model: model.to_owned(),
        account: 1,
    };
    let get =
        |model: &str, connections| pools.get(&key(model), Limits::fixed(connections)).unwrap();
    let _permit = granted(pin!(get("a", 5).acquire(PermitRequest::default())));
    assert_eq!((get("a", 7).limit(), get("a", 7).snapshot().in_flight), (5, 1));
    assert_eq!((get("b", 7).limit(), get("b", 7).snapshot().in_flight), (7, 0));
    assert!(pools.get(&key("c"), Limits::fixed(0)).is_err());
    let names: Vec<String> = pools.all().iter().map(|(_, pool)| pool.model().to_owned()).collect();
    assert_eq!(names, ["a", "b"]);
}
