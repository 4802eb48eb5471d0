//! Benchmarks of Bakeoff against alternatives.
//!
//! Each benchmark measures all alternatives in one run, because machines are noisy: ratios are more
//! reliable than absolute figures.

mod bare;
mod engine;
mod flight;
pub mod honesty;
mod http_run;
pub mod map;
pub mod pace;
mod pace_http;
mod permits;
mod provider;
mod proxy;
mod race;
mod scratch;
pub mod select;
mod usage;
pub mod world;

pub use engine::{EngineConfig, EngineReport, TimeFigures, engine};
pub use flight::{FlightConfig, FlightReport, flight};
pub use pace_http::{HttpConfig, HttpRow, over_http};
pub use permits::{PermitConfig, PermitRow, PermitsReport, permits};
pub use race::{
    BetterAnswerPosition, BiasReport, BiasRow, CapReport, MemoryRow, RaceConfig, RaceReport,
    VoteRow, race,
};

use std::path::PathBuf;

/// Error of a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a process failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Attempted operation.
        action: &'static str,
        /// File or program.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The program to measure does not exist.
    #[error("no program at {}; build it with `cargo build --release` or use --program", _0.display())]
    NoProgram(PathBuf),
    /// The simulated provider did not print its address.
    #[error("the simulated provider did not start")]
    NoProvider,
    /// The HTTP/2 proxy did not start.
    #[error("the HTTP/2 proxy did not start")]
    NoProxy,
    /// The benchmark has no row of this name.
    #[error("no row `{0}`")]
    UnknownRow(String),
    /// The profile of a benchmark row is invalid.
    #[error("invalid profile of `{row}`: {source}")]
    Profile {
        /// Name of the row.
        row: String,
        /// Cause.
        source: bakeoff_sim::Error,
    },
    /// The run under measurement failed.
    #[error("the measured run ended with {0}")]
    Run(std::process::ExitStatus),
    /// The counts of the simulated provider cannot be read.
    #[error("cannot read the counts of the simulated provider: {0}")]
    Stats(String),
    /// The measured run printed no valid result.
    #[error("the measured run printed no valid result: {0}")]
    Summary(String),
    /// Invalid limits.
    #[error(transparent)]
    Limits(#[from] bakeoff_pace::LimitsError),
    /// A run or a comparison failed.
    #[error("a measured run failed: {0}")]
    Eval(String),
    /// A race failed.
    #[error("a measured race failed: {0}")]
    Race(String),
    /// A map job failed.
    #[error("a measured job failed: {0}")]
    Map(String),
    /// The bare loop failed.
    #[error("the bare loop failed: {0}")]
    Bare(String),
}
