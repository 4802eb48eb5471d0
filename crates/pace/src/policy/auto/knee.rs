//! Detection of saturation: a provider that slows down instead of rejecting, as GPU servers do.
//!
//! Latency is compared between cohorts of consecutive requests. By Little's law, the requests in flight
//! divided by their latency are the throughput at that level. As long as latency is low, nothing is
//! limited. Once it has risen, the limit grows only while throughput grows with it: along the concave
//! curve of a batching server up to the ceiling, and not beyond the knee of a server that queues. A
//! limit is never kept below one that was measured to be faster.

use std::collections::VecDeque;

/// Requests in the first cohort, which measures the unloaded latency, in the second, and in later ones.
const FIRST_COHORT: usize = 8;
const SECOND_COHORT: usize = 12;
const COHORT: usize = 30;
/// Latency has risen if it exceeds the minimum by this factor.
const LATENCY_RISE: f64 = 1.4;
/// Levels closer than this factor are not compared, because latencies vary.
const MIN_STEP: f64 = 1.4;
/// The limit stops growing if throughput grows with a smaller power of the level.
const MIN_ELASTICITY: f64 = 0.12;
/// Throughput that counts as equal to the highest.
const EQUAL_RATE: f64 = 0.97;
/// Limit at a sharp knee, as a multiple of the requests that keep the provider busy.
const KNEE_RESERVE: f64 = 1.3;
/// Latency below which requests do not queue, as a multiple of the minimum.
const QUEUE_FREE: f64 = 1.15;
/// Cohorts between two probes of a higher limit, its factor, and the gain that confirms it.
const PROBE_EVERY: u32 = 8;
const PROBE_FACTOR: f64 = 1.35;
const PROBE_GAIN: f64 = 1.08;

/// The cohorts' measurements and the resulting limit.
#[derive(Debug)]
pub(super) struct LatencyKnee {
    /// Unfinished cohorts, the oldest first.
    cohorts: VecDeque<Cohort>,
    cohorts_started: u32,
    stage: KneeStage,
    /// Minimum of the cohorts' median latencies, and the requests in flight then.
    min_latency: Option<(f64, f64)>,
    /// Throughput by level, measured since latency was low.
    curve: Vec<CohortStats>,
}

/// Consecutive requests that are measured together.
#[derive(Debug)]
struct Cohort {
    first: u64,
    size: usize,
    /// Send times of all, and latencies of those that were answered.
    sent: Vec<f64>,
    latencies: Vec<Option<f64>>,
    levels: f64,
}

impl Cohort {
    fn new(first: u64, size: usize) -> Cohort {
        Cohort { first, size, sent: Vec::new(), latencies: Vec::new(), levels: 0.0 }
    }

    /// Returns the median latency as soon as the unanswered requests cannot change it.
    fn median(&self, now: f64) -> Option<f64> {
        let mut known: Vec<f64> = self.latencies.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        let median = *known.get(self.sent.len() / 2)?;
        let is_final =
            |(sent, latency): (&f64, &Option<f64>)| latency.is_some() || now - sent >= median;
        self.sent.iter().zip(&self.latencies).all(is_final).then_some(median)
    }
}

/// The measurements of a cohort.
#[derive(Debug, Clone, Copy)]
struct CohortStats {
    median: f64,
    level: f64,
}

impl CohortStats {
    /// Returns the answers per second at this level, by Little's law.
    fn rate(self) -> f64 {
        self.level / self.median.max(1e-6)
    }
}

#[derive(Debug, Clone, Copy)]
enum KneeStage {
    /// No rise so far.
    Watch,
    /// Latency rises, but throughput does, too.
    Climb { width: f64 },
    /// One cohort at the limit of a sharp knee, to compare it with the best one so far.
    Settle { width: f64, best: CohortStats },
    /// Constant, with an occasional cohort at a higher limit.
    Hold { width: f64, rate: f64, cohorts: u32, is_probing: bool },
}

impl LatencyKnee {
    pub(super) fn new() -> LatencyKnee {
        LatencyKnee {
            cohorts: VecDeque::new(),
            cohorts_started: 0,
            stage: KneeStage::Watch,
            min_latency: None,
            curve: Vec::new(),
        }
    }

    /// Returns the concurrency limit, or `None` if latency is low.
    pub(super) fn limit(&self) -> Option<f64> {
        match self.stage {
            KneeStage::Watch => None,
            KneeStage::Climb { width } | KneeStage::Settle { width, .. } => Some(width.ceil()),
            KneeStage::Hold { width, is_probing, .. } => {
                let probe = if is_probing { PROBE_FACTOR } else { 1.0 };
                Some((width * probe).ceil())
            }
        }
    }

    /// Returns whether more requests in flight do not raise throughput.
    pub(super) fn is_saturated(&self) -> bool {
        matches!(self.stage, KneeStage::Settle { .. } | KneeStage::Hold { .. })
    }

    /// Returns whether a latency is close to that of the first answers.
    pub(super) fn is_normal(&self, latency: f64) -> bool {
        self.min_latency.is_none_or(|(min_latency, _)| latency < 1.6 * min_latency)
    }

