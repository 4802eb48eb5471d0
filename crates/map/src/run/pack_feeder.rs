//! The rule that decides how many packs are started.
//!
//! The job starts a pack while few of its requests wait for a permit. It looks at the pool of the first
//! model, which receives the first request of every pack, and at the requests in flight in all pools.

use bakeoff_llm::{Client, Model};
use bakeoff_pace::{Feeder, FillRule, LaneConfig, LaneIndex, PoolIndex};
use std::time::Duration;

/// Maximum number of requests in flight or waiting for a permit.
const MAX_REQUESTS: usize = 4096;

/// Interval at which the pools are checked for free permits while no request ends.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Counts the requests of a job and limits how many packs are started.
pub(super) struct PackFeeder {
    feeder: Feeder,
    pool: PoolIndex,
    lane: LaneIndex,
}

impl PackFeeder {
    /// Creates a feeder with one lane, through the pool of the first model.
    pub(super) fn new() -> PackFeeder {
        let mut feeder = Feeder::new(MAX_REQUESTS);
        let pool = feeder.add_pool(FillRule::QUEUE);
        let lane = feeder.add_lane(LaneConfig::new(vec![pool]));
        PackFeeder { feeder, pool, lane }
    }

    /// Returns whether the pools can take the requests of another pack.
    pub(super) fn can_start(&mut self, client: &Client, models: &[(String, Model)]) -> bool {
        let Some((_, model)) = models.first() else { return false };
        if let Ok(pool) = client.pool(model) {
            let mut load = pool.load();
            // Requests to other models are in flight beyond the limit of the first.
            for other in client.pools().iter().filter(|other| !other.ptr_eq(&pool)) {
                let in_flight = other.load().in_flight;
                load.in_flight = load.in_flight.saturating_add(in_flight);
                load.limit = load.limit.saturating_add(in_flight);
            }
            self.feeder.update(self.pool, load);
        }
        self.feeder.can_start(self.lane)
    }

    /// Counts a request as started. Requests of a started pack start even if the pools are full.
    pub(super) fn start(&mut self) {
        self.feeder.start(self.lane);
    }

    /// Counts a request as finished.
    pub(super) fn finish(&mut self) {
        self.feeder.finish(self.lane);
    }
}
