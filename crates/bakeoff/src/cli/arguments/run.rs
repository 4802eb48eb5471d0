//! Arguments of `bakeoff run`.

use super::shared::{CaseArguments, ExportArguments, LimitArguments, LogLevel, ReuseArguments};
use super::values::{seconds, threshold, trials};
use bakeoff_core::NanoDollars;
use bakeoff_stats::Threshold;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Suite file, directory with a bakeoff.toml, or FastSkill project [default: .]
    pub(crate) suite: Option<PathBuf>,
    /// Directory of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Resume a run: only missing and errored trials run. Path, unique prefix, or `last`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// With --resume: allow more trials, cases or targets
    #[arg(long, requires = "resume")]
    pub(crate) extend: bool,
    /// Trials per target and case [default: from the suite]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = trials)]
    pub(crate) trials: Option<u32>,
    /// Share of a case's trials that must pass [default: from the suite]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) threshold: Option<Threshold>,
    /// Share of a target's cases that must pass
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) suite_threshold: Option<Threshold>,
    /// Plain output for CI, and a gate on the share of passed cases [default gate: the threshold]
    #[arg(long)]
    pub(crate) ci: bool,
    /// Maximum number of concurrent trials
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: Option<u32>,
    /// Run only this target; repeatable
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<String>,
    /// Agent of a FastSkill project; repeatable
    #[arg(long = "agent", short = 'a', value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Model of the agents of a FastSkill project
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) only: CaseArguments,
    /// Cost in US dollars after which no trial starts
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Number of tokens after which no trial starts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Time after which no trial starts
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Seed of the simulated provider and of random orders [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Keep the workspaces of programs whose trial did not pass, as `workspace` beside the results
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) reuse: ReuseArguments,
    /// Log level on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Exit with 0 even if the verdict is failed or inconclusive
    #[arg(long)]
    pub(crate) no_fail: bool,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
    // Last, because its heading applies to everything after it.
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}
