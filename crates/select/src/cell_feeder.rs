//! Order and number of the cells that are started.

use crate::space::Cell;
use bakeoff_pace::{Feeder, LaneConfig, LaneIndex, PoolIndex, PoolLoad};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Interval at which the loads of the pools are read while no cell finishes: a limit can also grow
/// because of requests that belong to no cell, or by time.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the load of each pool of a [`CellFeeder`].
pub type PoolLoads<'a> = &'a (dyn Fn() -> Vec<PoolLoad> + Sync);

/// Limits the running cells to what the pools of their combinations can serve.
pub struct CellFeeder<'a> {
    feeder: Feeder,
    /// `None` if there are no pools: then all combinations share one lane.
    pool_loads: Option<PoolLoads<'a>>,
}

impl<'a> CellFeeder<'a> {
    /// Creates a cell feeder from a feeder with one lane per combination, in the order of the space.
    /// `pool_loads` returns the current loads of its pools, in the order in which they were added.
    pub fn new(feeder: Feeder, pool_loads: PoolLoads<'a>) -> CellFeeder<'a> {
        CellFeeder { feeder, pool_loads: Some(pool_loads) }
    }

    /// Creates a cell feeder without limits.
    pub(crate) fn without_pools() -> CellFeeder<'a> {
        let mut feeder = Feeder::new(usize::MAX);
        feeder.add_lane(LaneConfig::default());
        CellFeeder { feeder, pool_loads: None }
    }

    /// Reads the loads of the pools.
    pub(crate) fn refresh(&mut self) {
        let loads = self.pool_loads.map(|pool_loads| pool_loads()).unwrap_or_default();
        for (index, load) in loads.into_iter().enumerate() {
            self.feeder.update(PoolIndex(index), load);
        }
    }

    /// Waits until the loads of the pools should be read again.
    pub(crate) async fn refresh_due(&self) {
        match self.pool_loads {
            Some(_) => tokio::time::sleep(REFRESH_INTERVAL).await,
            None => std::future::pending().await,
        }
    }

    /// Returns the combination whose next cell should start now.
    pub(crate) fn next(&self, pending: &PendingCells) -> Option<usize> {
        // Cells start in the order of the combinations, so the first lane below its limits is next.
        let mut combos = pending.0.keys().copied();
        let next = combos.find(|combo| self.feeder.can_start(self.lane(*combo)));
        // While nothing runs, only a combination without a lane is held back.
        next.or_else(|| pending.0.keys().next().copied().filter(|_| self.feeder.started() == 0))
    }

    /// Starts the next cell of a combination.
    pub(crate) fn start(
        &mut self,
        combo: usize,
        pending: &mut PendingCells,
    ) -> Option<StartedCell> {
        let (position, cell) = pending.pop(combo)?;
        let lane = self.lane(combo);
        self.feeder.start(lane);
        Some(StartedCell { lane, position, cell })
    }

    /// Frees the capacity of a cell.
    pub(crate) fn finish(&mut self, lane: LaneIndex) {
        self.feeder.finish(lane);
    }

    fn lane(&self, combo: usize) -> LaneIndex {
        LaneIndex(if self.pool_loads.is_some() { combo } else { 0 })
    }
}

/// A cell that has been started.
pub(crate) struct StartedCell {
    pub(crate) lane: LaneIndex,
    /// Position in the round.
    pub(crate) position: usize,
    pub(crate) cell: Cell,
}

/// Cells of a round that have not started, by combination, with their positions in the round.
///
/// All cells of a combination precede those of the next, because one finished combination is worth
/// more than several that are half done.
#[derive(Debug, Default)]
pub(crate) struct PendingCells(BTreeMap<usize, VecDeque<(usize, Cell)>>);

impl PendingCells {
    pub(crate) fn push(&mut self, position: usize, cell: Cell) {
        self.0.entry(cell.combo).or_default().push_back((position, cell));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all cells.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn pop(&mut self, combo: usize) -> Option<(usize, Cell)> {
        let cells = self.0.get_mut(&combo)?;
        let next = cells.pop_front();
        if cells.is_empty() {
            self.0.remove(&combo);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_pace::FillRule;

    fn pending(combos: usize, datapoints: usize) -> PendingCells {
        let mut pending = PendingCells::default();
        // A round can list its cells by datapoint.
        let cells = (0..datapoints)
            .flat_map(|datapoint| (0..combos).map(move |combo| Cell { combo, datapoint }));
        cells.enumerate().for_each(|(position, cell)| pending.push(position, cell));
        pending
    }

    fn start_all(feeder: &mut CellFeeder<'_>, pending: &mut PendingCells) -> Vec<(usize, usize)> {
        let started = std::iter::from_fn(|| {
            let combo = feeder.next(pending)?;
            feeder.start(combo, pending)
        });
        started.map(|started| (started.cell.combo, started.cell.datapoint)).collect()
    }

    /// Two combinations through a pool with limit 1, and one through a pool with limit 2.
    fn two_pools(pool_loads: PoolLoads<'_>) -> CellFeeder<'_> {
        let mut feeder = Feeder::new(usize::MAX);
        let rule = FillRule { reserve: 0, ..FillRule::RESERVE };
        let pools = [feeder.add_pool(rule), feeder.add_pool(rule)];
        for pool in [0, 0, 1] {
            feeder.add_lane(LaneConfig::new(vec![pools[pool]]));
        }
        CellFeeder::new(feeder, pool_loads)
    }

    #[test]
    fn combinations_start_in_order_without_pools() {
        let (mut feeder, mut pending) = (CellFeeder::without_pools(), pending(2, 3));
        let started = start_all(&mut feeder, &mut pending);
        assert_eq!(started, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert!(pending.is_empty());
    }

    #[test]
    fn full_pool_holds_back_only_its_own_combinations() {
        let loads = || [1, 2].map(|limit| PoolLoad { limit, ..PoolLoad::default() }).to_vec();
        let (mut feeder, mut pending) = (two_pools(&loads), pending(3, 2));
        feeder.refresh();
        assert_eq!(start_all(&mut feeder, &mut pending), [(0, 0), (2, 0), (2, 1)]);
        feeder.finish(LaneIndex(0));
        assert_eq!(start_all(&mut feeder, &mut pending), [(0, 1)]);
        feeder.finish(LaneIndex(2));
        assert_eq!(start_all(&mut feeder, &mut pending), []);
        feeder.finish(LaneIndex(0));
        assert_eq!(start_all(&mut feeder, &mut pending), [(1, 0)]);
    }

    #[test]
    fn combination_without_a_lane_is_not_held_back() {
        let loads = || vec![PoolLoad::default(); 2];
        let (mut feeder, mut pending) = (two_pools(&loads), PendingCells::default());
        pending.push(0, Cell { combo: 7, datapoint: 3 });
        assert_eq!(start_all(&mut feeder, &mut pending), [(7, 3)]);
    }
}
