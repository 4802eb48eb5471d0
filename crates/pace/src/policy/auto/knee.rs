//! Detection of saturation: a provider that slows down instead of rejecting, as GPU servers do.
//!
//! Latency and throughput by requests in flight are measured by cohorts. As long as latency is low,
//! nothing is limited. Once it has risen, the limit grows only while throughput grows with it: along the
//! concave curve of a batching server up to the ceiling, and not beyond the knee of a server that
//! queues. A limit is never kept below one that was measured to be faster.

use super::cohort::{CohortStats, Cohorts, LoadModel};

/// Latency has risen if it exceeds the minimum by this factor.
const LATENCY_RISE: f64 = 1.4;
/// Growth of the level that explains a rise.
const LEVEL_RISE: f64 = 1.3;
/// Loss of throughput that refutes the model by which it was computed.
const REFUTING_LOSS: f64 = 0.9;
/// Latency of requests that are not slowed down, as a multiple of the minimum.
const NORMAL_LATENCY: f64 = 1.6;
/// Levels closer than this factor are not compared, because latencies vary.
const MIN_STEP: f64 = 1.4;
/// The limit stops growing if throughput grows with a smaller power of the level.
const MIN_ELASTICITY: f64 = 0.12;
/// Measurements that are kept.
const MAX_POINTS: usize = 64;
/// Cohorts in a row after which the limit stops growing although latencies vary too much to tell.
const MAX_DOUBTS: u32 = 3;
/// Throughput that counts as equal to the highest.
const EQUAL_RATE: f64 = 0.97;
/// Limit at a sharp knee, as a multiple of the requests that keep the provider busy.
const KNEE_RESERVE: f64 = 1.3;
/// Latency below which requests do not queue, as a multiple of the minimum.
const QUEUE_FREE: f64 = 1.15;
/// Cohorts between two probes of a higher limit; the number doubles with each probe that gains nothing.
const MIN_PROBE_INTERVAL: u32 = 2;
const MAX_PROBE_INTERVAL: u32 = 16;
/// Share of the limit that must be in use; with less demand, throughput says nothing about the provider.
const MIN_USE: f64 = 0.8;
/// Factor on the limit in a probe, and the gain that confirms it, besides the error of the measurement.
const PROBE_FACTOR: f64 = 1.35;
const PROBE_GAIN: f64 = 1.03;

/// The measurements and the resulting limit.
#[derive(Debug)]
pub(super) struct LatencyKnee {
    cohorts: Cohorts,
    stage: KneeStage,
    /// Minimum of the cohorts' latencies, as an upper bound, and its cohort.
    min_latency: Option<(f64, CohortStats)>,
    /// Measurements until the limit is found.
    curve: Vec<CohortStats>,
    /// `Shared` until a cohort at a constant limit refutes it, so that growth does not end early at a
    /// batching server, where later requests slow down earlier ones.
    model: LoadModel,
}

#[derive(Debug, Clone, Copy)]
enum KneeStage {
    /// No rise so far.
    Watch,
    /// Latency rises, but throughput does, too. `doubts` is the number of cohorts in a row that do not
    /// tell whether it does.
    Climb { width: f64, doubts: u32 },
    /// One cohort at a constant limit, which shows the model and whether the limit is as fast as the
    /// best level so far.
    Settle { width: f64, best: f64, best_rate: f64 },
    /// Constant, with an occasional cohort at a higher limit.
    Hold(HeldLimit),
}

/// A limit that was found.
#[derive(Debug, Clone, Copy)]
struct HeldLimit {
    width: f64,
    rate: f64,
    /// Cohorts since the last probe, and their number until the next one.
    cohorts: u32,
    probe_after: u32,
    probe: Option<ProbeDirection>,
    next_probe: ProbeDirection,
}

#[derive(Debug, Clone, Copy)]
enum ProbeDirection {
    Up,
    Down,
}

impl LatencyKnee {
    pub(super) fn new() -> LatencyKnee {
        LatencyKnee {
            cohorts: Cohorts::default(),
            stage: KneeStage::Watch,
            min_latency: None,
            curve: Vec::new(),
            model: LoadModel::Shared,
        }
    }

