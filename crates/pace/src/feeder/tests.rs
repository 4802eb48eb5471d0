use super::*;
use proptest::prelude::*;

fn load(limit: u32) -> PoolLoad {
    PoolLoad { limit, ..PoolLoad::default() }
}

/// A feeder with a pool for each limit, whose rule keeps no reserve.
fn feeder(limits: &[u32]) -> Feeder {
    let mut feeder = Feeder::new(usize::MAX);
    for limit in limits {
        let pool = feeder.add_pool(FillRule { reserve: 0, ..FillRule::RESERVE });
        feeder.update(pool, load(*limit));
    }
    feeder
}

fn lane(feeder: &mut Feeder, pools: &[usize]) -> LaneIndex {
    let pools = pools.iter().copied().map(PoolIndex).collect();
    feeder.add_lane(LaneConfig { pools, ..LaneConfig::default() })
}

/// Starts what fits, with equal shares for all lanes, and returns the items of each lane.
fn fill(feeder: &mut Feeder) -> Vec<usize> {
    while let Some(lane) = feeder.next(|lane| Some(feeder.started_in(lane))) {
        feeder.start(lane);
    }
    (0..feeder.lanes.len()).map(|lane| feeder.started_in(LaneIndex(lane))).collect()
}

#[test]
fn capacity_follows_limit_backoff_and_queue() {
    let cases = [
        // Trials: limit + backing off, at most twice the limit, + 4.
        (FillRule::RESERVE, (0, 0, 0), 4),
        (FillRule::RESERVE, (3, 3, 0), 7),
        (FillRule::RESERVE, (3, 0, 2), 9),
        (FillRule::RESERVE, (3, 0, 90), 10),
        (FillRule::RESERVE, (u32::MAX, 50, 0), 10_004),
        // Trials that follow the requests in flight: at most 16 and half of those beyond them.
        (FillRule::FOLLOW, (3, 3, 0), 7),
        (FillRule::FOLLOW, (200, 0, 0), 16),
        (FillRule::FOLLOW, (200, 10, 0), 31),
        (FillRule::FOLLOW, (200, 10, 5), 36),
        (FillRule::FOLLOW, (200, 130, 0), 204),
        (FillRule::FOLLOW, (u32::MAX, 1000, 0), 1516),
        // Packs: the limit, but 16 to 64 beyond those in flight.
        (FillRule::QUEUE, (0, 0, 0), 16),
        (FillRule::QUEUE, (40, 0, 0), 40),
        (FillRule::QUEUE, (40, 20, 0), 40),
        (FillRule::QUEUE, (40, 40, 9), 56),
        (FillRule::QUEUE, (1000, 100, 0), 164),
        (FillRule::QUEUE, (u32::MAX, 100, 0), 164),
    ];
    for (rule, (limit, in_flight, backing_off), capacity) in cases {
        let load = PoolLoad { limit, in_flight, backing_off };
        assert_eq!(rule.capacity(load), capacity, "{rule:?} {load:?}");
    }
}

