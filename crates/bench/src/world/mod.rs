//! Comparison of strategies over loopback HTTP in real time, under the conditions of real servers: jitter, wrong
//! hints, random rejections, batching, windows, outages, HTTP/2, faults and changing limits.
//!
//! Each row is a simulated provider in a separate process. Efficiency is the time of a reference divided by the
//! measured time: the shortest possible time, or that of the best fixed concurrency limit, which is measured on the
//! same provider or, for random mixes, in virtual time.

mod ideal;
mod mixes;
mod rows;
mod search;
mod strategy;

pub use strategy::WorldStrategy;

use crate::http_run::HttpRun;
use crate::{Error, proxy};
use bakeoff_sim::Profile;
use rows::{Reference, WorldRow};
use std::path::PathBuf;
use std::time::Duration;

/// A run is stopped after this multiple of the reference time, but not before `MIN_EXTRA_SECONDS` more than it.
const MAX_SLOWDOWN: f64 = 5.0;
const MIN_EXTRA_SECONDS: f64 = 400.0;

/// Configuration of the world benchmark.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    /// Path of the program `bakeoff`.
    pub program: PathBuf,
    /// Names of rows; all if empty and there are no mixes.
    pub rows: Vec<String>,
    /// Number and seed of random mixes.
    pub mixes: Option<(u32, u64)>,
    /// Strategies to compare.
    pub strategies: Vec<WorldStrategy>,
    /// Factor on the length of all rows.
    pub scale: f64,
}

/// Benchmark with its rows.
#[derive(Debug)]
pub struct World {
    program: PathBuf,
    strategies: Vec<WorldStrategy>,
    rows: Vec<(WorldRow, Profile)>,
}

/// Progress of the benchmark.
#[derive(Debug, Clone, PartialEq)]
pub enum WorldEvent<'a> {
    /// A run starts.
    Started {
        /// Name of the row.
        row: &'a str,
        /// Strategy, or fixed limit of the search for the reference.
        strategy: WorldStrategy,
        /// Whether the run is part of the search for the reference.
        is_search: bool,
    },
    /// A row or a strategy is not measured.
    Skipped {
        /// Name of the row.
        row: &'a str,
        /// Reason.
        reason: String,
    },
    /// A run ended.
    Measured(WorldResult),
}

/// Results of one strategy on one row.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldResult {
    /// Name of the row.
    pub row: String,
    /// Keys of the provider's profile, as TOML.
    pub profile: String,
    /// Number of calls.
    pub calls: u32,
    /// Reference: `ideal`, `fixed` for the best limit in virtual time, or `fixed-N`.
    pub reference: String,
    /// Time of the reference; infinite if every fixed limit loses calls.
    pub reference_seconds: f64,
    /// Strategy.
    pub strategy: WorldStrategy,
    /// Measured seconds, including the start of the program.
    pub seconds: f64,
    /// Reference time divided by the measured time, times the share of answered calls.
    pub efficiency: f64,
    /// Rejections per answered call.
    pub rejections_per_success: f64,
    /// Calls without a correct answer.
    pub lost: u64,
    /// Median latency that the run reports.
    pub latency_p50_ms: Option<u64>,
    /// Whether the run was stopped at the time limit.
    pub is_stopped: bool,
}

/// Time with which a row's strategies are compared.
struct ReferenceTime {
    name: String,
    seconds: f64,
}

/// Returns the names of all rows.
pub fn row_names() -> Vec<String> {
    rows::rows(1.0).into_iter().map(|row| row.name).collect()
}

