//! Latency by load, measured over cohorts of consecutive requests.

use std::collections::VecDeque;

/// Requests in the first cohort, which measures the unloaded latency, in the second, and in later ones.
const FIRST_COHORT: usize = 8;
const SECOND_COHORT: usize = 12;
const MIN_COHORT: usize = 30;
/// Size of a cohort as a share of the concurrency limit.
const COHORT_SHARE: f64 = 0.4;
/// Distance of the lower quartile from the median of a normal distribution, in standard deviations.
const QUARTILE: f64 = 0.674;
/// Standard error of a median, as a multiple of that of the mean.
const MEDIAN_ERROR: f64 = 1.25;
/// Minimum of times that are divided by.
const MIN_SECONDS: f64 = 1e-6;

/// What the latency of a request depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadModel {
    /// The requests in flight share the server: the mean number in flight until the answer counts.
    Shared,
    /// Requests queue: the number in flight when the request was sent counts.
    Queued,
}

/// The measurements of a cohort.
#[derive(Debug, Clone, Copy)]
pub(super) struct CohortStats {
    /// Median latency, and the standard error of its logarithm.
    pub(super) latency: f64,
    pub(super) error: f64,
    level_at_send: f64,
    mean_level: f64,
}

impl CohortStats {
    /// Returns the number of requests in flight.
    pub(super) fn level(self, model: LoadModel) -> f64 {
        match model {
            LoadModel::Shared => self.mean_level,
            LoadModel::Queued => self.level_at_send,
        }
    }

    /// Returns the answers per second at this level, by Little's law.
    pub(super) fn rate(self, model: LoadModel) -> f64 {
        self.level(model) / self.latency.max(MIN_SECONDS)
    }

    /// Returns the bounds of the latency, one standard error from the median.
    pub(super) fn latency_bounds(self) -> (f64, f64) {
        (self.latency / self.error.exp(), self.latency * self.error.exp())
    }
}

/// The unfinished cohorts.
#[derive(Debug, Default)]
pub(super) struct Cohorts {
    /// The oldest first.
    cohorts: VecDeque<Cohort>,
    started: u32,
    load: LoadIntegral,
}

impl Cohorts {
    /// Handles a request that is sent at a level; `width` is the current concurrency limit.
    pub(super) fn on_sent(&mut self, now: f64, number: u64, level: u32, width: f64) {
        self.load.set(now, level + 1);
        if self.cohorts.back().is_none_or(Cohort::is_full) {
            let size = match self.started {
                0 => FIRST_COHORT,
                1 => SECOND_COHORT,
                _ => MIN_COHORT.max((COHORT_SHARE * width) as usize),
            };
            self.started = self.started.saturating_add(1);
            self.cohorts.push_back(Cohort { missing: size, requests: Vec::new() });
        }
        if let Some(cohort) = self.cohorts.back_mut() {
            cohort.missing -= 1;
            cohort.requests.push(CohortRequest {
                number,
                sent_at: now,
                load_before: self.load.sum,
                level: f64::from(level) + 1.0,
                answer: None,
            });
        }
    }

    /// Handles the end of a request, after which `in_flight` are left.
    pub(super) fn on_ended(&mut self, now: f64, in_flight: u32) {
        self.load.set(now, in_flight);
    }

    /// Handles an answer. Returns the measurements of the oldest cohort once they are final.
    pub(super) fn on_answered(
        &mut self,
        now: f64,
        number: u64,
        latency: f64,
    ) -> Option<CohortStats> {
        for cohort in &mut self.cohorts {
            if let Some(index) = cohort.position(number) {
                let request = &mut cohort.requests[index];
                let mean_level = (self.load.sum - request.load_before) / latency.max(MIN_SECONDS);
                request.answer = Some((latency, mean_level));
                break;
            }
        }
        let stats = self.cohorts.front().filter(|cohort| cohort.is_full())?.stats(now)?;
        self.cohorts.pop_front();
        Some(stats)
    }

    /// Removes a request that will not be answered.
    pub(super) fn on_discarded(&mut self, number: u64) {
        let found =
            self.cohorts.iter_mut().find_map(|cohort| Some((cohort.position(number)?, cohort)));
        if let Some((index, cohort)) = found {
            cohort.requests.remove(index);
        }
        self.cohorts.retain(|cohort| !cohort.is_full() || !cohort.requests.is_empty());
    }

    /// Discards the unfinished cohorts.
    pub(super) fn clear(&mut self) {
        self.cohorts.clear();
    }
}

/// Consecutive requests that are measured together.
#[derive(Debug)]
struct Cohort {
    /// Requests that have yet to be sent.
    missing: usize,
    /// In the order of their numbers.
    requests: Vec<CohortRequest>,
}

