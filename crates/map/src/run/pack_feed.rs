//! The rule that decides how many packs are started.
//!
//! The job starts a pack while few of its requests wait for a permit. It looks at the pool of the first
//! model, which receives the first request of every pack, and at the requests in flight in all pools.

use bakeoff_llm::{Client, Model};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum number of requests in flight or waiting for a permit.
const MAX_REQUESTS: usize = 4096;

/// Minimum and maximum number of requests waiting for a permit: enough to use every free permit at
/// once, few enough that follow-up requests do not wait long.
const WAITING_REQUESTS: RangeInclusive<usize> = 16..=64;

/// Interval at which the pools are checked for free permits while no request ends.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns whether the pools can take the requests of another pack. `requests` is the number of
/// requests that the job has in flight or waiting for a permit.
pub(super) fn pools_have_capacity(
    client: &Client,
    models: &[(String, Model)],
    requests: usize,
) -> bool {
    if requests >= MAX_REQUESTS {
        return false;
    }
    let Some((_, model)) = models.first() else { return false };
    let Ok(pool) = client.pool(model) else { return true };
    let first = pool.snapshot();
    let others = client.pools().into_iter().filter(|other| !other.ptr_eq(&pool));
    let in_flight: usize = others.map(|other| other.snapshot().in_flight as usize).sum();
    let in_flight = in_flight + first.in_flight as usize;
    let free_permits = first.limit.saturating_sub(first.in_flight) as usize;
    let waiting = requests.saturating_sub(in_flight);
    waiting < free_permits.clamp(*WAITING_REQUESTS.start(), *WAITING_REQUESTS.end())
}
