//! When may this request go out?
//!
//! Pools and permits, the retry policy, and the reading of what providers say about waiting. No
//! HTTP here, and no clock: how long something took is passed in.

mod connections;
mod cost;
mod headers;
mod hint;
mod history;
mod policy;
mod pool;
mod queue;
mod quota;
mod retry;
mod scheduler;

pub use connections::{AdaptiveBounds, AdaptiveConnections, ConnectionsError};
pub use cost::{Cost, Dimension};
pub use headers::read_quota;
pub use hint::retry_after;
pub use history::{ChangeReason, LimitChange};
pub use policy::{
    Adaptive, AdaptiveConfig, AdaptiveConfigError, Auto, AutoConfig, Comeback, Ending, Fixed,
    Flight, Gate, Learned, Policy, Proactive, ProactiveConfig, ProactiveConfigError, Rates,
    Reactive, RetryAfter, Unpaced, View,
};
pub use pool::{Limits, Permit, Pool, PoolKey, Pools};
pub use queue::{RunTag, Ticket};
pub use quota::{Quota, Reading};
pub use retry::{RetryPolicy, Waited};
pub use scheduler::{Ask, Scheduler};