    /// Returns the concurrency limit, or `None` if latency is low.
    pub(super) fn limit(&self) -> Option<f64> {
        match self.stage {
            KneeStage::Watch => None,
            KneeStage::Climb { width, .. } | KneeStage::Settle { width, .. } => Some(width.ceil()),
            KneeStage::Hold(held) => Some(held.limit().ceil()),
        }
    }

    /// Returns whether more requests in flight do not raise throughput.
    pub(super) fn is_saturated(&self) -> bool {
        matches!(self.stage, KneeStage::Settle { .. } | KneeStage::Hold(_))
    }

    /// Returns whether a latency is close to that of the first answers.
    pub(super) fn is_normal(&self, latency: f64) -> bool {
        self.min_latency.is_none_or(|(min_latency, _)| latency < NORMAL_LATENCY * min_latency)
    }

    pub(super) fn on_sent(&mut self, now: f64, number: u64, level: u32) {
        let width = self.limit().unwrap_or(f64::from(level));
        self.cohorts.on_sent(now, number, level, width);
    }

    /// Handles the end of a request, after which `in_flight` are left.
    pub(super) fn on_ended(&mut self, now: f64, in_flight: u32) {
        self.cohorts.on_ended(now, in_flight);
    }

    /// Handles a request that will not be answered.
    pub(super) fn on_discarded(&mut self, number: u64) {
        self.cohorts.on_discarded(number);
    }

    /// Handles the return to the ramp: earlier requests were not limited by it.
    pub(super) fn on_resumed(&mut self) {
        self.cohorts.clear();
    }

    pub(super) fn on_answered(&mut self, now: f64, number: u64, latency: f64) {
        if let Some(stats) = self.cohorts.on_answered(now, number, latency) {
            let before = self.limit();
            self.update(stats);
            // Cohorts at a limit that is given up, or was not reached yet, say nothing about the new one.
            if self.is_saturated() && self.limit() != before {
                self.cohorts.clear();
            }
        }
    }

    fn update(&mut self, stats: CohortStats) {
        // The minimum of several cohorts is too low by chance, so its upper bound counts.
        let (lower_latency, upper_latency) = stats.latency_bounds();
        let (min_latency, fastest) = *self.min_latency.get_or_insert((upper_latency, stats));
        if upper_latency < min_latency {
            self.min_latency = Some((upper_latency, stats));
        }
        let has_risen = lower_latency > LATENCY_RISE * min_latency;
        if has_risen && !self.is_saturated() && is_sharing_refuted(fastest, stats) {
            self.model = LoadModel::Queued;
        }
        let level = stats.level(self.model);
        match &mut self.stage {
            KneeStage::Watch => {
                if has_risen && level > LEVEL_RISE * fastest.level(self.model) {
                    self.climb(stats);
                } else {
                    self.record(stats);
                }
            }
            KneeStage::Climb { .. } => self.climb(stats),
            &mut KneeStage::Settle { width, best, best_rate } => {
                let rate = stats.rate(self.model);
                if self.model == LoadModel::Shared && self.is_queued(stats) {
                    self.model = LoadModel::Queued;
                    self.settle();
                } else if rate < EQUAL_RATE * best_rate && best != width {
                    self.hold(best, best_rate);
                } else if stats.latency < QUEUE_FREE * min_latency && rate > best_rate {
                    // The throughput from which the limit was derived was below the maximum.
                    let width = PROBE_FACTOR * width;
                    self.stage = KneeStage::Settle { width, best: level, best_rate: rate };
                } else {
                    self.hold(width, rate);
                }
            }
            KneeStage::Hold(held) => held.update(stats, self.model),
        }
    }

    /// Raises the limit as far as throughput has grown with the level, or ends the growth.
    fn climb(&mut self, stats: CohortStats) {
        let model = self.model;
        let (level, rate) = (stats.level(model), stats.rate(model));
        let reference = self
            .curve
            .iter()
            .filter(|point| MIN_STEP * point.level(model) <= level)
            .max_by(|one, other| one.level(model).total_cmp(&other.level(model)));
        let (elasticity, error) = reference.map_or((1.0, 0.0), |reference| {
            let step = (level / reference.level(model)).ln();
            let error = stats.error.hypot(reference.error);
            ((rate / reference.rate(model)).ln() / step, error / step)
        });
        let is_doubtful = elasticity + error > MIN_ELASTICITY;
        self.record(stats);
        if elasticity >= MIN_ELASTICITY {
            let width = level * (1.0 + 2.0 * elasticity.min(1.0));
            self.stage = KneeStage::Climb { width, doubts: 0 };
            return;
        }
        match &mut self.stage {
            KneeStage::Climb { doubts, .. } if is_doubtful && *doubts < MAX_DOUBTS => *doubts += 1,
            KneeStage::Watch if is_doubtful => {
                self.stage = KneeStage::Climb { width: level, doubts: 1 };
            }
            _ => self.settle(),
        }
    }

