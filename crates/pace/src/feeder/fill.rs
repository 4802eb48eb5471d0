//! How many items a pool can serve.

use crate::PoolSnapshot;

/// Items for a pool without a concurrency limit: memory and open files have one.
const UNLIMITED_WINDOW: u32 = 10_000;

/// The numbers of a pool's [`PoolSnapshot`] that decide how many items it can serve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolLoad {
    /// The concurrency limit; `u32::MAX` if there is none.
    pub limit: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Calls that are backing off outside of the queue.
    pub backing_off: u32,
}

impl From<&PoolSnapshot> for PoolLoad {
    fn from(snapshot: &PoolSnapshot) -> Self {
        PoolLoad {
            limit: snapshot.limit,
            in_flight: snapshot.in_flight,
            backing_off: snapshot.backing_off,
        }
    }
}

/// How many items are started for a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillRule {
    /// Items beyond the concurrency limit.
    pub reserve: u32,
    /// Whether items whose call is backing off are replaced by others, which use the limit
    /// meanwhile. At most as many as the limit are: when every call fails, a part of the items is
    /// enough to show it.
    pub replaces_backing_off: bool,
    /// Items beyond the requests in flight, even if that exceeds the concurrency limit.
    pub min_waiting: u32,
    /// Maximum number of items beyond the requests in flight, even if the limit allows more: a number,
    /// and a percentage of the requests in flight.
    pub max_waiting: u32,
    /// The percentage.
    pub max_waiting_percent: u32,
}

impl FillRule {
    /// For items that do more than wait for a request, such as trials, which prepare a workspace, run
    /// tools and are checked: as many as the concurrency limit, and four that are being prepared.
    pub const RESERVE: FillRule = FillRule {
        reserve: 4,
        replaces_backing_off: true,
        min_waiting: 0,
        max_waiting: u32::MAX,
        max_waiting_percent: 0,
    };

    /// As [`FillRule::RESERVE`], but the items follow the requests that are actually in flight: a rate
    /// may allow far fewer than the concurrency limit. It needs an update whenever the pool is hungry
    /// ([`Pool::notify_when_hungry`](crate::Pool::notify_when_hungry)).
    pub const FOLLOW: FillRule =
        FillRule { max_waiting: 16, max_waiting_percent: 50, ..FillRule::RESERVE };

    /// For items that are a single request each, such as packs of rows: as many as the concurrency
    /// limit, with 16 to 64 that wait for a permit. That is enough for the pool to find one whenever
    /// it can send, and few enough to keep the wait of a re-ask, which queues behind them, short.
    pub const QUEUE: FillRule = FillRule {
        reserve: 0,
        replaces_backing_off: false,
        min_waiting: 16,
        max_waiting: 64,
        max_waiting_percent: 0,
    };

    /// Returns the number of items that a pool with that load can serve, at least 1.
    pub fn capacity(&self, load: PoolLoad) -> usize {
        let limit = match load.limit {
            u32::MAX => UNLIMITED_WINDOW,
            limit => limit,
        };
        let replaced = if self.replaces_backing_off { load.backing_off.min(limit) } else { 0 };
        let window = u64::from(limit) + u64::from(replaced) + u64::from(self.reserve);
        let in_flight = u64::from(load.in_flight);
        let min = in_flight + u64::from(self.min_waiting);
        let share = in_flight * u64::from(self.max_waiting_percent) / 100;
        let max = in_flight + u64::from(replaced) + u64::from(self.max_waiting) + share;
        usize::try_from(window.max(min).min(max).max(1)).unwrap_or(usize::MAX)
    }
}
