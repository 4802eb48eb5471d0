//! When may this request go out?
//!
//! Pools and permits, the retry policy, and the reading of what providers say about waiting. No
//! HTTP here, and no clock: how long something took is passed in.

mod hint;
mod pool;
mod retry;

pub use hint::retry_after;
pub use pool::{Limits, Permit, Pool, PoolKey, Pools};
pub use retry::{RetryPolicy, Waited};
