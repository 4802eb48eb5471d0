//! Search for the best fixed concurrency limit of a provider.

use super::strategy::{CEILING, WorldStrategy};
use crate::Error;
use crate::http_run::HttpFigures;
use std::collections::BTreeMap;
use std::time::Duration;

/// Geometric grid, best guess first. The search assumes a single optimum.
const START: u32 = 100;
const FACTOR: u32 = 4;
/// Number of runs of a search, for the estimate of the total time.
pub(crate) const EXPECTED_RUNS: f64 = 5.0;
/// A run that takes longer than the best one by this factor cannot become the best.
const TOLERANCE: f64 = 1.05;

/// Best fixed limit and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BestFixed {
    pub(crate) connections: u32,
    pub(crate) seconds: f64,
}

/// Finds the fixed limit with the shortest time. `measure` runs a strategy with an optional time limit.
pub(crate) fn best_fixed(
    measure: &mut dyn FnMut(WorldStrategy, Option<Duration>) -> Result<HttpFigures, Error>,
) -> Result<BestFixed, Error> {
    let mut search = Search { measure, seconds: BTreeMap::new() };
    search.try_limit(START)?;
    search.climb(|limit| (limit < CEILING).then(|| (limit * FACTOR).min(CEILING)))?;
    search.climb(|limit| (limit > 1).then(|| (limit / FACTOR).max(1)))?;
    let best = search.best();
    for limit in [best.connections * 2, best.connections / 2] {
        if (1..=CEILING).contains(&limit) {
            search.try_limit(limit)?;
        }
    }
    Ok(search.best())
}

struct Search<'a> {
    measure: &'a mut dyn FnMut(WorldStrategy, Option<Duration>) -> Result<HttpFigures, Error>,
    /// Seconds by limit; infinite for stopped runs and runs with lost calls.
    seconds: BTreeMap<u32, f64>,
}

impl Search<'_> {
    /// Measures limits in one direction while they improve on the best one.
    fn climb(&mut self, next: impl Fn(u32) -> Option<u32>) -> Result<(), Error> {
        while let Some(limit) = next(self.best().connections) {
            if self.seconds.contains_key(&limit) {
                break;
            }
            let before = self.best().seconds;
            if self.try_limit(limit)? >= before {
                break;
            }
        }
        Ok(())
    }

    fn try_limit(&mut self, limit: u32) -> Result<f64, Error> {
        let best = self.best().seconds;
        let time_limit = best.is_finite().then(|| Duration::from_secs_f64(best * TOLERANCE));
        let figures = (self.measure)(WorldStrategy::Fixed(limit), time_limit)?;
        let is_valid = !figures.is_stopped && figures.lost == 0;
        let seconds = if is_valid { figures.seconds } else { f64::INFINITY };
        self.seconds.insert(limit, seconds);
        Ok(seconds)
    }

    fn best(&self) -> BestFixed {
        let best = self.seconds.iter().min_by(|one, other| one.1.total_cmp(other.1));
        let (connections, seconds) = best.map_or((START, f64::INFINITY), |(limit, s)| (*limit, *s));
        BestFixed { connections, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with a function from limit to seconds; returns the result and the measured limits.
    fn search(seconds: impl Fn(u32) -> f64) -> (BestFixed, Vec<u32>) {
        let mut limits = Vec::new();
        let best = best_fixed(&mut |strategy, time_limit| {
            let WorldStrategy::Fixed(limit) = strategy else { panic!("{strategy}") };
            limits.push(limit);
            let seconds = seconds(limit);
            Ok(HttpFigures {
                seconds,
                answered: 1,
                lost: 0,
                rejections_per_success: 0.0,
                latency_p50_ms: None,
                is_stopped: time_limit.is_some_and(|limit| limit.as_secs_f64() < seconds),
            })
        })
        .unwrap();
        (best, limits)
    }

    #[test]
    fn search_finds_the_optimum_in_either_direction() {
        let (best, limits) = search(|limit| 1000.0 / f64::from(limit));
        assert_eq!((best.connections, limits), (1000, vec![100, 400, 1000, 250, 500]));
        let (best, limits) = search(|limit| f64::from(limit.abs_diff(12)) + 10.0);
        assert_eq!((best.connections, best.seconds), (12, 10.0));
        assert_eq!(limits, [100, 400, 25, 6, 1, 12, 3]);
    }

    #[test]
    fn runs_with_lost_calls_are_not_the_best() {
        let best = best_fixed(&mut |strategy, _| {
            Ok(HttpFigures {
                seconds: if strategy == WorldStrategy::Fixed(400) { 1.0 } else { 2.0 },
                answered: 1,
                lost: u64::from(strategy == WorldStrategy::Fixed(400)),
                rejections_per_success: 0.0,
                latency_p50_ms: None,
                is_stopped: false,
            })
        });
        assert_ne!(best.unwrap().connections, 400);
    }
}
