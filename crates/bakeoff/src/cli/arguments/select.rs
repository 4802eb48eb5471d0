//! `bakeoff select`.

use super::{CaseArguments, KeptArguments, LimitArguments, LogLevel, seconds};
use bakeoff_core::NanoDollars;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Which combination is best?
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SelectArguments {
    /// A suite file with [select], or a folder with a bakeoff.toml; the current folder when absent
    pub(crate) suite: Option<PathBuf>,
    /// How to search, instead of the suite's `method`: auto, strict, arm_elimination, …
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// How sure to be, for auto and strict; 0.95 when nobody says
    #[arg(long, value_name = "SHARE")]
    pub(crate) confidence: Option<f64>,
    /// Start no cell once the search has cost so many dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Start no more cells than these; a cell is a combination on a case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_cells: Option<u64>,
    /// Start no cell once the search has taken so long
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Write who won as TOML: `[roles]`, for the suite or for a gateway
    #[arg(long, value_name = "FILE")]
    pub(crate) apply: Option<PathBuf>,
    /// The folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Go on with this search: what it has paid for is not paid for again. Its folder, the beginning
    /// of its name, or `last`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Most cells at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: Option<u32>,
    #[command(flatten)]
    pub(crate) only: CaseArguments,
    /// Seed of the search, of the simulated provider and of every random order; 0 when absent
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) kept: KeptArguments,
    /// Show all combinations, not only the first
    #[arg(long)]
    pub(crate) all: bool,
    /// How much is told on standard error while the search goes on
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Exit with 0 even when the budget ended the search
    #[arg(long)]
    pub(crate) no_fail: bool,
    /// The selection as JSON on standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    // Last, because its heading holds for everything after it.
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

const EXAMPLES: &str = "\
Examples:
  bakeoff select                              the suite here, as its [select] says
  bakeoff select --max-cost 2 --apply roles.toml
  bakeoff select --resume last --max-cost 5   go on with more money";
