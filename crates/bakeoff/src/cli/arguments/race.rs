//! Arguments of `bakeoff race`.

use super::values::{non_negative, positive, seconds, whole};
use bakeoff_agent::TOOL_NAMES;
use bakeoff_core::NanoDollars;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RaceArguments {
    /// Prompt; `-` reads it from standard input; omit it to resume the interrupted race of a session
    pub(crate) prompt: Option<String>,
    /// Model as `provider/model`, or with --suite a name under [models]; repeatable [default in a session: the last winner]
    #[arg(long = "model", short, value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Target of --suite as a branch, with its prompts, settings and tools; its prompt template may use `{{ prompt }}`; repeatable
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<String>,
    /// Answers per model or target [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) samples: Option<u32>,
    /// With --session: repeat its last race, with the same models and judge
    #[arg(long, requires = "session", conflicts_with_all = ["models", "targets"])]
    pub(crate) again: bool,
    /// Judge model; repeat for a panel
    #[arg(long = "judge", value_name = "MODEL")]
    pub(crate) judges: Vec<String>,
    /// Evaluation strategy [default: judge with one --judge, panel with several, transparent with one model]
    #[arg(long, value_name = "STRATEGY", value_enum)]
    pub(crate) strategy: Option<StrategyName>,
    /// Instructions for the judge [default: built in]
    #[arg(long, value_name = "FILE")]
    pub(crate) judge_prompt: Option<PathBuf>,
    /// Context window of the judge; longer conversations and answers are compacted
    #[arg(long, value_name = "TOKENS", value_parser = positive::<u64>)]
    pub(crate) judge_context: Option<u64>,
    /// Maximum number of rounds in which a judge is asked while its preference depends on the order [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) judge_rounds: Option<u32>,
    /// Orders in which a judge sees the answers: 2 for one order and its reverse, 1 for a single call [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) judge_orders: Option<u8>,
    /// Minimum number of judges of a panel that must vote [default: more than half]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) quorum: Option<u16>,
    /// For `majority`: regular expression whose last match, or its first group, is the answer [default: whole text]
    #[arg(long, value_name = "REGEX")]
    pub(crate) extract: Option<String>,
    /// For `verifier`: regular expression that an answer must match
    #[arg(long, value_name = "REGEX")]
    pub(crate) expect: Option<String>,
    /// For `verifier`: shell command that reads an answer on standard input and exits with 0 within 60 s to accept it
    #[arg(long, value_name = "COMMAND", conflicts_with = "expect")]
    pub(crate) verify: Option<String>,
    /// System prompt of the session; a target may have its own
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Sampling temperature
    #[arg(long, value_name = "T", value_parser = non_negative)]
    pub(crate) temperature: Option<f64>,
    /// Maximum number of output tokens per answer
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) max_tokens: Option<u64>,
    /// Reasoning effort in the provider's terms: low, medium, high, …
    #[arg(long, value_name = "EFFORT")]
    pub(crate) thinking: Option<String>,
    /// Built-in tool that the models may call; repeatable
    #[arg(long = "tool", value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(TOOL_NAMES))]
    pub(crate) tools: Vec<String>,
    /// Host that the tool `http_fetch` may access, `*` for all; repeatable
    #[arg(long = "fetch-host", value_name = "HOST")]
    pub(crate) fetch_hosts: Vec<String>,
    /// MCP server whose tools the models may call: NAME=COMMAND, run by a shell in this folder, or NAME=URL; repeatable
    #[arg(long, value_name = "NAME=SERVER")]
    pub(crate) mcp: Vec<String>,
    /// Folder that is copied for the tools of each branch [default: an empty folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,
    /// Maximum number of model calls of a branch with tools [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_turns: Option<u32>,
    /// Timeout of a branch, including waiting and retries [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Maximum cost of the race in US dollars, judges included
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Session file that stores the conversation; created if missing, else continued
    #[arg(long, value_name = "FILE")]
    pub(crate) session: Option<PathBuf>,
    /// With --session: discard its interrupted race
    #[arg(long, requires = "session")]
    pub(crate) abandon: bool,
    /// Suite with [models], [sim] and targets to use: file, or folder with a bakeoff.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Seed of the simulated provider [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Answers to print
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = AnswerScope::Winner)]
    pub(crate) show: AnswerScope,
    /// Print one JSON event per line on standard output
    #[arg(long, conflicts_with = "show")]
    pub(crate) json: bool,
    /// Print errors and the answer only
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

/// Answers to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerScope {
    /// The winning answer
    Winner,
    /// All answers
    All,
}

/// Evaluation strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StrategyName {
    /// A judge model chooses, prompted in both orders
    Judge,
    /// Several judges vote
    Panel,
    /// A judge compares pairs: all pairs of up to six answers, a knockout of more
    Pairwise,
    /// The most frequent answer wins; stops once it cannot be overtaken
    Majority,
    /// A verifier accepts answers (--expect, --verify); the first of them wins, or the one a --judge chooses
    Verifier,
    /// The first answer wins; the other branches are cancelled
    Fastest,
    /// The lowest cost wins
    Cheapest,
    /// The fewest tokens win
    TokenEfficient,
    /// The most tokens win
    Elaborate,
    /// The first listed model with an answer wins
    First,
    /// No evaluation; for exactly one branch
    Transparent,
}

const EXAMPLES: &str = "\
Examples:
  bakeoff race \"Explain entropy in two sentences.\" -m sim/a -m sim/b --judge sim/judge
  bakeoff race \"What is 17 × 23?\" -m openai/gpt-4o-mini --samples 15 --strategy majority --extract '\\d+'
  bakeoff race \"Explain entropy.\" --suite race.toml --target brief --target careful --judge openai/gpt-4o
  bakeoff race \"And in winter?\" --session chat.jsonl

Exit codes: 0 there is a winner · 1 the verifier rejected every answer · 2 usage error, no call was made · 3 all models \
failed, or the verifier or the judges gave no verdict · 4 the session or standard output could not be written · 130 interrupted";
