//! Rate limiting: pools and permits, the strategies behind them, the retry policy, rate-limit
//! headers, spending limits, and the feeder that keeps pools full.
//!
//! No HTTP here. All decisions are functions of a time that is passed in; only [`Pool`] reads a clock.

mod binding;
mod breaker;
mod budget;
mod connections;
mod cost;
mod delayed;
mod feeder;
mod headers;
mod hint;
mod history;
mod limits;
mod policy;
mod pool;
mod queue;
mod quota;
mod retry;
mod scheduler;
mod shedding;
mod strategy;
mod tuning;

pub use binding::BindingLimit;
pub use budget::{
    BudgetExhausted, BudgetLedger, Denial, Expense, ExpenseEstimate, ExpenseLimit, LedgerEntry,
    Reservation, SharedBudget,
};
pub use connections::{AdaptiveBounds, AdaptiveConnections, ConnectionsError};
pub use cost::{Dimension, TokenCost};
pub use delayed::DelayEnd;
pub use feeder::{Feeder, FillRule, GroupIndex, LaneConfig, LaneIndex, PoolIndex, PoolLoad};
pub use headers::read_quota;
pub use hint::retry_after;
pub use history::{ChangeReason, LimitChange};
pub use limits::{Connections, LimitOverrides, Limits, LimitsError};
pub use policy::{
    AdaptiveConfig, AdaptiveConfigError, AdaptivePolicy, AutoConfig, AutoPolicy, FixedPolicy,
    Flight, Gate, LearnedLimit, Policy, PoolView, ProactiveConfig, ProactiveConfigError,
    ProactivePolicy, Rates, ReactivePolicy, RetryAfter, RetryMode, SendOutcome,
};
pub use pool::{
    MIN_STALL_TIMEOUT, Permit, Pool, PoolChange, PoolKey, PoolSnapshot, PoolStopped, Pools,
};
pub use queue::{RunTag, Ticket};
pub use quota::{Quota, QuotaReading};
pub use retry::{FailedAttempt, RetryDelay, RetryPolicy, RetryProgress};
pub use scheduler::{PermitRequest, Scheduler};
pub use strategy::{Strategy, UnknownStrategy};
pub use tuning::LimitTuning;
