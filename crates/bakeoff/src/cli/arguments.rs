//! What can be typed.

mod map;
mod race;
mod select;

pub(crate) use map::MapArguments;
pub(crate) use race::{RaceArguments, Show, StrategyName};
pub(crate) use select::SelectArguments;

use crate::settings;
use bakeoff_core::NanoDollars;
use bakeoff_stats::Threshold;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What was typed.
#[derive(Debug, Parser)]
#[command(name = "bakeoff", version, about = ABOUT, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const ABOUT: &str = "Find out which model, prompt or agent is best, and how sure that is";

const EXIT_CODES: &str = "\
Exit codes: 0 passed · 1 failed · 2 usage or configuration error, nothing was called · \
3 inconclusive · 4 internal or I/O error · 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a suite that works at once, on the simulated provider
    Init(InitArguments),
    /// Check a suite without making a call, and show what it would do
    #[command(visible_alias = "validate")]
    Check(CheckArguments),
    /// Run a suite: cases × targets × trials, checked and gated
    Run(Box<RunArguments>),
    /// Ask several models the same thing, have the best answer chosen, and go on with the winner
    Race(Box<RaceArguments>),
    /// Find the best combination of models for the roles of an agent, for a fraction of the bill
    Select(Box<SelectArguments>),
    /// Send many rows through few requests: each row gets its own answer, checked against a schema
    Map(Box<MapArguments>),
    /// List the runs on disk
    List(ListArguments),
    /// Show what a run found, or write it as JUnit, Markdown, CSV or JSONL
    Report(ReportArguments),
    /// Compare targets case by case: is it better, by how much, how sure is that
    Compare(CompareArguments),
    /// Judge the stored outputs of a run by today's checks; no target is asked again
    Score(ScoreArguments),
    /// Look at how the calls of a run went out
    Trace(TraceArguments),
    /// Find out how much of a model can be used, by calling it until it rejects calls
    Probe(ProbeArguments),
    /// Print the JSON Schema of bakeoff.toml
    Schema,
    /// Serve the simulated provider over HTTP, in OpenAI's and Anthropic's formats
    Sim(SimArguments),
    /// Look at the cache of answers, or empty it
    Cache(CacheArguments),
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Where to write it
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A suite file, or a folder with a bakeoff.toml; a FastSkill project, too
    #[arg(default_value = ".")]
    pub(crate) suite: PathBuf,
    /// Of a FastSkill project: an agent that will be run; may be given several times
    #[arg(long = "agent", short = 'a', value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Of a FastSkill project: the agents' name of their model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A suite file, or a folder with a bakeoff.toml, or a FastSkill project; the current folder when
    /// absent
    pub(crate) suite: Option<PathBuf>,
    /// The folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Go on with this run: make the trials that are missing or errored. Its folder, the beginning of
    /// its name, or `last`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// With --resume: the run may get more trials, cases or targets
    #[arg(long, requires = "resume")]
    pub(crate) extend: bool,
    /// Attempts of each target at each case, instead of the suite's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = trials)]
    pub(crate) trials: Option<u32>,
    /// Share of a case's trials that must pass, instead of the suite's
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) threshold: Option<Threshold>,
    /// Share of a target's cases that must pass
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) suite_threshold: Option<Threshold>,
    /// For pipelines: plain output, and a gate on the share of cases that pass (by default the
    /// threshold)
    #[arg(long)]
    pub(crate) ci: bool,
    /// Most trials at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: Option<u32>,
    /// Only this target; may be given several times
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<String>,
    /// Of a FastSkill project: the agent to run; may be given several times
    #[arg(long = "agent", short = 'a', value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Of a FastSkill project: the agents' name of their model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) only: CaseArguments,
    /// Start no trial once the run has cost so many dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Start no trial once the run has used so many tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Start no trial once the run has taken so long
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Seed of the simulated provider and of every random order; 0 when absent
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Keep the folders in which programs worked, of trials that did not pass: `workspace` beside
    /// their results
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) kept: KeptArguments,
    /// How much is told on standard error while the run goes on
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// Exit with 0 even when the verdict is failed or inconclusive
    #[arg(long)]
    pub(crate) no_fail: bool,
    /// One JSON event per line on standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
    // Last, because its heading holds for everything after it.
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// Which cases.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CaseArguments {
    /// Only this case; may be given several times
    #[arg(long = "case", value_name = "ID")]
    pub(crate) cases: Vec<String>,
    /// Only cases with this tag; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
}

/// What was kept from earlier runs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct KeptArguments {
    /// Make every call, whatever is cached, and cache nothing
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Use nothing that earlier runs learned about limits, and keep nothing for the next
    #[arg(long)]
    pub(crate) no_memory: bool,
}

impl KeptArguments {
    /// The file of the cache, unless nothing is to be cached.
    pub(crate) fn cache(self) -> Option<PathBuf> {
        if self.no_cache { None } else { settings::cache_file() }
    }

    /// The file of what was learned about limits, unless nothing is to be.
    pub(crate) fn memory(self) -> Option<PathBuf> {
        if self.no_memory { None } else { settings::memory_file() }
    }
}

