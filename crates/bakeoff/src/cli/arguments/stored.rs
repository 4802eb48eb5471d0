//! Arguments of the commands that read stored runs.

use super::shared::{ExportArguments, StoredRunArguments};
use super::values::{days, positive, share, threshold};
use bakeoff_stats::Threshold;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = PRUNE_EXAMPLES)]
pub(crate) struct PruneArguments {
    /// Age since the last change of a run or the storage of a response: a number of days, as in `30d`
    #[arg(long, value_name = "AGE", value_parser = days)]
    pub(crate) older_than: Duration,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Skip the confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  bakeoff prune --older-than 30d --dry-run   print what would be deleted
  bakeoff prune --older-than 30d --yes       delete without a confirmation";

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArguments {
    /// Run: path, unique prefix, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Id of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: String,
    /// Number of the trial [default: all trials]
    #[arg(value_name = "TRIAL", value_parser = positive::<u32>)]
    pub(crate) trial: Option<u32>,
    /// Target of the trials; needed if several targets have trials of the case
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  bakeoff show last fr                   all trials of the case `fr` in the newest run
  bakeoff show last fr 2                 its second trial
  bakeoff show last fr --target small    the trials of one of several targets";

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Baseline and candidates, as RUN or RUN:TARGET; targets are paired by name. For a single run, its
    /// targets are compared with the first, or the named one
    #[arg(value_name = "RUN[:TARGET]", required = true)]
    pub(crate) runs: Vec<String>,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Exit with 1 if the pass rate of a candidate that gates is significantly worse
    #[arg(long)]
    pub(crate) fail_on_regression: bool,
    /// Significance level
    #[arg(long, value_name = "LEVEL", default_value_t = 0.05, value_parser = share)]
    pub(crate) alpha: f64,
    /// Difference for which to print the required number of cases
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    pub(crate) detect: f64,
    /// Equivalence margin to test
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) within: Option<f64>,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true), after_help = TUNE_EXAMPLES)]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    /// Change only the model of this name at its provider [default: all models of the run]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Maximum number of requests in flight
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: Option<u32>,
    /// Requests per minute
    #[arg(long, value_name = "N", group = "change", value_parser = positive::<u64>)]
    pub(crate) rpm: Option<u64>,
    /// Send no further requests; those in flight finish
    #[arg(long, group = "change", conflicts_with = "resume")]
    pub(crate) pause: bool,
    /// End a pause
    #[arg(long, group = "change")]
    pub(crate) resume: bool,
}

const TUNE_EXAMPLES: &str = "\
Examples:
  bakeoff tune --max-connections 50          the newest run: at most 50 requests in flight per model
  bakeoff tune --model gpt-4o-mini --rpm 60  one model: at most 60 requests per minute
  bakeoff tune --pause                       pause; --resume continues";

#[derive(Debug, Args)]
pub(crate) struct ScoreArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    /// Suite with the checks [default: the suite of the run]
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<PathBuf>,
    /// Share of a case's trials that must pass [default: from the run]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) threshold: Option<Threshold>,
    /// Share of a target's cases that must pass [default: from the run]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) suite_threshold: Option<Threshold>,
    /// Exit with 0 even if the verdict is failed or inconclusive
    #[arg(long)]
    pub(crate) no_fail: bool,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    pub(crate) log: TraceLog,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceLog {
    /// Print every request: status, latency, sizes, retries
    Http(TraceHttpArguments),
    /// Print every change of a concurrency limit, with its reason
    Limits(StoredRunArguments),
    /// Print the stored requests and responses of trials, one JSON object per line
    Trials(TraceTrialsArguments),
}

impl TraceLog {
    /// Returns the run whose log is printed.
    pub(crate) fn run(&self) -> &StoredRunArguments {
        match self {
            TraceLog::Http(arguments) => &arguments.run,
            TraceLog::Limits(run) => run,
            TraceLog::Trials(arguments) => &arguments.run,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct TraceHttpArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    /// Print only failed requests
    #[arg(long)]
    pub(crate) failed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceTrialsArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    /// Print only trials of this target
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Print only trials of this case
    #[arg(long, value_name = "ID")]
    pub(crate) case: Option<String>,
}