#[test]
fn lanes_share_pools_equally_without_blocking_each_other() {
    // (limits of the pools, pools of each lane, items of each lane)
    type Case = (&'static [u32], &'static [&'static [usize]], &'static [usize]);
    let cases: [Case; 6] = [
        (&[7], &[&[0]], &[7]),
        (&[7], &[&[0], &[0]], &[4, 3]),
        (&[2, 9], &[&[0], &[1]], &[2, 9]),
        (&[2, 9], &[&[0], &[0], &[1]], &[1, 1, 9]),
        // An item counts half in each of two pools, and the smaller pool bounds the lane.
        (&[3, 3], &[&[0, 1]], &[6]),
        (&[2, 9], &[&[0, 1], &[1]], &[4, 7]),
    ];
    for (limits, lanes, items) in cases {
        let mut feeder = feeder(limits);
        for pools in lanes {
            lane(&mut feeder, pools);
        }
        assert_eq!(fill(&mut feeder), items, "{limits:?} {lanes:?}");
    }
}

#[test]
fn lanes_without_pools_are_bounded_by_lane_group_and_total() {
    let mut feeder = Feeder::new(9);
    let programs = feeder.add_group(5);
    let mut add = |groups: Vec<GroupIndex>, max_started| {
        feeder.add_lane(LaneConfig { pools: Vec::new(), groups, max_started });
    };
    add(vec![programs], usize::MAX);
    add(vec![programs], 2);
    add(Vec::new(), 3);
    add(Vec::new(), usize::MAX);
    assert_eq!(fill(&mut feeder), [3, 2, 2, 2]);
    feeder.finish(LaneIndex(2));
    feeder.finish(LaneIndex(1));
    assert_eq!(fill(&mut feeder), [3, 2, 2, 2], "the least served lanes come first");
}

#[test]
fn started_items_follow_the_limit() {
    let mut feeder = feeder(&[2]);
    let only = lane(&mut feeder, &[0]);
    assert_eq!(fill(&mut feeder), [2]);
    feeder.update(PoolIndex(0), load(5));
    assert_eq!(fill(&mut feeder), [5]);
    feeder.update(PoolIndex(0), load(3));
    for left in [4, 3] {
        feeder.finish(only);
        assert_eq!(fill(&mut feeder), [left], "nothing starts above the limit");
    }
    feeder.finish(only);
    assert_eq!(fill(&mut feeder), [3]);
}

#[test]
fn forced_starts_count() {
    let mut feeder = feeder(&[3]);
    let (retries, fresh) = (lane(&mut feeder, &[0]), lane(&mut feeder, &[0]));
    (0..4).for_each(|_| feeder.start(retries));
    assert!(!feeder.can_start(fresh));
    assert_eq!(feeder.started(), 4);
    (0..2).for_each(|_| feeder.finish(retries));
    assert!(feeder.can_start(fresh));
}

#[test]
fn next_prefers_lowest_position_then_first_lane() {
    let mut feeder = feeder(&[9]);
    for _ in 0..3 {
        lane(&mut feeder, &[0]);
    }
    let next = |positions: [Option<u32>; 3]| feeder.next(|lane| positions[lane.0]);
    assert_eq!(next([Some(2), Some(1), Some(3)]), Some(LaneIndex(1)));
    assert_eq!(next([Some(1), Some(1), Some(1)]), Some(LaneIndex(0)));
    assert_eq!(next([None, Some(5), Some(5)]), Some(LaneIndex(1)));
    assert_eq!(next([None; 3]), None);
}

#[test]
fn bounds_of_zero_let_one_item_start() {
    let mut feeder = feeder(&[0]);
    let group = feeder.add_group(0);
    feeder.total = ItemCount::new(0);
    let pools = vec![PoolIndex(0)];
    feeder.add_lane(LaneConfig { pools, groups: vec![group], max_started: 0 });
    assert_eq!(fill(&mut feeder), [1]);
}

/// A change between two fills.
#[derive(Debug, Clone)]
enum FeederStep {
    Finish(usize),
    ForcedStart(usize),
    Update(usize, PoolLoad),
}

fn loads() -> impl Strategy<Value = PoolLoad> {
    let limit = prop_oneof![9 => 0_u32..30, 1 => Just(u32::MAX)];
    (limit, 0_u32..30, 0_u32..30).prop_map(|(limit, in_flight, backing_off)| PoolLoad {
        limit,
        in_flight,
        backing_off,
    })
}

fn steps() -> impl Strategy<Value = Vec<FeederStep>> {
    let step = prop_oneof![
        6 => any::<usize>().prop_map(FeederStep::Finish),
        1 => any::<usize>().prop_map(FeederStep::ForcedStart),
        3 => (any::<usize>(), loads()).prop_map(|(pool, load)| FeederStep::Update(pool, load)),
    ];
    prop::collection::vec(step, 0..60)
}

/// Up to four pools, two groups and six lanes with any bounds.
fn feeders() -> impl Strategy<Value = Feeder> {
    let pools = prop::collection::vec((any::<bool>(), loads()), 1..5);
    let lanes = prop::collection::vec(
        (
            prop::collection::vec(0_usize..5, 0..4),
            prop::collection::vec(0_usize..3, 0..3),
            0_usize..40,
        ),
        1..7,
    );
    (pools, prop::array::uniform2(0_usize..20), 0_usize..80, lanes).prop_map(
        |(pools, groups, max_started, lanes)| {
            let mut feeder = Feeder::new(max_started);
            for (is_queue, load) in pools {
                let rule = if is_queue { FillRule::QUEUE } else { FillRule::RESERVE };
                let pool = feeder.add_pool(rule);
                feeder.update(pool, load);
            }
            for max in groups {
                feeder.add_group(max);
            }
            for (pools, groups, max_started) in lanes {
                let pools = pools.into_iter().map(PoolIndex).collect();
                let groups = groups.into_iter().map(GroupIndex).collect();
                feeder.add_lane(LaneConfig { pools, groups, max_started });
            }
            feeder
        },
    )
}

/// Returns whether a bound that covers the lane is reached.
fn is_bounded(feeder: &Feeder, lane: &LaneEntry) -> bool {
    feeder.total.started >= feeder.total.max
        || lane.items.started >= lane.items.max
        || lane.groups.iter().any(|group| feeder.groups[group.0].is_full())
        || lane.pools.iter().any(|pool| feeder.pools[pool.0].is_full())
}

proptest! {
    /// No start exceeds a bound, a fill leaves no lane startable, and the counts add up.
    #[test]
    fn fill_reaches_bounds_without_exceeding_them(mut feeder in feeders(), steps in steps()) {
        for step in std::iter::once(None).chain(steps.into_iter().map(Some)) {
            match step {
                Some(FeederStep::Finish(lane)) => feeder.finish(LaneIndex(lane % feeder.lanes.len())),
                Some(FeederStep::ForcedStart(lane)) => feeder.start(LaneIndex(lane % feeder.lanes.len())),
                Some(FeederStep::Update(pool, load)) => {
                    feeder.update(PoolIndex(pool % feeder.pools.len()), load);
                }
                None => {}
            }
            while let Some(next) = feeder.next(|lane| Some(feeder.started_in(lane))) {
                let before = feeder.clone();
                feeder.start(next);
                let lane = &feeder.lanes[next.0];
                prop_assert!(feeder.total.started <= feeder.total.max);
                prop_assert!(lane.items.started <= lane.items.max);
                for group in &lane.groups {
                    prop_assert!(feeder.groups[group.0].started <= feeder.groups[group.0].max);
                }
                for pool in &lane.pools {
                    let capacity = before.pools[pool.0].rule.capacity(before.pools[pool.0].load);
                    prop_assert!(before.pools[pool.0].units < capacity * ITEM_UNITS);
                }
            }
            prop_assert!(feeder.lanes.iter().all(|lane| is_bounded(&feeder, lane)));
            let items: usize = feeder.lanes.iter().map(|lane| lane.items.started).sum();
            prop_assert_eq!(items, feeder.started());
            for (number, pool) in feeder.pools.iter().enumerate() {
                let using = feeder.lanes.iter().filter(|lane| lane.pools.contains(&PoolIndex(number)));
                let units: usize = using.map(|lane| lane.items.started * lane.share()).sum();
                prop_assert_eq!(units, pool.units);
            }
        }
    }

    #[test]
    fn idle_feeder_admits_every_lane(feeder in feeders()) {
        for lane in 0..feeder.lanes.len() {
            let next = feeder.next(|other| (other == LaneIndex(lane)).then_some(()));
            prop_assert_eq!(next, Some(LaneIndex(lane)));
        }
    }

    #[test]
    fn finishing_all_items_restores_capacity(mut feeder in feeders()) {
        let filled = fill(&mut feeder);
        for (lane, items) in filled.iter().enumerate() {
            // One more than was started changes nothing.
            (0..=*items).for_each(|_| feeder.finish(LaneIndex(lane)));
        }
        prop_assert_eq!(feeder.started(), 0);
        prop_assert!(feeder.pools.iter().all(|pool| pool.units == 0));
        prop_assert!(feeder.groups.iter().all(|group| group.started == 0));
        prop_assert_eq!(fill(&mut feeder), filled);
    }

    #[test]
    fn lanes_on_the_same_pool_get_shares_by_weight(
        limit in 1_u32..200,
        weights in prop::collection::vec(1_usize..6, 1..6),
    ) {
        let mut feeder = feeder(&[limit]);
        for _ in &weights {
            lane(&mut feeder, &[0]);
        }
        // Items started per unit of weight, in 60ths: 60 = lcm(1..=5).
        let position = |feeder: &Feeder, lane: LaneIndex| {
            Some(feeder.started_in(lane) * 60 / weights[lane.0])
        };
        while let Some(next) = feeder.next(|lane| position(&feeder, lane)) {
            feeder.start(next);
        }
        prop_assert_eq!(feeder.started(), limit as usize);
        let rounds = weights.iter().enumerate().map(|(lane, weight)| {
            feeder.started_in(LaneIndex(lane)) as f64 / *weight as f64
        });
        let (least, most) = rounds.fold((f64::MAX, 0_f64), |(least, most), n| (least.min(n), most.max(n)));
        prop_assert!(most - least <= 1.0, "{least} {most}");
    }

    /// The items beyond those in flight are as many as the limit leaves free, but 16 to 64.
    #[test]
    fn queue_rule_bounds_the_waiting_items(
        limit in prop_oneof![0_u32..200, Just(u32::MAX)],
        in_flight in 0_u32..200,
        started in 0_usize..300,
    ) {
        let load = PoolLoad { limit, in_flight, backing_off: 7 };
        let waiting = started.saturating_sub(in_flight as usize);
        let free = limit.saturating_sub(in_flight) as usize;
        let has_capacity = started < FillRule::QUEUE.capacity(load);
        prop_assert_eq!(has_capacity, waiting < free.clamp(16, 64));
    }

    #[test]
    fn capacity_grows_with_the_limit(load in loads(), more in 0_u32..50) {
        for rule in [FillRule::RESERVE, FillRule::QUEUE] {
            let grown = PoolLoad { limit: load.limit.saturating_add(more).min(9_000), ..load };
            let load = PoolLoad { limit: load.limit.min(9_000), ..load };
            prop_assert!(rule.capacity(grown) >= rule.capacity(load));
        }
    }
}