#[derive(Debug, Clone, Copy)]
struct CohortRequest {
    number: u64,
    sent_at: f64,
    /// Integral of the load when it was sent.
    load_before: f64,
    /// Requests in flight when it was sent, itself included.
    level: f64,
    /// Latency, and the mean number in flight meanwhile, if it was answered.
    answer: Option<(f64, f64)>,
}

impl Cohort {
    fn is_full(&self) -> bool {
        self.missing == 0
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.requests.binary_search_by_key(&number, |request| request.number).ok()
    }

    /// Returns the measurements as soon as the unanswered requests cannot change the median.
    fn stats(&self, now: f64) -> Option<CohortStats> {
        let count = self.requests.len();
        let mut known: Vec<(f64, f64, f64)> = (self.requests.iter())
            .filter_map(|request| request.answer.map(|answer| (answer.0, answer.1, request.level)))
            .collect();
        known.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (latency, ..) = *known.get(count / 2)?;
        let is_final =
            |request: &CohortRequest| request.answer.is_some() || now - request.sent_at >= latency;
        if !self.requests.iter().all(is_final) {
            return None;
        }
        // Slow answers may be missing, so the lower quartile shows the spread.
        let (quartile, ..) = known[count / 4];
        let spread = (latency / quartile.max(MIN_SECONDS)).ln() / QUARTILE;
        // If the limit has changed meanwhile, only these requests had the level of the median.
        let middle = &known[count / 3..known.len().min(2 * count / 3 + 1)];
        let mean = |level: fn(&(f64, f64, f64)) -> f64| {
            middle.iter().map(level).sum::<f64>() / middle.len() as f64
        };
        Some(CohortStats {
            latency,
            error: MEDIAN_ERROR * spread.max(0.0) / (count as f64).sqrt(),
            level_at_send: mean(|request| request.2),
            mean_level: mean(|request| request.1),
        })
    }
}

/// Integral of the number of requests in flight over time.
#[derive(Debug, Default)]
struct LoadIntegral {
    at: f64,
    in_flight: f64,
    sum: f64,
}

impl LoadIntegral {
    /// Sets the number in flight from `now` on.
    fn set(&mut self, now: f64, in_flight: u32) {
        self.sum += (now - self.at).max(0.0) * self.in_flight;
        self.at = now;
        self.in_flight = f64::from(in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a cohort of eight at time 0, then answers them with these latencies.
    fn cohort(latencies: [f64; FIRST_COHORT]) -> Option<CohortStats> {
        let mut cohorts = Cohorts::default();
        (0..8).for_each(|number| cohorts.on_sent(0.0, number, number as u32, 20.0));
        let mut order: Vec<(u64, f64)> = (0..).zip(latencies).collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut in_flight = 8;
        order.into_iter().find_map(|(number, latency)| {
            in_flight -= 1;
            cohorts.on_ended(latency, in_flight);
            cohorts.on_answered(latency, number, latency)
        })
    }

    #[test]
    fn median_is_known_before_the_slowest_answers() {
        let stats = cohort([1.0, 1.0, 2.0, 2.0, 4.0, 90.0, 90.0, 90.0]).unwrap();
        assert_eq!(stats.latency, 4.0);
        // The third, fourth and fifth request have about the median latency.
        assert_eq!(stats.level(LoadModel::Queued), 4.0);
        // 8 in flight for a second, 6 for the next, and 4 for two: two of them have a mean of 7, one of 5.5.
        assert_eq!(stats.level(LoadModel::Shared), 6.5);
        assert_eq!(stats.rate(LoadModel::Shared), 6.5 / 4.0);
    }

    #[test]
    fn error_grows_with_the_spread_of_latencies() {
        let narrow = cohort([1.0; 8]).unwrap();
        assert_eq!((narrow.error, narrow.latency_bounds()), (0.0, (1.0, 1.0)));
        let wide = cohort([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        let (low, high) = wide.latency_bounds();
        assert!((3.0..4.5).contains(&low) && (5.5..8.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn requests_without_answers_are_left_out() {
        let mut cohorts = Cohorts::default();
        // Numbers need not be consecutive.
        (0..8).for_each(|number| cohorts.on_sent(0.0, 3 * number, number as u32, 20.0));
        (0..5).for_each(|number| cohorts.on_discarded(3 * number));
        let stats = (5..8).find_map(|number| cohorts.on_answered(2.0, 3 * number, 2.0)).unwrap();
        assert_eq!(stats.latency, 2.0);
        (100..112).for_each(|number| cohorts.on_sent(3.0, number, 0, 20.0));
        (100..112).for_each(|number| cohorts.on_discarded(number));
        assert!(cohorts.cohorts.is_empty());
    }
}