impl World {
    /// Selects the rows.
    ///
    /// # Errors
    ///
    /// Fails if a row is unknown or has an invalid profile.
    pub fn new(config: WorldConfig) -> Result<World, Error> {
        let mut all = rows::rows(config.scale);
        if let Some(unknown) =
            config.rows.iter().find(|name| all.iter().all(|row| row.name != **name))
        {
            return Err(Error::UnknownRow(unknown.clone()));
        }
        if config.rows.is_empty() && config.mixes.is_some() {
            all.clear();
        }
        all.retain(|row| config.rows.is_empty() || config.rows.contains(&row.name));
        if let Some((count, seed)) = config.mixes {
            all.extend(mixes::mixes(count, seed, config.scale));
        }
        let parse = |row: WorldRow| match Profile::parse_file_text(&format!(
            "[[profile]]\n{}\n",
            row.profile
        )) {
            Ok(mut profiles) => Ok((row, profiles.remove(0))),
            Err(source) => Err(Error::Profile { row: row.name, source }),
        };
        let rows = all.into_iter().map(parse).collect::<Result<_, Error>>()?;
        Ok(World { program: config.program, strategies: config.strategies, rows })
    }

    /// Returns the approximate duration of the benchmark, if every strategy is as fast as the reference.
    pub fn estimated_seconds(&self) -> f64 {
        let seconds = |(row, profile): &(WorldRow, Profile)| {
            let runs = row.strategies.select(&self.strategies).len() as f64;
            match row.reference {
                Reference::Ideal { ceiling } | Reference::SimulatedFixed { ceiling } => {
                    runs * ideal::seconds(profile, row.calls, ceiling)
                }
                Reference::BestFixed { expected_seconds } => {
                    (runs + search::EXPECTED_RUNS) * expected_seconds
                }
            }
        };
        self.rows.iter().map(seconds).sum()
    }

