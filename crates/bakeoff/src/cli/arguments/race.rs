//! What can be typed after `bakeoff race`.

use super::{not_negative, seconds};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RaceArguments {
    /// What is asked; `-` reads it from standard input. Without it, a race of the session that was
    /// interrupted goes on
    pub(crate) prompt: Option<String>,
    /// A model that takes part: `provider/model`, or with --suite a name under its [models]; may be
    /// given several times. Absent in a session: the last winner goes on alone
    #[arg(long = "model", short, value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Answers of each model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) samples: Option<u32>,
    /// With --session: the models of its last race take part again
    #[arg(long, requires = "session", conflicts_with = "models")]
    pub(crate) again: bool,
    /// Who chooses: a model that judges; several are a panel
    #[arg(long = "judge", value_name = "MODEL")]
    pub(crate) judges: Vec<String>,
    /// How the winner is chosen; `judge` with --judge, `panel` with several
    #[arg(long, value_name = "STRATEGY", value_enum)]
    pub(crate) strategy: Option<StrategyName>,
    /// Instructions of the judge, instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) judge_prompt: Option<PathBuf>,
    /// Most tokens that the judge can read; longer conversations and answers are compacted for it
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) judge_context: Option<u64>,
    /// For `majority`: the answer is what this regular expression finds last (its first group, if
    /// it has one); the whole text when absent
    #[arg(long, value_name = "REGEX")]
    pub(crate) extract: Option<String>,
    /// For `verifier`: an answer must match this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(crate) expect: Option<String>,
    /// For `verifier`: a shell command that gets an answer on standard input and exits with 0 when it
    /// will do
    #[arg(long, value_name = "COMMAND", conflicts_with = "expect")]
    pub(crate) verify: Option<String>,
    /// Instructions of the models
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Sampling temperature
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = not_negative)]
    pub(crate) temperature: Option<f64>,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// How much the models should think, in the provider's words: low, medium, high, …
    #[arg(long, value_name = "EFFORT")]
    pub(crate) thinking: Option<String>,
    /// Most seconds for a branch, waiting and retries included; 600 when absent
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// A file that holds the conversation: made by the first race, continued by the next
    #[arg(long, value_name = "FILE")]
    pub(crate) session: Option<PathBuf>,
    /// With --session: give up its race that was interrupted
    #[arg(long, requires = "session")]
    pub(crate) abandon: bool,
    /// A suite whose [models] and [sim] can be named: a file, or a folder with a bakeoff.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Seed of the simulated provider; 0 when absent
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Which answers are shown
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Show::Winner)]
    pub(crate) show: Show,
    /// One JSON event per line on standard output, the result last, and nothing else
    #[arg(long, conflicts_with = "show")]
    pub(crate) json: bool,
    /// Nothing but errors and the answer
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

/// Which answers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// The winner's
    Winner,
    /// All of them
    All,
}

/// How the winner is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StrategyName {
    /// A model chooses, in both orders
    Judge,
    /// Several judges vote
    Panel,
    /// A judge compares pairs: all of up to six answers, a knockout of more
    Pairwise,
    /// The answer that most give; stops early when it cannot lose any more
    Majority,
    /// A check decides which answers will do (--expect, --verify); a judge chooses among them
    Verifier,
    /// The first answer there is; the other models are stopped
    Fastest,
    /// The least money
    Cheapest,
    /// The fewest tokens
    TokenEfficient,
    /// The most tokens
    Elaborate,
    /// The first model that came to an answer
    First,
    /// For one model: nothing to choose
    Transparent,
}

const EXAMPLES: &str = "\
Examples:
  bakeoff race \"Explain entropy in two sentences.\" -m sim/a -m sim/b --judge sim/judge
  bakeoff race \"What is 17 × 23?\" -m openai/gpt-4o-mini --samples 15 --strategy majority --extract '\\d+'
  bakeoff race \"And in winter?\" --session talk.jsonl";
