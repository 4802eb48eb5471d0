//! Arguments of the commands around providers: `probe`, `sim` and `cache`.

use super::values::{positive, seconds, whole};
use bakeoff_core::NanoDollars;
use clap::{Args, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = PROBE_EXAMPLES)]
pub(crate) struct ProbeArguments {
    /// Model as `provider/model`, or with --suite a name under [models]
    pub(crate) model: String,
    /// Suite that defines the model: file, or folder with a bakeoff.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Base URL instead of the provider's
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Maximum number of requests
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = positive::<u32>)]
    pub(crate) max_requests: u32,
    /// Maximum cost in US dollars; requires a model with a known price
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<NanoDollars>,
    /// Maximum duration, excluding requests in flight at the end
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) max_seconds: Duration,
    /// Maximum number of requests in flight
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: u32,
    /// Prompt, followed by a number; use the length of your real prompts [default: Repeat this number and say nothing else:]
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Maximum number of output tokens per request
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive::<u64>)]
    pub(crate) max_tokens: u64,
    /// Skip the confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const PROBE_EXAMPLES: &str = "\
Examples:
  bakeoff probe openai/gpt-4o-mini --max-cost 0.05
  bakeoff probe quick --suite bakeoff.toml
  bakeoff probe openai/my-model --base-url http://localhost:8000/v1 --yes";

#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Port; 0 selects a free one
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub(crate) port: u16,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Profile file with limits, latency and outages; the first profile applies
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Latency of every response in milliseconds [default: that of the model, of the profile, or 0]
    #[arg(long, value_name = "MS", value_parser = whole::<u32>)]
    pub(crate) latency_ms: Option<u32>,
    /// Seed of the responses
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) action: CacheAction,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum CacheAction {
    /// Print the location and size of the cache
    Stats,
    /// Delete all cached responses
    Clear,
}

#[derive(Debug, Args)]
#[command(after_help = PRICES_EXAMPLES)]
pub(crate) struct PricesArguments {
    /// Model as `provider/model`, or with --suite a name under [models]
    #[arg(value_name = "MODEL")]
    pub(crate) model: String,
    /// Suite whose [models] apply
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<PathBuf>,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const PRICES_EXAMPLES: &str = "\
Examples:
  bakeoff prices openai/gpt-4o-mini      price in the built-in catalogue
  bakeoff prices small --suite .         price that the suite uses for its model `small`";
