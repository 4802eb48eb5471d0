//! Detection of a latency knee: a provider that slows down instead of rejecting, as GPU servers do.
//!
//! Above the knee, additional requests in flight only queue: latency grows and throughput does not.
//! Latency is compared between cohorts of consecutive requests. Once it has risen, the limit is lowered
//! until latency stops falling, and then kept slightly above the knee: by Little's law, throughput
//! times unloaded latency is the number of requests that keeps the provider busy.

/// Requests in the first cohort, which measures the unloaded latency, and in later ones.
const FIRST_COHORT: u64 = 8;
const COHORT: u64 = 30;
/// Latency has risen if it exceeds the minimum by this factor.
const LATENCY_RISE: f64 = 1.4;

/// The cohorts' measurements and the resulting limit.
#[derive(Debug)]
pub(super) struct LatencyKnee {
    cohort: Option<Cohort>,
    size: u64,
    stage: KneeStage,
    /// Minimum of the cohorts' median latencies, and the requests in flight then.
    min_latency: Option<(f64, f64)>,
    completions: u64,
}

#[derive(Debug)]
struct Cohort {
    first: u64,
    latencies: Vec<f64>,
    levels: f64,
    sends: u64,
    started: f64,
    completions: u64,
}

/// The measurements of a cohort.
#[derive(Debug, Clone, Copy)]
struct CohortStats {
    median: f64,
    level: f64,
    /// Answers per second.
    rate: f64,
}

#[derive(Debug, Clone, Copy)]
enum KneeStage {
    /// No rise so far.
    Watch,
    /// One cohort at about the number that keeps the provider busy.
    Settle { width: f64, last: CohortStats },
    /// Constant, with an occasional cohort at a higher limit.
    Hold { rate: f64, latency: f64, cohorts: u32, before: Option<f64> },
}

impl LatencyKnee {
    pub(super) fn new() -> LatencyKnee {
        LatencyKnee {
            cohort: None,
            size: FIRST_COHORT,
            stage: KneeStage::Watch,
            min_latency: None,
            completions: 0,
        }
    }

    /// Returns the concurrency limit, or `None` if there is no knee.
    pub(super) fn limit(&self) -> Option<f64> {
        match self.stage {
            KneeStage::Watch => None,
            KneeStage::Settle { width, .. } => Some(width),
            KneeStage::Hold { rate, latency, before, .. } => {
                let probe = if before.is_some() { 1.35 } else { 1.0 };
                Some((rate * latency * probe).max(1.0).ceil())
            }
        }
    }

    /// Returns whether a latency is close to that of the first answers.
    pub(super) fn is_normal(&self, latency: f64) -> bool {
        self.min_latency.is_none_or(|(min_latency, _)| latency < 2.5 * min_latency)
    }

    pub(super) fn on_sent(&mut self, now: f64, number: u64, level: u32) {
        let completions = self.completions;
        let cohort = self.cohort.get_or_insert_with(|| Cohort {
            first: number,
            latencies: Vec::new(),
            levels: 0.0,
            sends: 0,
            started: now,
            completions,
        });
        if cohort.sends < self.size {
            cohort.sends += 1;
            cohort.levels += f64::from(level) + 1.0;
        }
    }

    pub(super) fn on_answered(&mut self, now: f64, number: u64, latency: f64) {
        self.completions += 1;
        let Some(cohort) = &mut self.cohort else { return };
        if !(cohort.first..cohort.first + self.size).contains(&number) {
            return;
        }
        cohort.latencies.push(latency);
        // Requests still in flight take longer than these, so the median is known.
        if (cohort.latencies.len() as u64) <= self.size / 2 || cohort.sends < self.size {
            return;
        }
        cohort.latencies.sort_by(f64::total_cmp);
        let median = cohort.latencies[cohort.latencies.len() - 1];
        let elapsed = (now - cohort.started).max(1e-6);
        let stats = CohortStats {
            median,
            level: cohort.levels / cohort.sends as f64,
            rate: (self.completions - cohort.completions) as f64 / elapsed,
        };
        self.cohort = None;
        self.update(stats);
        let width = self.limit().unwrap_or(stats.level);
        self.size = COHORT.max((0.4 * width) as u64);
    }

    fn update(&mut self, stats: CohortStats) {
        let (min_latency, level) = *self.min_latency.get_or_insert((stats.median, stats.level));
        if stats.median < min_latency {
            self.min_latency = Some((stats.median, stats.level));
        }
        match &mut self.stage {
            KneeStage::Watch => {
                if stats.median > LATENCY_RISE * min_latency && stats.level > 1.3 * level {
                    let width = (1.3 * stats.level * min_latency / stats.median).max(1.0);
                    self.stage = KneeStage::Settle { width, last: stats };
                }
            }
            KneeStage::Settle { last, .. } => {
                self.stage = KneeStage::Hold {
                    rate: stats.rate.max(last.rate),
                    latency: stats.median.min(last.median),
                    cohorts: 0,
                    before: None,
                };
            }
            KneeStage::Hold { rate, latency, cohorts, before } => {
                let share = if stats.rate > *rate { 0.35 } else { 0.05 };
                if let Some(baseline) = before.take() {
                    // A higher limit raised the throughput: there was no knee, or it has moved.
                    if stats.rate > 1.1 * baseline {
                        *latency *= 1.22;
                    }
                } else {
                    *cohorts += 1;
                    if *cohorts % 8 == 0 {
                        *before = Some(stats.rate);
                    }
                }
                *rate += share * (stats.rate - *rate);
                if stats.median < *latency {
                    *latency += 0.15 * (stats.median - *latency);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one cohort at that level and latency.
    fn run(knee: &mut LatencyKnee, number: &mut u64, now: &mut f64, level: u32, latency: f64) {
        for _ in 0..knee.size {
            knee.on_sent(*now, *number, level);
            *now += latency / f64::from(level + 1);
            knee.on_answered(*now, *number, latency);
            *number += 1;
        }
    }

    #[test]
    fn latency_that_grows_with_load_is_a_knee() {
        let (mut knee, mut number, mut now) = (LatencyKnee::new(), 0, 0.0);
        run(&mut knee, &mut number, &mut now, 9, 1.0);
        assert_eq!(knee.limit(), None);
        // The server processes ten requests at a time and queues the rest.
        run(&mut knee, &mut number, &mut now, 39, 4.0);
        let first = knee.limit().unwrap();
        assert!(first < 20.0, "{first}");
        for _ in 0..6 {
            let level = knee.limit().unwrap();
            let latency = (level / 10.0).max(1.0);
            run(&mut knee, &mut number, &mut now, level as u32 - 1, latency);
        }
        let limit = knee.limit().unwrap();
        assert!((7.0..=14.0).contains(&limit), "{limit}");
    }

    #[test]
    fn constant_latency_is_no_knee() {
        let (mut knee, mut number, mut now) = (LatencyKnee::new(), 0, 0.0);
        for level in [9, 19, 39, 79, 159] {
            run(&mut knee, &mut number, &mut now, level, 1.0);
        }
        assert_eq!(knee.limit(), None);
        assert!(knee.is_normal(2.0));
        assert!(!knee.is_normal(3.0));
    }
}