    /// Measures all rows, one after the other.
    ///
    /// # Errors
    ///
    /// Fails if a process cannot be started or prints no result.
    pub fn run(&self, on_event: &mut dyn FnMut(WorldEvent<'_>)) -> Result<(), Error> {
        let missing = proxy::missing_programs();
        for (row, profile) in &self.rows {
            if row.http2_streams.is_some() && !missing.is_empty() {
                let reason = format!("not installed: {}", missing.join(", "));
                on_event(WorldEvent::Skipped { row: &row.name, reason });
                continue;
            }
            self.run_row(row, profile, on_event)?;
        }
        Ok(())
    }

    fn run_row(
        &self,
        row: &WorldRow,
        profile: &Profile,
        on_event: &mut dyn FnMut(WorldEvent<'_>),
    ) -> Result<(), Error> {
        let reference = self.reference(row, profile, on_event)?;
        let limit = (reference.seconds * MAX_SLOWDOWN).max(reference.seconds + MIN_EXTRA_SECONDS);
        let time_limit = Duration::try_from_secs_f64(limit).ok();
        for strategy in row.strategies.select(&self.strategies) {
            let Some(limits) = strategy.limits(row.rpm) else {
                let reason = format!("{strategy} needs a limit per minute");
                on_event(WorldEvent::Skipped { row: &row.name, reason });
                continue;
            };
            on_event(WorldEvent::Started { row: &row.name, strategy, is_search: false });
            let figures = self.http_run(row, &limits, time_limit).measure()?;
            let share = figures.answered as f64 / f64::from(row.calls);
            on_event(WorldEvent::Measured(WorldResult {
                row: row.name.clone(),
                profile: row.profile.clone(),
                calls: row.calls,
                reference: reference.name.clone(),
                reference_seconds: reference.seconds,
                strategy,
                seconds: figures.seconds,
                efficiency: reference.seconds / figures.seconds * share,
                rejections_per_success: figures.rejections_per_success,
                lost: figures.lost,
                latency_p50_ms: figures.latency_p50_ms,
                is_stopped: figures.is_stopped,
            }));
        }
        Ok(())
    }

    fn reference(
        &self,
        row: &WorldRow,
        profile: &Profile,
        on_event: &mut dyn FnMut(WorldEvent<'_>),
    ) -> Result<ReferenceTime, Error> {
        match row.reference {
            Reference::Ideal { ceiling } => Ok(ReferenceTime {
                name: "ideal".to_owned(),
                seconds: ideal::seconds(profile, row.calls, ceiling),
            }),
            Reference::SimulatedFixed { ceiling } => Ok(ReferenceTime {
                name: "fixed".to_owned(),
                seconds: ideal::fixed_seconds(profile, row.calls, ceiling),
            }),
            Reference::BestFixed { .. } => {
                let mut measure = |strategy: WorldStrategy, time_limit| {
                    on_event(WorldEvent::Started { row: &row.name, strategy, is_search: true });
                    let limits = strategy.limits(None).unwrap_or_default();
                    self.http_run(row, &limits, time_limit).measure()
                };
                let best = search::best_fixed(&mut measure)?;
                let name = WorldStrategy::Fixed(best.connections).to_string();
                Ok(ReferenceTime { name, seconds: best.seconds })
            }
        }
    }

    fn http_run<'a>(
        &'a self,
        row: &'a WorldRow,
        limits: &'a str,
        time_limit: Option<Duration>,
    ) -> HttpRun<'a> {
        HttpRun {
            program: &self.program,
            profile: &row.profile,
            calls: row.calls,
            limits,
            http2_streams: row.http2_streams,
            time_limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> WorldConfig {
        WorldConfig {
            program: PathBuf::new(),
            rows: Vec::new(),
            mixes: None,
            strategies: vec![WorldStrategy::Auto],
            scale: 1.0,
        }
    }

    #[test]
    fn rows_are_valid_and_long_enough() {
        let world = World::new(config()).unwrap();
        assert_eq!(world.rows.len(), 17);
        for (row, profile) in &world.rows {
            if let Reference::Ideal { ceiling } = row.reference {
                let seconds = ideal::seconds(profile, row.calls, ceiling);
                let is_long = (60.0..150.0).contains(&seconds) || row.http2_streams.is_some();
                assert!(is_long, "{}: {seconds} s", row.name);
            }
        }
    }

    #[test]
    fn scale_shortens_the_rows() {
        let seconds = |scale| {
            let rows = vec!["outage-503-cap-30".to_owned(), "rate-5-20-8".to_owned()];
            World::new(WorldConfig { rows, scale, ..config() }).unwrap().estimated_seconds()
        };
        let ratio = seconds(0.2) / seconds(1.0);
        assert!((0.18..0.22).contains(&ratio), "{ratio}");
    }

    #[test]
    fn rows_and_mixes_are_selected() {
        let names = |config: WorldConfig| {
            let world = World::new(config).unwrap();
            world.rows.iter().map(|(row, _)| row.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(config()), row_names());
        let rows = vec!["rate-5-20-8".to_owned(), "bucket-jitter".to_owned()];
        assert_eq!(names(WorldConfig { rows: rows.clone(), ..config() }).len(), 2);
        let mixes = Some((3, 1));
        assert_eq!(names(WorldConfig { mixes, ..config() }).len(), 3);
        assert_eq!(names(WorldConfig { mixes, rows, ..config() }).len(), 5);
        let rows = vec!["no-such-row".to_owned()];
        let error = World::new(WorldConfig { rows, ..config() }).unwrap_err();
        assert_eq!(error.to_string(), "no row `no-such-row`");
    }

    #[test]
    fn row_strategies_extend_or_replace_the_chosen_ones() {
        let world = World::new(config()).unwrap();
        let select = |name: &str| {
            let (row, _) = world.rows.iter().find(|(row, _)| row.name == name).unwrap();
            let names = row.strategies.select(&[WorldStrategy::Auto, WorldStrategy::Reactive]);
            names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(select("bucket-jitter"), "auto reactive");
        assert_eq!(select("sliding-10-per-60s"), "auto reactive proactive");
        assert_eq!(select("http2-10-streams"), "fixed-100");
    }
}
