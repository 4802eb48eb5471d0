//! What can be typed after `bakeoff map`.

use super::{KeptArguments, LimitArguments};
use bakeoff_core::NanoDollars;
use bakeoff_map::{PackSize, ParsePackSizeError, ParseReplyFormatError, ReplyFormat};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MapArguments {
    /// The rows: a .csv, .jsonl, .ndjson or .json file
    pub(crate) rows: PathBuf,
    /// What is asked about every row: instructions, fields to show, the form of an answer
    #[arg(long, short, value_name = "FILE")]
    pub(crate) task: PathBuf,
    /// Who is asked: `provider/model`, or with --suite a name under its [models]
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: String,
    /// Who is asked about rows that the model could not answer; may be given several times, and is
    /// asked in that order
    #[arg(long = "fallback", value_name = "MODEL")]
    pub(crate) fallbacks: Vec<String>,
    /// Where rows go with their answers: a .jsonl, .ndjson or .csv file. When it has been begun, the
    /// rest is made
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Rows per request, or `auto`: many where requests are the limit, one where tokens are; instead
    /// of the task's
    #[arg(long, value_name = "N|auto", value_parser = pack)]
    pub(crate) pack: Option<PackSize>,
    /// How the model writes its replies: json, xml or yaml; instead of the task's
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<ReplyFormat>,
    /// Start no request that is likely to bring the cost of the job above so many dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Go on with a job that was interrupted, and do not begin one; without it, what has been begun
    /// goes on, and what has not is begun
    #[arg(long, conflicts_with = "force")]
    pub(crate) resume: bool,
    /// Begin anew, whatever is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Ask once more about rows that have no answer, with the models in their order; answers from the
    /// cache do not count
    #[arg(long, conflicts_with = "force")]
    pub(crate) retry_errors: bool,
    /// Say how many requests it takes and what they are likely to cost, and ask nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// A suite whose [models] and [sim] can be named: a file, or a folder with a bakeoff.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Seed of the rows' ids and of the simulated provider
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) kept: KeptArguments,
    /// One JSON event per line on standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    // Last, because its heading holds for everything after it.
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

Exit codes: 0 every row has an answer · 2 usage or configuration error, nothing was called · 3 some rows \
have none, or the job was stopped before its end · 4 internal or I/O error · 130 interrupted";