/// What is put in place of the suite's limits, for every model.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits of every model, instead of the suite's")]
pub(crate) struct LimitArguments {
    /// So many requests in flight, whatever happens (the strategy `fixed`)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: Option<u32>,
    /// A number of requests in flight that adapts: true, MAX, MIN-MAX or MIN-START-MAX (the
    /// strategy `adaptive`); false is `fixed`
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub(crate) adaptive_connections: Option<String>,
    /// By what it is decided when a request goes out: auto, fixed, adaptive, reactive, proactive or
    /// none
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) rate_strategy: Option<String>,
    /// Requests per minute, for `auto` and `proactive`
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rpm: Option<u64>,
    /// Tokens of prompts and answers per minute, for `auto` and `proactive`
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) tpm: Option<u64>,
    /// Most retries of a call; throttled calls are otherwise retried until their time is up
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_retries: Option<u32>,
    /// Most seconds for a whole trial, a call with its retries or a program
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Most seconds for one attempt of a call
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) attempt_timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Progress and warnings
    Info,
    /// Every request, too
    Http,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    pub(crate) what: Trace,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Every attempt of every call: status, latency, sizes, retries
    Http(TraceHttpArguments),
    /// How the number of requests in flight was changed, and why
    Limits(StoredRunArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TraceHttpArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    /// Only what did not go well
    #[arg(long)]
    pub(crate) failed: bool,
}

/// Files to make of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExportArguments {
    /// Write JUnit XML: a test per case
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write Markdown: a table, and what did not pass
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write CSV: a row per trial
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write JSON lines: a trial per line, with all that is known of it
    #[arg(long, value_name = "FILE")]
    pub(crate) jsonl: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Runs to compare with the first, as RUN or RUN:TARGET; or one run, whose targets are compared
    /// with its first
    #[arg(value_name = "RUN[:TARGET]", required = true)]
    pub(crate) runs: Vec<String>,
    /// The folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Exit with 1 when one of them is significantly worse
    #[arg(long)]
    pub(crate) fail_on_regression: bool,
    /// The level at which a difference is significant
    #[arg(long, value_name = "LEVEL", default_value_t = 0.05, value_parser = level)]
    pub(crate) alpha: f64,
    /// Say how many cases it takes to see a difference of this size
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = level)]
    pub(crate) detect: f64,
    /// Say whether they are equal within this margin
    #[arg(long, value_name = "SHARE", value_parser = level)]
    pub(crate) within: Option<f64>,
    /// One JSON object per comparison
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArguments {
    #[command(flatten)]
    pub(crate) run: StoredRunArguments,
    /// The suite with the checks, instead of the one that was run
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<PathBuf>,
    /// Share of a case's trials that must pass, instead of the run's
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) threshold: Option<Threshold>,
    /// Share of a target's cases that must pass, instead of the run's
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub(crate) suite_threshold: Option<Threshold>,
    /// Exit with 0 even when the verdict is failed or inconclusive
    #[arg(long)]
    pub(crate) no_fail: bool,
    #[command(flatten)]
    pub(crate) export: ExportArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StoredRunArguments {
    /// A run: its folder, the beginning of its name, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// The folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = PROBE_EXAMPLES)]
pub(crate) struct ProbeArguments {
    /// `provider/model`, or with --suite the name of a table under [models]
    pub(crate) model: String,
    /// The suite that names the model: a file, or a folder with a bakeoff.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Another address than the provider's
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Most requests
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_requests: u32,
    /// Most dollars; needs a model whose price is known
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Most seconds, apart from the last answers
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) max_seconds: Duration,
    /// Most requests in flight
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: u32,
    /// What is sent, followed by a number; make it as long as what you are going to send
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: u64,
    /// Spend without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const PROBE_EXAMPLES: &str = "\
Examples:
  bakeoff probe openai/gpt-4o-mini --max-cost 0.05
  bakeoff probe quick --suite bakeoff.toml
  bakeoff probe openai/my-model --base-url http://localhost:8000/v1 --yes";

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// The folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// One JSON object per run
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// The port; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub(crate) port: u16,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Limits, latency and outages: the first profile of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Milliseconds that every answer takes
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32))]
    pub(crate) latency_ms: Option<u32>,
    /// Seed of the answers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) action: CacheAction,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum CacheAction {
    /// Show where it is and what it holds
    Stats,
    /// Forget all answers
    Clear,
}

fn trials(text: &str) -> Result<u32, String> {
    let refused = || format!("`{text}` is not a number of trials [EVAL_INVALID_TRIALS_CONFIG]");
    text.parse().map_err(|_| refused())
}

fn threshold(text: &str) -> Result<Threshold, String> {
    text.parse()
        .map_err(|error: bakeoff_stats::ThresholdError| format!("{error} [EVAL_INVALID_THRESHOLD]"))
}

fn level(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| format!("`{text}` is not a number between 0 and 1"))
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is not a number from 0 on"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("`{text}` is not a number of seconds above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }
}
