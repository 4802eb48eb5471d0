//! The feeder of a run or a search: one lane per target, with the pools of its models.

use bakeoff_llm::Client;
use bakeoff_pace::{Feeder, FillRule, LaneConfig, Pool, PoolIndex};
use bakeoff_suite::{AgentSettings, Suite, TargetKind};
use std::collections::BTreeMap;

/// Concurrent trials per core of a model whose tools start programs.
const AGENTS_PER_CORE: usize = 4;

/// A feeder whose lanes are the targets of a suite.
pub(crate) struct TargetFeeder {
    pub(crate) feeder: Feeder,
    /// The pools of the feeder, in its order.
    pub(crate) pools: Vec<Pool>,
}

impl TargetFeeder {
    /// Adds a lane for each target, in the order of the suite.
    pub(crate) fn new(suite: &Suite, client: &Client, rule: FillRule) -> TargetFeeder {
        let cores = available_cores();
        let parallel = suite.settings.parallel.map(|parallel| parallel as usize);
        let mut feeder = Feeder::new(parallel.unwrap_or(usize::MAX));
        let programs = feeder.add_group(parallel.unwrap_or(cores));
        let mut pools: Vec<Pool> = Vec::new();
        let mut services = BTreeMap::new();
        for target in &suite.targets {
            let mut bounds = LaneConfig::default();
            // With invalid limits there is no pool, and every call fails immediately.
            let models = target.models();
            for pool in models.iter().filter_map(|model| client.pool(&model.model).ok()) {
                let known = pools.iter().position(|known| known.ptr_eq(&pool)).map(PoolIndex);
                let index = known.unwrap_or_else(|| {
                    pools.push(pool);
                    feeder.add_pool(rule)
                });
                bounds.pools.push(index);
            }
            bounds.max_started = match &target.kind {
                TargetKind::Service(service) => {
                    // All combinations of roles send to the same service.
                    let group = services.entry(target.base());
                    let add = || feeder.add_group(service.connections);
                    bounds.groups.push(*group.or_insert_with(add));
                    usize::MAX
                }
                // They mostly wait for their model, but take memory meanwhile.
                _ if target.agent().is_some_and(AgentSettings::starts_programs) => {
                    parallel.unwrap_or(cores.saturating_mul(AGENTS_PER_CORE))
                }
                _ => usize::MAX,
            };
            bounds.groups.extend(target.is_program().then_some(programs));
            feeder.add_lane(bounds);
        }
        TargetFeeder { feeder, pools }
    }
}

/// Returns the number of cores that this process can use.
pub(crate) fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