    fn record(&mut self, stats: CohortStats) {
        if self.curve.len() >= MAX_POINTS {
            self.curve.remove(0);
        }
        self.curve.push(stats);
    }

    /// Ends the growth at the limit that suits the measurements.
    fn settle(&mut self) {
        let model = self.model;
        let max_rate = self.curve.iter().map(|point| point.rate(model)).fold(0.0, f64::max);
        let best = self
            .curve
            .iter()
            .filter(|point| {
                let lower_rate = point.rate(model) / point.error.exp();
                lower_rate >= EQUAL_RATE * max_rate || point.rate(model) >= max_rate
            })
            .map(|point| point.level(model))
            .fold(f64::INFINITY, f64::min);
        let Some((min_latency, _)) = self.min_latency else { return };
        let width = (KNEE_RESERVE * max_rate * min_latency).max(1.0);
        // A slower point above the knee shows that the curve has none there.
        let is_refuted = self.curve.iter().any(|point| {
            (width..best).contains(&point.level(model)) && point.rate(model) < 0.9 * max_rate
        });
        let width =
            if width < best && !is_refuted { width } else { best.max(width.min(MIN_STEP * best)) };
        self.stage = KneeStage::Settle { width, best, best_rate: max_rate };
    }

    /// Returns whether requests queue: the latency at a constant limit is closer to that of requests
    /// that were sent at this level than to that of requests with this mean level.
    fn is_queued(&self, stats: CohortStats) -> bool {
        let deviation = |model: LoadModel| {
            let expected = self.expected_latency(model, stats.level(model));
            expected.map_or(f64::INFINITY, |expected| (stats.latency / expected).ln().abs())
        };
        deviation(LoadModel::Queued) < deviation(LoadModel::Shared)
    }

    /// Returns the latency at a level, interpolated between the nearest measurements.
    fn expected_latency(&self, model: LoadModel, level: f64) -> Option<f64> {
        let mut points: Vec<(f64, f64)> =
            self.curve.iter().map(|point| (point.level(model), point.latency)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let above = points.iter().position(|(other, _)| *other >= level);
        let index = above.unwrap_or(points.len()).clamp(1, points.len().saturating_sub(1).max(1));
        let (&(low, low_latency), &(high, high_latency)) =
            (points.get(index - 1)?, points.get(index)?);
        if model == LoadModel::Queued && level > high {
            // The queue is longer than any measured one.
            return Some(high_latency * level / high);
        }
        let share = (level / low).ln() / (high / low).ln().max(1e-6);
        Some(low_latency * (high_latency / low_latency).powf(share))
    }

    fn hold(&mut self, width: f64, rate: f64) {
        self.curve.clear();
        self.stage = KneeStage::Hold(HeldLimit {
            width,
            rate,
            cohorts: 0,
            probe_after: MIN_PROBE_INTERVAL,
            probe: None,
            // Above the knee of a queue, servers may thrash.
            next_probe: match self.model {
                LoadModel::Shared => ProbeDirection::Up,
                LoadModel::Queued => ProbeDirection::Down,
            },
        });
    }
}

/// Returns whether requests that were sent at a higher level were so much slower that, if all requests
/// shared the server, its throughput would have fallen. Requests of a burst show this before it ends:
/// they have the same company, but those sent later wait longer.
fn is_sharing_refuted(fastest: CohortStats, stats: CohortStats) -> bool {
    let rate = |stats: CohortStats| stats.rate(LoadModel::Shared);
    let has_joined = stats.level(LoadModel::Queued) > LEVEL_RISE * fastest.level(LoadModel::Queued);
    has_joined && rate(stats) < REFUTING_LOSS * rate(fastest)
}

impl HeldLimit {
    fn limit(&self) -> f64 {
        match self.probe {
            None => self.width,
            Some(ProbeDirection::Up) => self.width * PROBE_FACTOR,
            Some(ProbeDirection::Down) => (self.width / PROBE_FACTOR).max(1.0),
        }
    }

