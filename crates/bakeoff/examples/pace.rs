//! Paces HTTP calls of your own: acquire a permit, send, report the outcome.
//!
//! `cargo run --example pace --no-default-features --features pace`

#![allow(clippy::print_stdout, reason = "the output of the example")]

use bakeoff::pace::{Limits, PermitRequest, Pool, Quota, RetryMode, SendOutcome};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const REQUESTS: usize = 400;

/// An API that rejects the ninth concurrent request. The pool does not know this limit.
///
/// With a real HTTP client, pass the rate-limit headers of the response to `bakeoff::pace::read_quota`:
/// `read_quota(|name| response.headers().get(name)?.to_str().ok(), SystemTime::now())`.
async fn send() -> u16 {
    static IN_FLIGHT: AtomicU32 = AtomicU32::new(0);
    let is_accepted = IN_FLIGHT.fetch_add(1, Ordering::SeqCst) < 8;
    if is_accepted {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
    if is_accepted { 200 } else { 429 }
}

/// Sends one request and retries it while it is throttled.
async fn call(pool: &Pool) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    let mut retries = 0;
    loop {
        // Waits until the pool allows another request. A dropped permit returns to the pool.
        let request = PermitRequest::default().retry(retries > 0);
        let permit = pool.acquire(request).await?;
        match send().await {
            200 => {
                let (quota, clean) = (Quota::default(), retries == 0);
                permit.end(SendOutcome::Answered { quota, usage: None, clean });
                return Ok(retries);
            }
            429 => {
                permit.end(SendOutcome::Rejected { quota: Quota::default() });
            }
            status => {
                permit.end(SendOutcome::Refused);
                return Err(format!("status {status}").into());
            }
        }
        retries += 1;
        // A call that waits holds no permit.
        match pool.retry_mode() {
            RetryMode::Queue => {}
            RetryMode::After(wait) => tokio::time::sleep(wait).await,
            RetryMode::Backoff => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // The default strategy finds the limit by itself. `Limits::fixed(8)` is a constant concurrency limit.
    let pool = Pool::new("my-api", Limits::default())?;
    let start = std::time::Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..REQUESTS {
        let pool = pool.clone();
        calls.spawn(async move { call(&pool).await });
    }
    let mut retries = 0;
    while let Some(finished) = calls.join_next().await {
        retries += finished??;
    }
    println!("{REQUESTS} requests in {:.1} s, {retries} retries", start.elapsed().as_secs_f64());
    println!("concurrency limit at the end: {}", pool.limit());
    Ok(())
}
