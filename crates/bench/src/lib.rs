//! How fast are we, beside the alternatives?
//!
//! Everything is measured side by side in one run, because machines are noisy: the ratios are what
//! counts.

mod bare;
mod engine;
pub mod pace;
mod usage;

pub use engine::{EngineConfig, EngineReport, Figures, engine};

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
    /// The simulated provider did not say where it listens.
    #[error("the simulated provider did not start")]
    NoProvider,
    /// The run under measurement failed.
    #[error("the measured run ended with {0}")]
    Run(std::process::ExitStatus),
    /// The bare loop failed.
    #[error("the bare loop failed: {0}")]
    Bare(String),
}
