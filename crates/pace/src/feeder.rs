//! Chooses which items to start so that pools stay full.
//!
//! An *item* is a unit of work that sends requests: a trial, a cell of a search, a pack of rows. A
//! *lane* is a source of items that use the same pools. Every started item takes memory, and often
//! files or processes, so items are not started all at once. The [`Feeder`] keeps as many started as
//! the pools can serve, plus a reserve that is ready when a request ends.

mod fill;
#[cfg(test)]
mod tests;

pub use fill::{FillRule, PoolLoad};

/// One item, in the units in which pools count: 2520 = lcm(1..=10), so that shares in up to ten
/// pools are exact.
const ITEM_UNITS: usize = 2520;

/// A pool of a feeder, numbered from 0 in the order of [`Feeder::add_pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolIndex(pub usize);

/// A group of lanes with a common maximum, numbered from 0 in the order of [`Feeder::add_group`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex(pub usize);

/// A lane of a feeder, numbered from 0 in the order of [`Feeder::add_lane`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneIndex(pub usize);

/// The bounds of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneConfig {
    /// The pools that its items send requests through, one after the other.
    pub pools: Vec<PoolIndex>,
    /// The groups it belongs to.
    pub groups: Vec<GroupIndex>,
    /// Maximum number of its items at once.
    pub max_started: usize,
}

impl LaneConfig {
    /// Creates the bounds of a lane whose items send requests through these pools.
    pub fn new(pools: Vec<PoolIndex>) -> LaneConfig {
        LaneConfig { pools, ..LaneConfig::default() }
    }
}

impl Default for LaneConfig {
    /// No bound of its own.
    fn default() -> Self {
        LaneConfig { pools: Vec::new(), groups: Vec::new(), max_started: usize::MAX }
    }
}

/// Keeps as many items started as the pools can serve.
///
/// # Contract
///
/// - **Pure.** A decision depends on the bounds, the items that were started and not finished, the
///   last [`PoolLoad`] of each pool, and the positions that the caller passes in. The feeder has no
///   clock, starts no tasks and holds no items.
/// - **Bounded.** [`Feeder::next`] returns a lane only if every bound that covers it is below its
///   maximum: all items, the lane, its groups, and the capacity of each of its pools by the pool's
///   [`FillRule`]. All of its pools need free capacity, or items would pile up before their second
///   request. A lane without pools, such as that of a program, has only the other bounds.
/// - **Maximal.** If it returns `None`, every lane that has an item is at one of its bounds.
/// - **Live.** With nothing started, a lane that has an item is never held back: capacities and
///   maxima of 0 count as 1.
/// - **Ordered.** Among the lanes below their bounds, the lowest position comes first, then the lane
///   that was added first. With the number of items that a lane has started as its position, lanes on
///   the same pools get equal shares; divided by a weight, weighted shares. A lane whose pools are
///   full never holds back another.
/// - **Shared.** An item of a lane with *n* pools counts as 1/*n* in each, because it sends its
///   requests one after the other: counted whole in each of them, items would leave most of every
///   pool idle.
///
/// # Use
///
/// [Update](Feeder::update) the pools, then take the [next](Feeder::next) lane and
/// [start](Feeder::start) one of its items until `next` returns `None`.
/// [Finish](Feeder::finish) every item that ends. Repeat whenever an item ends, and from time to time
/// in between, because limits grow during a run. A limit that shrinks below what is started ends
/// nothing: the feeder waits until enough items have finished.
///
/// Resume: items that an earlier process finished never reach the feeder. Forced starts: an item that
/// has to start in any case, such as the second request of a pack, is started without a call of
/// `next`; it counts like any other.
///
/// ```
/// use bakeoff_pace::{Feeder, FillRule, LaneConfig, PoolLoad};
///
/// let mut feeder = Feeder::new(usize::MAX);
/// let pool = feeder.add_pool(FillRule::RESERVE);
/// feeder.add_lane(LaneConfig::new(vec![pool]));
/// feeder.update(pool, PoolLoad { limit: 10, ..PoolLoad::default() });
/// while let Some(lane) = feeder.next(|lane| Some(feeder.started_in(lane))) {
///     feeder.start(lane);
/// }
/// assert_eq!(feeder.started(), 14);
/// ```
#[derive(Debug, Clone)]
pub struct Feeder {
    total: ItemCount,
    pools: Vec<PoolEntry>,
    groups: Vec<ItemCount>,
    lanes: Vec<LaneEntry>,
}

/// Started items and their maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ItemCount {
    started: usize,
    max: usize,
}

impl ItemCount {
    fn new(max: usize) -> ItemCount {
        ItemCount { started: 0, max: max.max(1) }
    }

    fn is_full(&self) -> bool {
        self.started >= self.max
    }

    fn add(&mut self) {
        self.started = self.started.saturating_add(1);
    }

    fn remove(&mut self) {
        self.started = self.started.saturating_sub(1);
    }
}

