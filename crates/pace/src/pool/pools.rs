//! The registry of all pools of a process.

use super::Pool;
use crate::{LearnedLimit, Limits, LimitsError};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The scope of a quota: account, endpoint and model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// Base URL, or `sim` for the simulated provider in this process.
    pub endpoint: String,
    /// The model name of the provider.
    pub model: String,
    /// A hash of the API key; never the key.
    pub account: u64,
}

/// The pools of a process, by key.
#[derive(Default)]
pub struct Pools {
    pools: Mutex<HashMap<PoolKey, Pool>>,
    recall: Option<Recall>,
}

/// Looks up the limit that an earlier run learned.
type Recall = Box<dyn Fn(&PoolKey) -> Option<LearnedLimit> + Send + Sync>;

impl Pools {
    /// Creates a registry whose pools start with the limits that earlier runs learned.
    pub fn with_learned(
        recall: impl Fn(&PoolKey) -> Option<LearnedLimit> + Send + Sync + 'static,
    ) -> Pools {
        Pools { pools: Mutex::default(), recall: Some(Box::new(recall)) }
    }

    /// Returns the pool of that key. The first call sets its limits.
    pub fn get(&self, key: &PoolKey, limits: Limits) -> Result<Pool, LimitsError> {
        // The map is consistent even after a panic elsewhere: entries are inserted complete.
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(key) {
            return Ok(pool.clone());
        }
        let learned = self.recall.as_ref().and_then(|recall| recall(key));
        let pool = Pool::with_learned(&key.model, limits, learned)?;
        pools.insert(key.clone(), pool.clone());
        Ok(pool)
    }

    /// Returns all pools, sorted by model.
    pub fn all(&self) -> Vec<(PoolKey, Pool)> {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = pools.iter().map(|(key, pool)| (key.clone(), pool.clone())).collect();
        drop(pools);
        let name = |key: &PoolKey| (key.model.clone(), key.endpoint.clone(), key.account);
        all.sort_by_cached_key(|(key, _)| name(key));
        all
    }
}

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pools").field("pools", &self.pools).finish_non_exhaustive()
    }
}