    pub(super) fn on_sent(&mut self, now: f64, number: u64, level: u32) {
        if self.cohorts.back().is_none_or(|cohort| cohort.sent.len() >= cohort.size) {
            let width = self.limit().unwrap_or(f64::from(level));
            let size = match self.cohorts_started {
                0 => FIRST_COHORT,
                1 => SECOND_COHORT,
                _ => COHORT.max((0.4 * width) as usize),
            };
            self.cohorts_started = self.cohorts_started.saturating_add(1);
            self.cohorts.push_back(Cohort::new(number, size));
        }
        if let Some(cohort) = self.cohorts.back_mut() {
            cohort.sent.push(now);
            cohort.latencies.push(None);
            cohort.levels += f64::from(level) + 1.0;
        }
    }

    pub(super) fn on_answered(&mut self, now: f64, number: u64, latency: f64) {
        for cohort in &mut self.cohorts {
            let index = number.checked_sub(cohort.first).map(usize::try_from);
            if let Some(Ok(index)) = index
                && let Some(answered) = cohort.latencies.get_mut(index)
            {
                *answered = Some(latency);
            }
        }
        let Some(cohort) = self.cohorts.front().filter(|one| one.sent.len() >= one.size) else {
            return;
        };
        let Some(median) = cohort.median(now) else { return };
        let stats = CohortStats { median, level: cohort.levels / cohort.sent.len() as f64 };
        let before = self.limit();
        self.cohorts.pop_front();
        self.update(stats);
        // Cohorts at a limit that is given up, or was not reached yet, say nothing about the new one.
        if self.is_saturated() && self.limit() != before {
            self.cohorts.clear();
        }
    }

    fn update(&mut self, stats: CohortStats) {
        let (min_latency, level) = *self.min_latency.get_or_insert((stats.median, stats.level));
        if stats.median < min_latency {
            self.min_latency = Some((stats.median, stats.level));
        }
        match &mut self.stage {
            KneeStage::Watch => {
                if stats.median > LATENCY_RISE * min_latency && stats.level > 1.3 * level {
                    self.climb(stats);
                } else {
                    self.curve.push(stats);
                }
            }
            KneeStage::Climb { .. } => self.climb(stats),
            KneeStage::Settle { best, width } => {
                if stats.rate() < EQUAL_RATE * best.rate() {
                    let best = *best;
                    self.hold(best.level, best.rate());
                } else if stats.median < QUEUE_FREE * min_latency && stats.rate() > best.rate() {
                    // The throughput from which the limit was derived was below the maximum.
                    *best = stats;
                    *width *= PROBE_FACTOR;
                } else {
                    let width = *width;
                    self.hold(width, stats.rate());
                }
            }
            KneeStage::Hold { width, rate, cohorts, is_probing } => {
                if std::mem::take(is_probing) {
                    if stats.rate() > PROBE_GAIN * *rate {
                        *width = stats.level.max(*width);
                        *rate = stats.rate();
                        *is_probing = true;
                    }
                    return;
                }
                *rate += 0.3 * (stats.rate() - *rate);
                *cohorts += 1;
                *is_probing = cohorts.is_multiple_of(PROBE_EVERY);
            }
        }
    }

    /// Raises the limit as far as throughput has grown with the level, or ends the growth.
    fn climb(&mut self, stats: CohortStats) {
        let reference = self
            .curve
            .iter()
            .filter(|point| MIN_STEP * point.level <= stats.level)
            .max_by(|one, other| one.level.total_cmp(&other.level));
        let elasticity = reference.map_or(1.0, |reference| {
            (stats.rate() / reference.rate()).ln() / (stats.level / reference.level).ln()
        });
        self.curve.push(stats);
        if elasticity >= MIN_ELASTICITY {
            let width = stats.level * (1.0 + 2.0 * elasticity.min(1.0));
            self.stage = KneeStage::Climb { width };
            return;
        }
        let max_rate = self.curve.iter().map(|point| point.rate()).fold(0.0, f64::max);
        let best = self
            .curve
            .iter()
            .filter(|point| point.rate() >= EQUAL_RATE * max_rate)
            .min_by(|one, other| one.level.total_cmp(&other.level));
        let (Some(&best), Some((min_latency, _))) = (best, self.min_latency) else { return };
        let width = (KNEE_RESERVE * max_rate * min_latency).max(1.0);
        // A slower point above the knee shows that the curve has none there.
        let is_refuted = self.curve.iter().any(|point| {
            (width..best.level).contains(&point.level) && point.rate() < 0.9 * max_rate
        });
        if width < best.level && !is_refuted {
            self.stage = KneeStage::Settle { width, best };
        } else {
            self.hold(best.level.max(width.min(MIN_STEP * best.level)), best.rate());
        }
    }

    fn hold(&mut self, width: f64, rate: f64) {
        self.curve.clear();
        self.stage = KneeStage::Hold { width, rate, cohorts: 0, is_probing: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            knee.on_answered(now, ended, duration);
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
        assert!(limit > 500.0, "{limit}");
        let limit = run(|level| 1.0 + 0.1 * level, 1000.0, 4000).unwrap();
        assert!((40.0..250.0).contains(&limit), "saturates at ten per second: {limit}");
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