#[derive(Debug, Clone)]
struct PoolEntry {
    rule: FillRule,
    load: PoolLoad,
    /// What the started items count here, in [`ITEM_UNITS`].
    units: usize,
}

impl PoolEntry {
    fn is_full(&self) -> bool {
        self.units >= self.rule.capacity(self.load).saturating_mul(ITEM_UNITS)
    }
}

#[derive(Debug, Clone)]
struct LaneEntry {
    items: ItemCount,
    pools: Vec<PoolIndex>,
    groups: Vec<GroupIndex>,
}

impl LaneEntry {
    /// What one item counts in each pool of the lane.
    fn share(&self) -> usize {
        (ITEM_UNITS / self.pools.len().max(1)).max(1)
    }
}

impl Feeder {
    /// Creates a feeder for at most that many items at once.
    pub fn new(max_started: usize) -> Feeder {
        Feeder {
            total: ItemCount::new(max_started),
            pools: Vec::new(),
            groups: Vec::new(),
            lanes: Vec::new(),
        }
    }

    /// Adds a pool. Its load is that of an idle pool with limit 0 until the first update.
    pub fn add_pool(&mut self, rule: FillRule) -> PoolIndex {
        self.pools.push(PoolEntry { rule, load: PoolLoad::default(), units: 0 });
        PoolIndex(self.pools.len() - 1)
    }

    /// Adds a group of lanes that have at most that many items at once together.
    pub fn add_group(&mut self, max_started: usize) -> GroupIndex {
        self.groups.push(ItemCount::new(max_started));
        GroupIndex(self.groups.len() - 1)
    }

    /// Adds a lane. Pools and groups that are listed twice count once; unknown ones are ignored.
    pub fn add_lane(&mut self, config: LaneConfig) -> LaneIndex {
        let LaneConfig { mut pools, mut groups, max_started } = config;
        pools.sort_unstable();
        pools.dedup();
        pools.retain(|pool| pool.0 < self.pools.len());
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|group| group.0 < self.groups.len());
        self.lanes.push(LaneEntry { items: ItemCount::new(max_started), pools, groups });
        LaneIndex(self.lanes.len() - 1)
    }

    /// Sets the load of a pool.
    pub fn update(&mut self, pool: PoolIndex, load: PoolLoad) {
        if let Some(pool) = self.pools.get_mut(pool.0) {
            pool.load = load;
        }
    }

    /// Returns the lane whose next item should start now.
    ///
    /// `position` returns the place of a lane's next item in the order of all items, or `None` if the
    /// lane has no item to start. It is called only for lanes that are below their bounds.
    pub fn next<P: Ord>(
        &self,
        mut position: impl FnMut(LaneIndex) -> Option<P>,
    ) -> Option<LaneIndex> {
        let lanes = (0..self.lanes.len()).map(LaneIndex).filter(|lane| self.can_start(*lane));
        let next = lanes.filter_map(|lane| Some((position(lane)?, lane))).min();
        next.map(|(_, lane)| lane)
    }

    /// Returns whether an item of that lane may start now.
    pub fn can_start(&self, lane: LaneIndex) -> bool {
        let Some(lane) = self.lanes.get(lane.0) else { return false };
        !self.total.is_full()
            && !lane.items.is_full()
            && !self.groups_of(lane).any(ItemCount::is_full)
            && !self.pools_of(lane).any(PoolEntry::is_full)
    }

    /// Counts an item of that lane as started, even above the lane's bounds.
    pub fn start(&mut self, lane: LaneIndex) {
        let Some(lane) = self.lanes.get_mut(lane.0) else { return };
        self.total.add();
        lane.items.add();
        for group in &lane.groups {
            self.groups[group.0].add();
        }
        for pool in &lane.pools {
            let pool = &mut self.pools[pool.0];
            pool.units = pool.units.saturating_add(lane.share());
        }
    }

    /// Counts an item of that lane as finished. With none started, nothing changes.
    pub fn finish(&mut self, lane: LaneIndex) {
        let Some(lane) = self.lanes.get_mut(lane.0).filter(|lane| lane.items.started > 0) else {
            return;
        };
        self.total.remove();
        lane.items.remove();
        for group in &lane.groups {
            self.groups[group.0].remove();
        }
        for pool in &lane.pools {
            let pool = &mut self.pools[pool.0];
            pool.units = pool.units.saturating_sub(lane.share());
        }
    }

    /// Returns the number of items that are started and not finished.
    pub fn started(&self) -> usize {
        self.total.started
    }

    /// Returns the number of items of that lane that are started and not finished.
    pub fn started_in(&self, lane: LaneIndex) -> usize {
        self.lanes.get(lane.0).map_or(0, |lane| lane.items.started)
    }

    fn groups_of(&self, lane: &LaneEntry) -> impl Iterator<Item = &ItemCount> {
        lane.groups.iter().filter_map(|group| self.groups.get(group.0))
    }

    fn pools_of(&self, lane: &LaneEntry) -> impl Iterator<Item = &PoolEntry> {
        lane.pools.iter().filter_map(|pool| self.pools.get(pool.0))
    }
}
