//! Arguments of `bakeoff map`.

use super::shared::{LimitArguments, ReuseArguments};
use super::values::whole;
use bakeoff_core::NanoDollars;
use bakeoff_map::{PackSize, ParsePackSizeError, ParseReplyFormatError, ReplyFormat};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("timeout", |argument| argument.help("Timeout of a call, including its retries [default: from the suite, or 600]")))]
pub(crate) struct MapArguments {
    /// Input rows: .csv, .jsonl, .ndjson or .json file
    pub(crate) rows: PathBuf,
    /// Task file: instructions, input fields and output schema
    #[arg(long, short, value_name = "FILE")]
    pub(crate) task: PathBuf,
    /// Model as `provider/model`, or with --suite a name under [models]
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: String,
    /// Model for rows without a valid answer; repeatable, tried in order
    #[arg(long = "fallback", value_name = "MODEL")]
    pub(crate) fallbacks: Vec<String>,
    /// Output file (.jsonl, .ndjson or .csv); an interrupted job is resumed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Rows per request; `auto` packs many if requests are the limit, one if tokens are [default: from the task]
    #[arg(long, value_name = "N|auto", value_parser = pack)]
    pub(crate) pack: Option<PackSize>,
    /// Reply format: json, xml or yaml [default: from the task]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<ReplyFormat>,
    /// Maximum cost of the job in US dollars: no request starts that could exceed it
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Resume an interrupted job; fail if there is none
    #[arg(long, conflicts_with = "force")]
    pub(crate) resume: bool,
    /// Start over and overwrite existing output
    #[arg(long)]
    pub(crate) force: bool,
    /// Retry rows without an answer, with all models in order; cached replies of earlier rounds are not used
    #[arg(long, conflicts_with = "force")]
    pub(crate) retry_errors: bool,
    /// Print the number of requests and the estimated cost, without making a call
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Suite with [models] and [sim] to use: file, or folder with a bakeoff.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Seed of row ids and of the simulated provider
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) reuse: ReuseArguments,
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

fn pack(text: &str) -> Result<PackSize, ParsePackSizeError> {
    text.parse()
}

fn format(text: &str) -> Result<ReplyFormat, ParseReplyFormatError> {
    text.parse()
}

const EXAMPLES: &str = "\
Examples:
  bakeoff map reviews.csv --task task.toml --model openai/gpt-4o-mini --out labels.jsonl
  bakeoff map reviews.csv -t task.toml -m groq/llama-3.1-8b-instant --fallback openai/gpt-4o-mini -o labels.csv
  bakeoff map rows.jsonl -t task.toml -m sim/map -o out.jsonl --pack 20 --rpm 60 --max-cost 5

Exit codes: 0 every row has an answer · 2 usage or configuration error, or input or output changed · 3 rows without \
an answer, or job stopped early · 4 internal or I/O error · 130 interrupted";
