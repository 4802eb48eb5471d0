//! Arguments of `bakeoff run`.

use super::shared::{ExecutionArguments, ExportArguments};
use super::values::{positive, threshold, trials, whole};
use bakeoff_stats::Threshold;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Suite file, folder with a bakeoff.toml, or FastSkill project [default: .]
    pub(crate) suite: Option<PathBuf>,
    /// Suite file, for example of a resumed run whose suite has moved
    #[arg(long = "suite", value_name = "SUITE", conflicts_with = "suite")]
    pub(crate) suite_option: Option<PathBuf>,
    /// Resume a run: only missing and errored trials run. Path, unique prefix, or `last`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// With --resume: allow more trials, cases or targets
    #[arg(long, requires = "resume")]
    pub(crate) extend: bool,
    /// Trials per target and case [default: from the suite]
    #[arg(long, value_name = "N", value_parser = trials)]
    pub(crate) trials: Option<u32>,
    /// Share of a case's trials that must pass [default: from the suite]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) threshold: Option<Threshold>,
    /// Share of a target's cases that must pass [default: all; with --ci, the threshold]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) suite_threshold: Option<Threshold>,
    /// Plain output for CI, and a gate on the share of passed cases; the gate is --suite-threshold or else --threshold
    #[arg(long)]
    pub(crate) ci: bool,
    /// Run only this target; repeatable
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<String>,
    /// Agent of a FastSkill project; repeatable
    #[arg(long = "agent", short = 'a', value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// All installed agents, for a FastSkill project
    #[arg(long, conflicts_with_all = ["agents", "targets"])]
    pub(crate) all: bool,
    /// Model of the agents of a FastSkill project
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Run only the cases that did not pass in this run, for at least one of the targets. Path, unique prefix, or `last`
    #[arg(long, value_name = "RUN", conflicts_with = "cases")]
    pub(crate) failed_of: Option<String>,
    /// File with [roles], such as `select --apply` writes: its roles replace those of the suite
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Number of tokens after which no trial starts
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) max_tokens: Option<u64>,
    /// Seed of the simulated provider and of random orders [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Keep the workspaces of programs whose trial did not pass, as `workspace` beside the results
    #[arg(long)]
    pub(crate) keep: bool,
    /// Exit with 0 even if the verdict is failed or inconclusive
    #[arg(long)]
    pub(crate) no_fail: bool,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
    // Last, because the heading of its limits applies to everything after it.
    #[command(flatten)]
    pub(crate) execution: ExecutionArguments,
}
