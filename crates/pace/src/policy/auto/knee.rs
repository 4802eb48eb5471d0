//! The hypothesis that the provider slows down instead of rejecting, as a server with GPUs does.
//!
//! Above its knee more requests in flight only wait for each other: latency grows and throughput
//! does not. Latency is compared between cohorts of requests that went out one after the other.
//! Once it has risen we go down until it falls no more, and then stay a little above the knee:
//! by Little's law throughput times undisturbed latency is the number that keeps it busy.

/// Requests in the first cohort, which shows the undisturbed latency, and in later ones.
const FIRST_COHORT: u64 = 8;
const COHORT: u64 = 30;
/// Latency has risen when it is so many times the least.
const LATENCY_RISE: f64 = 1.4;

#[derive(Debug)]
pub(super) struct LatencyKnee {
    cohort: Option<Cohort>,
    size: u64,
    stage: KneeStage,
    /// The least median latency of a cohort, and how many were in flight then.
    least: Option<(f64, f64)>,
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

/// What a cohort showed.
#[derive(Debug, Clone, Copy)]
struct CohortStats {
    median: f64,
    level: f64,
    /// Answers per second.
    rate: f64,
}

#[derive(Debug, Clone, Copy)]
enum KneeStage {
    /// Nothing unusual so far.
    Watch,
    /// One cohort with about as many as keep it busy.
    Settle { width: f64, last: CohortStats },
    /// Staying, but for a cohort now and then with more.
    Hold { rate: f64, latency: f64, cohorts: u32, before: Option<f64> },
}

impl LatencyKnee {
    pub(super) fn new() -> LatencyKnee {
        LatencyKnee {
            cohort: None,
            size: FIRST_COHORT,
            stage: KneeStage::Watch,
            least: None,
            completions: 0,
        }
    }

    /// How many may be in flight; `None` when there is no knee in sight.
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

    /// Whether an answer took about as long as the first ones did.
    pub(super) fn is_usual(&self, latency: f64) -> bool {
        self.least.is_none_or(|(least, _)| latency < 2.5 * least)
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
        // Those that are still on their way take longer than these: the median is known.
        if (cohort.latencies.len() as u64) <= self.size / 2 || cohort.sends < self.size {
            return;
        }
        cohort.latencies.sort_by(f64::total_cmp);
        let median = cohort.latencies[cohort.latencies.len() - 1];
        let elapsed = (now - cohort.started).max(1e-6);
        let shown = CohortStats {
            median,
            level: cohort.levels / cohort.sends as f64,
            rate: (self.completions - cohort.completions) as f64 / elapsed,
        };
        self.cohort = None;
        self.look(shown);
        let width = self.limit().unwrap_or(shown.level);
        self.size = COHORT.max((0.4 * width) as u64);
    }

    fn look(&mut self, shown: CohortStats) {
        let (least, level) = *self.least.get_or_insert((shown.median, shown.level));
        if shown.median < least {
            self.least = Some((shown.median, shown.level));
        }
        match &mut self.stage {
            KneeStage::Watch => {
                if shown.median > LATENCY_RISE * least && shown.level > 1.3 * level {
                    let width = (1.3 * shown.level * least / shown.median).max(1.0);
                    self.stage = KneeStage::Settle { width, last: shown };
                }
            }
            KneeStage::Settle { last, .. } => {
                self.stage = KneeStage::Hold {
                    rate: shown.rate.max(last.rate),
                    latency: shown.median.min(last.median),
                    cohorts: 0,
                    before: None,
                };
            }
            KneeStage::Hold { rate, latency, cohorts, before } => {
                let share = if shown.rate > *rate { 0.35 } else { 0.05 };
                if let Some(usual) = before.take() {
                    // More in flight did more: that was no knee, or it has moved.
                    if shown.rate > 1.1 * usual {
                        *latency *= 1.22;
                    }
                } else {
                    *cohorts += 1;
                    if *cohorts % 8 == 0 {
                        *before = Some(shown.rate);
                    }
                }
                *rate += share * (shown.rate - *rate);
                if shown.median < *latency {
                    *latency += 0.15 * (shown.median - *latency);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cohort at that level, each answer taking that long.
    fn run(knee: &mut LatencyKnee, number: &mut u64, now: &mut f64, level: u32, latency: f64) {
        for _ in 0..knee.size {
            knee.on_sent(*now, *number, level);
            *now += latency / f64::from(level + 1);
            knee.on_answered(*now, *number, latency);
            *number += 1;
        }
    }

    #[test]
    fn answers_that_become_slower_with_more_in_flight_are_a_knee() {
        let (mut knee, mut number, mut now) = (LatencyKnee::new(), 0, 0.0);
        run(&mut knee, &mut number, &mut now, 9, 1.0);
        assert_eq!(knee.limit(), None);
        // A server with ten places: everything above waits.
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
    fn steady_answers_are_no_knee() {
        let (mut knee, mut number, mut now) = (LatencyKnee::new(), 0, 0.0);
        for level in [9, 19, 39, 79, 159] {
            run(&mut knee, &mut number, &mut now, level, 1.0);
        }
        assert_eq!(knee.limit(), None);
        assert!(knee.is_usual(2.0));
        assert!(!knee.is_usual(3.0));
    }
}
