//! Arguments of `bakeoff select`.

use super::shared::{CaseArguments, LimitArguments, LogLevel, ReuseArguments};
use super::values::seconds;
use bakeoff_core::NanoDollars;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SelectArguments {
    /// Suite file with [select], or directory with a bakeoff.toml [default: .]
    pub(crate) suite: Option<PathBuf>,
    /// Search method: auto, strict, arm_elimination, … [default: from the suite]
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Confidence for auto and strict [default: from the suite, or 0.95]
    #[arg(long, value_name = "SHARE")]
    pub(crate) confidence: Option<f64>,
    /// Cost in US dollars after which no cell starts
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Maximum number of cells; a cell is one combination on one case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_cells: Option<u64>,
    /// Time after which no cell starts
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Write the winner as TOML: [roles] and the [models] that they name
    #[arg(long, value_name = "FILE")]
    pub(crate) apply: Option<PathBuf>,
    /// Directory of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Resume a search without repeating finished cells. Path, unique prefix, or `last`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Maximum number of concurrent cells
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: Option<u32>,
    #[command(flatten)]
    pub(crate) only: CaseArguments,
    /// Seed of the search, the simulated provider and random orders [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) reuse: ReuseArguments,
    /// Print all combinations instead of the best
    #[arg(long)]
    pub(crate) all: bool,
    /// Log level on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Exit with 0 even if the budget ended the search
    #[arg(long)]
    pub(crate) no_fail: bool,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    // Last, because its heading applies to everything after it.
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

const EXAMPLES: &str = "\
Examples:
  bakeoff select                              search the suite in the current directory
  bakeoff select --max-cost 2 --apply roles.toml
  bakeoff select --resume last --max-cost 5   resume with a larger budget";
