//! Groups of arguments that several commands share.

use super::values::{positive, seconds, whole};
use crate::settings;
use bakeoff_core::NanoDollars;
use bakeoff_eval::{ChosenRecord, RunConfig};
use bakeoff_journal::STANDARD_OUTPUT;
use bakeoff_pace::RetryAfter;
use bakeoff_report::JunitTests;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Selection of cases.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CaseArguments {
    /// Only this case; repeatable
    #[arg(long = "case", value_name = "ID")]
    pub(crate) cases: Vec<String>,
    /// Only cases with this tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only the first N of these cases
    #[arg(long, value_name = "N", value_parser = positive::<usize>)]
    pub(crate) limit: Option<usize>,
    /// Only N of these cases, selected at random by --seed
    #[arg(long, value_name = "N", value_parser = positive::<usize>, conflicts_with = "limit")]
    pub(crate) sample: Option<usize>,
}

impl CaseArguments {
    /// Takes the selection that the command line leaves out from a stored run.
    pub(crate) fn fill(&mut self, stored: &ChosenRecord) {
        if self.cases.is_empty() {
            self.cases.clone_from(&stored.cases);
        }
        if self.tags.is_empty() {
            self.tags.clone_from(&stored.tags);
        }
        if self.limit.is_none() && self.sample.is_none() {
            (self.limit, self.sample) = (stored.limit, stored.sample);
        }
    }

    /// Adds the selection to the settings of a run.
    pub(crate) fn configure(self, config: &mut RunConfig) {
        config.cases = self.cases;
        config.tags = self.tags;
        config.limit = self.limit;
        config.sample = self.sample;
    }
}

/// Reuse of state from earlier runs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ReuseArguments {
    /// Disable the response cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Disable the limit history: neither use nor record learned limits
    #[arg(long)]
    pub(crate) no_memory: bool,
}

impl ReuseArguments {
    /// Returns the path of the response cache, or `None` if it is disabled.
    pub(crate) fn cache_file(self) -> Option<PathBuf> {
        if self.no_cache { None } else { settings::cache_file() }
    }

    /// Returns the path of the limit history, or `None` if it is disabled.
    pub(crate) fn history_file(self) -> Option<PathBuf> {
        if self.no_memory { None } else { settings::history_file() }
    }
}

/// Limits that replace those of the suite, for every model.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits of every model, overriding the suite")]
pub(crate) struct LimitArguments {
    /// Fixed concurrency limit (strategy `fixed`); with --rate-strategy, the upper bound of that strategy
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: Option<u32>,
    /// Adaptive concurrency limit (strategy `adaptive`): true, MAX, MIN-MAX or MIN-START-MAX; false selects `fixed`
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub(crate) adaptive_connections: Option<String>,
    /// Rate-limiting strategy: auto, fixed, adaptive, reactive, proactive or none [default: from the suite, or auto]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) rate_strategy: Option<String>,
    /// Requests per minute, for `auto` and `proactive`
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) rpm: Option<u64>,
    /// Input and output tokens per minute, for `auto` and `proactive`
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) tpm: Option<u64>,
    /// Waits that providers announce, for `auto`: `test` sends single requests before their end, `strict` none [default: from the suite, or test]
    #[arg(long, value_name = "MODE", value_enum, ignore_case = true)]
    pub(crate) retry_after: Option<RetryAfterMode>,
    /// Maximum number of retries per call, and of a throttled program [default: 8 after errors, unlimited until the timeout if throttled; 5 for programs]
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub(crate) max_retries: Option<u32>,
    /// Timeout of a model call including its retries, and of a program, agent, service or model with tools that has no `timeout_seconds` of its own [default: from the suite, or 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Timeout of a single request [default: from the suite, or derived from the latency of earlier requests]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) attempt_timeout: Option<Duration>,
}

/// Treatment of waits that providers announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetryAfterMode {
    /// Single requests test whether the wait is longer than necessary
    Test,
    /// No request before the end of the wait
    Strict,
}

impl From<RetryAfterMode> for RetryAfter {
    fn from(mode: RetryAfterMode) -> RetryAfter {
        match mode {
            RetryAfterMode::Test => RetryAfter::Test,
            RetryAfterMode::Strict => RetryAfter::Strict,
        }
    }
}

/// Arguments of the commands that run trials.
#[derive(Debug, Args)]
pub(crate) struct ExecutionArguments {
    /// Folder of all runs
    #[arg(long, visible_alias = "output-dir", value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Maximum number of concurrent trials [default: from the suite; else the limits of the models, or the number of cores for programs; `select`: 20 if nothing limits]
    #[arg(long, visible_alias = "max-concurrent", value_name = "N", value_parser = positive::<u32>)]
    pub(crate) parallel: Option<u32>,
    #[command(flatten)]
    pub(crate) only: CaseArguments,
    /// Maximum cost in US dollars: no call starts that could exceed it
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Time after which no trial starts and waiting trials end; requests in flight have 15 s more
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    #[command(flatten)]
    pub(crate) reuse: ReuseArguments,
    /// Log level on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
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

impl ExecutionArguments {
    /// Returns whether every request is printed on standard error.
    pub(crate) fn prints_requests(&self) -> bool {
        self.log_level == LogLevel::Http && !self.quiet
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Progress and warnings
    Info,
    /// Also every request
    Http,
}

/// Export files of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExportArguments {
    /// Write JUnit XML; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// What fails a test of --junit
    #[arg(long, value_name = "UNIT", value_enum, default_value_t)]
    pub(crate) junit_per: JunitUnit,
    /// Write Markdown: the summary table and the failures; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write CSV, one row per trial with prompt and case fields; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write JSON Lines, one trial result per line with prompt and case fields; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) jsonl: Option<PathBuf>,
}

impl ExportArguments {
    /// Returns the number of exports to standard output.
    pub(crate) fn to_standard_output(&self) -> usize {
        let files = [&self.junit, &self.markdown, &self.csv, &self.jsonl];
        files.into_iter().flatten().filter(|path| *path == Path::new(STANDARD_OUTPUT)).count()
    }
}

/// What fails a test of JUnit XML.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum JunitUnit {
    /// The verdict of a gating target, as the exit code
    #[default]
    Gate,
    /// Every case of a gating target that did not pass
    Case,
}

impl From<JunitUnit> for JunitTests {
    fn from(unit: JunitUnit) -> JunitTests {
        match unit {
            JunitUnit::Gate => JunitTests::Gate,
            JunitUnit::Case => JunitTests::Case,
        }
    }
}

/// A run on disk.
#[derive(Debug, Args)]
pub(crate) struct StoredRunArguments {
    /// Run: path, unique prefix, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}
