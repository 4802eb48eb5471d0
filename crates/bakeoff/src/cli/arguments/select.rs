//! Arguments of `bakeoff select`.

use super::shared::ExecutionArguments;
use super::values::{positive, whole};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SelectArguments {
    /// Suite file with [select], or folder with a bakeoff.toml [default: .]
    pub(crate) suite: Option<PathBuf>,
    /// Suite file, for example of a resumed search whose suite has moved
    #[arg(long = "suite", value_name = "SUITE", conflicts_with = "suite")]
    pub(crate) suite_option: Option<PathBuf>,
    /// Search method: auto, strict, arm_elimination, … [default: from the suite]
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// Confidence for auto and strict [default: from the suite, or 0.95]
    #[arg(long, value_name = "SHARE")]
    pub(crate) confidence: Option<f64>,
    /// Maximum number of trials
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) max_cells: Option<u64>,
    /// Write the winner as TOML: [roles] and the [models] that they name
    #[arg(long, value_name = "FILE")]
    pub(crate) apply: Option<PathBuf>,
    /// Resume a search without repeating finished trials. Path, unique prefix, or `last`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Seed of the search, the simulated provider and random orders [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Print all combinations instead of the best
    #[arg(long)]
    pub(crate) all: bool,
    /// Exit with 0 even if the budget ended the search
    #[arg(long)]
    pub(crate) no_fail: bool,
    // Last, because the heading of its limits applies to everything after it.
    #[command(flatten)]
    pub(crate) execution: ExecutionArguments,
}

const EXAMPLES: &str = "\
Examples:
  bakeoff select                              search the suite in the current folder
  bakeoff select --max-cost 2 --apply roles.toml
  bakeoff select --resume last --max-cost 5   resume with a larger budget

Exit codes: 0 the method reached its stopping criterion · 1 all combinations cost more than `max_task_usd` · 2 usage \
error, no call was made · 3 a budget ended the search, or there was no observation · 4 results could not be written · \
130 interrupted";