    fn update(&mut self, stats: CohortStats, model: LoadModel) {
        if stats.level(model) < MIN_USE * self.limit() {
            return;
        }
        let rate = stats.rate(model);
        let Some(direction) = self.probe else {
            self.rate += 0.3 * (rate - self.rate);
            self.cohorts += 1;
            if self.cohorts >= self.probe_after {
                self.cohorts = 0;
                self.probe = Some(self.next_probe);
            }
            return;
        };
        if rate > (PROBE_GAIN + stats.error) * self.rate {
            let level = stats.level(model);
            self.width = match direction {
                ProbeDirection::Up => level.max(self.width),
                ProbeDirection::Down => level.min(self.width),
            };
            self.rate = rate;
        } else {
            self.probe = None;
            self.next_probe = match direction {
                ProbeDirection::Up => ProbeDirection::Down,
                ProbeDirection::Down => ProbeDirection::Up,
            };
            self.probe_after = (2 * self.probe_after).min(MAX_PROBE_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A closed loop at the limit of the knee, at most `ceiling`; returns the limit after it.
    fn run(latency: impl Fn(f64) -> f64, ceiling: f64, requests: u64) -> Option<f64> {
        let mut knee = LatencyKnee::new();
        let (mut now, mut number, mut completions) = (0.0, 0, 0.0);
        // End, number, and latency of the requests in flight.
        let mut flights: Vec<(f64, u64, f64)> = Vec::new();
        while number < requests {
            let limit = knee.limit().unwrap_or(20.0 + 2.0 * completions).min(ceiling);
            if (flights.len() as f64) < limit {
                knee.on_sent(now, number, flights.len() as u32);
                let duration = latency(flights.len() as f64 + 1.0);
                flights.push((now + duration, number, duration));
                number += 1;
                now += 1e-3;
                continue;
            }
            let next =
                flights.iter().enumerate().min_by(|one, other| one.1.0.total_cmp(&other.1.0));
            let (end, ended, duration) = flights.swap_remove(next.map_or(0, |(index, _)| index));
            now = end.max(now);
            completions += f64::from(u8::from(knee.is_normal(duration)));
            knee.on_ended(now, flights.len() as u32);
            knee.on_answered(now, ended, duration);
        }
        knee.limit()
    }

    /// The same at a server whose requests proceed with a speed that depends on the number in flight.
    fn run_shared(slowdown: impl Fn(f64) -> f64, ceiling: f64, requests: u64) -> Option<f64> {
        let mut knee = LatencyKnee::new();
        let (mut now, mut progress, mut number, mut completions) = (0.0, 0.0, 0, 0.0);
        // Progress at the end, number, and send time of the requests in flight, the oldest first.
        let mut flights: VecDeque<(f64, u64, f64)> = VecDeque::new();
        while number < requests {
            let limit = knee.limit().unwrap_or(20.0 + 2.0 * completions).min(ceiling);
            let is_room = (flights.len() as f64) < limit;
            // The next request follows after a millisecond.
            let end = flights.front().map_or(f64::INFINITY, |(end, ..)| *end);
            let end_at = now + (end - progress) * slowdown(flights.len() as f64);
            if is_room && now + 1e-3 < end_at {
                knee.on_sent(now, number, flights.len() as u32);
                flights.push_back((progress + 1.0, number, now));
                number += 1;
                progress += 1e-3 / slowdown(flights.len() as f64);
                now += 1e-3;
                continue;
            }
            (now, progress) = (end_at, end);
            let Some((_, ended, sent_at)) = flights.pop_front() else { break };
            completions += f64::from(u8::from(knee.is_normal(now - sent_at)));
            knee.on_ended(now, flights.len() as u32);
            knee.on_answered(now, ended, now - sent_at);
        }
        knee.limit()
    }

    #[test]
    fn limit_stays_near_a_sharp_knee() {
        // The server processes ten requests at a time, queues the rest, and thrashes above thirty.
        let latency = |level: f64| (level / 10.0).max(1.0) * (level / 30.0).max(1.0);
        let limit = run(latency, 400.0, 2000).unwrap();
        assert!((9.0..=30.0).contains(&limit), "{limit}");
    }

    #[test]
    fn limit_follows_a_concave_throughput_curve() {
        let limit = run(|level| 1.0 + 0.0115 * level, 1000.0, 4000).unwrap();
        assert!(limit > 400.0, "{limit}");
        let limit = run(|level| 1.0 + 0.1 * level, 1000.0, 4000).unwrap();
        assert!((40.0..250.0).contains(&limit), "saturates at ten per second: {limit}");
    }

    #[test]
    fn requests_that_slow_down_earlier_ones_do_not_end_the_growth() {
        let limit = run_shared(|level| 1.0 + 0.0115 * level, 1000.0, 4000).unwrap();
        assert!(limit > 400.0, "{limit}");
        let limit = run_shared(|level| 1.0 + 0.1 * level, 1000.0, 4000).unwrap();
        assert!((40.0..250.0).contains(&limit), "saturates at ten per second: {limit}");
        let limit = run_shared(|level| (level / 10.0).max(1.0), 400.0, 4000).unwrap();
        assert!((9.0..=60.0).contains(&limit), "{limit}");
    }

    /// Sends a burst and answers it in order.
    fn burst(latency: impl Fn(u64) -> f64) -> LoadModel {
        let mut knee = LatencyKnee::new();
        (0..60).for_each(|number| knee.on_sent(0.0, number, number as u32));
        for number in 0..60 {
            knee.on_ended(latency(number), 59 - number as u32);
            knee.on_answered(latency(number), number, latency(number));
        }
        knee.model
    }

    #[test]
    fn latencies_of_a_burst_distinguish_queues_from_shared_servers() {
        assert_eq!(burst(|number| (number as f64 / 5.0).max(1.0)), LoadModel::Queued);
        assert_eq!(burst(|number| 3.0 + 0.001 * number as f64), LoadModel::Shared);
    }

    #[test]
    fn held_limit_follows_the_faster_direction() {
        let limit_after = |rate: fn(f64) -> f64| {
            let mut knee = LatencyKnee::new();
            knee.hold(100.0, rate(100.0));
            let mut cohorts = Cohorts::default();
            let (mut now, mut number) = (0.0, 0);
            for _ in 0..200 {
                let level = knee.limit().unwrap();
                // Cohorts at a constant level.
                let stats = loop {
                    cohorts.on_sent(now, number, level as u32 - 1, level);
                    let latency = level / rate(level);
                    now += latency;
                    number += 1;
                    cohorts.on_ended(now, level as u32);
                    if let Some(stats) = cohorts.on_answered(now, number - 1, latency) {
                        break stats;
                    }
                };
                knee.update(stats);
            }
            knee.limit().unwrap()
        };
        let limit = limit_after(|level| 10.0 * (10.0 / level).min(1.0) * (level / 10.0).min(1.0));
        assert!((8.0..14.0).contains(&limit), "fastest at 10: {limit}");
        let limit = limit_after(|level| level.min(500.0));
        assert!((400.0..700.0).contains(&limit), "no faster above 500: {limit}");
    }

    #[test]
    fn low_demand_does_not_change_a_held_limit() {
        let mut knee = LatencyKnee::new();
        knee.hold(100.0, 100.0);
        // Three requests in flight, then four.
        let (mut now, mut number) = (0.0, 0);
        for round in 0..400 {
            let level = if round < 200 { 3 } else { 4 };
            (0..level).for_each(|index| knee.on_sent(now, number + index, index as u32));
            now += 1.0;
            for index in 0..level {
                knee.on_ended(now, (level - 1 - index) as u32);
                knee.on_answered(now, number + index, 1.0);
            }
            number += level;
        }
        assert_eq!(knee.limit(), Some(100.0));
    }

    #[test]
    fn constant_latency_is_no_knee() {
        assert_eq!(run(|_| 1.0, 400.0, 2000), None);
    }

    #[test]
    fn normal_latency_is_close_to_the_minimum() {
        let mut knee = LatencyKnee::new();
        assert!(knee.is_normal(9.0), "nothing is known");
        (0..8).for_each(|number| knee.on_sent(0.0, number, number as u32));
        (0..8).for_each(|number| knee.on_answered(1.0, number, 1.0));
        assert!(knee.is_normal(1.5));
        assert!(!knee.is_normal(2.0));
    }
}
