//! How fast are we, beside the alternatives?
//!
//! Everything is measured side by side in one run, because machines are noisy: the ratios are what
//! counts.

mod bare;
mod engine;
mod flight;
mod honesty;
pub mod map;
pub mod pace;
mod pace_http;
mod permits;
mod provider;
mod race;
mod scratch;
pub mod select;
mod usage;

pub use engine::{EngineConfig, EngineReport, Figures, engine};
pub use flight::{FlightConfig, FlightReport, flight};
pub use honesty::{HonestyConfig, HonestyReport, StopRow, honesty};
pub use pace_http::{HttpConfig, HttpRow, over_http};
pub use permits::{PermitConfig, PermitRow, PermitsReport, permits};
pub use race::{
    BiasReport, BiasRow, CapReport, MemoryRow, Place, RaceConfig, RaceReport, VoteRow, race,
};

use std::path::PathBuf;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a process failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file or program.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// There is no `bakeoff` to measure.
    #[error("no program at {}; build it with `cargo build --release`, or name one with --program", _0.display())]
    NoProgram(PathBuf),
    /// The simulated provider did not say where it listens.
    #[error("the simulated provider did not start")]
    NoProvider,
    /// The run under measurement failed.
    #[error("the measured run ended with {0}")]
    Run(std::process::ExitStatus),
    /// The simulated provider did not say what it has counted.
    #[error("the simulated provider cannot be asked what it has counted: {0}")]
    Stats(String),
    /// The measured run did not say how it ended.
    #[error("the measured run did not say how it ended: {0}")]
    Summary(String),
    /// Limits that cannot be.
    #[error(transparent)]
    Limits(#[from] bakeoff_pace::LimitsError),
    /// A run or a comparison failed.
    #[error("a measured run failed: {0}")]
    Eval(String),
    /// A race failed.
    #[error("a measured race failed: {0}")]
    Race(String),
    /// A job over many rows failed.
    #[error("a measured job failed: {0}")]
    Map(String),
    /// The bare loop failed.
    #[error("the bare loop failed: {0}")]
    Bare(String),
}
