//! Command-line arguments of `bakeoff-bench`.

use bakeoff_bench::pace::Contender;
use bakeoff_bench::world::WorldStrategy;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Parsed command line.
#[derive(Debug, Parser)]
#[command(name = "bakeoff-bench", version, about = "Benchmarks of Bakeoff against alternatives")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) benchmark: Benchmark,
    /// Program to measure [default: `bakeoff` next to this program, built by cargo if possible]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// Compare a run over loopback HTTP with a bare loop that makes the same calls
    Engine(EngineArguments),
    /// Compare schedulers on simulated providers, in virtual time
    Pace(PaceArguments),
    /// Measure the cost of a permit under load, next to tokio's semaphore
    Permits(PermitsArguments),
    /// Hold thousands of requests in flight over loopback HTTP
    Flight(FlightArguments),
    /// Measure wrong verdicts of early stopping, coverage of intervals and errors of compare
    Honesty(HonestyArguments),
    /// Check that map loses and swaps no rows; measure packing and memory
    Map(MapArguments),
    /// Measure races with biased judges, early-stopping votes and many parallel races
    Race(RaceArguments),
    /// Compare selectors on recorded and generated matrices
    Select(SelectArguments),
    /// Compare strategies over loopback HTTP in real time, under the conditions of real servers
    World(WorldArguments),
}

#[derive(Debug, Args)]
pub(crate) struct EngineArguments {
    /// Number of cases of the large run
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cases: u32,
    /// Number of requests in flight
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Latency of every response in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    pub(crate) latency_ms: u32,
    /// Measurements of each; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PaceArguments {
    /// Profile file to use instead of the built-in profiles; repeatable
    #[arg(long = "profile", value_name = "FILE")]
    pub(crate) profiles: Vec<PathBuf>,
    /// Number of random profiles to use instead of the built-in ones
    #[arg(long, value_name = "N", group = "random_profiles", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) random: Option<u32>,
    /// Like --random, with random rejections, batching servers, short windows and excessive waits
    #[arg(long, value_name = "N", group = "random_profiles", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) random_world: Option<u32>,
    /// Seed of the random profiles
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random_profiles")]
    pub(crate) seed: u64,
    /// Scheduler to run: auto, auto-strict, adaptive, reactive, proactive, fixed-N or cubic; repeatable
    /// [default: all]
    #[arg(long = "policy", value_name = "NAME")]
    pub(crate) policies: Vec<Contender>,
    /// Runs per scheduler and profile
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,
    /// Maximum number of requests in flight, for all schedulers
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) ceiling: u32,
    /// Median milliseconds of a jittered network, each way [default: responses take 2 ms]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) network_ms: Option<u32>,
    /// Measure the default strategy over loopback HTTP in real time, on three profiles
    #[arg(long, conflicts_with_all = ["profiles", "random", "random_world", "policies"])]
    pub(crate) http: bool,
    /// Calls per profile, with --http
    #[arg(long, value_name = "N", default_value_t = 2000, requires = "http", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) calls: u32,
    /// Print one JSON object per profile and scheduler
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PermitsArguments {
    /// Number of waiting requests
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) waiting: u32,
    /// Permits granted per strategy
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) permits: u64,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FlightArguments {
    /// Number of requests, all in flight at once
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) requests: u32,
    /// Latency of every response in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub(crate) latency_ms: u32,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HonestyArguments {
    /// Part to measure; repeatable [default: all]
    #[arg(long = "part", value_name = "PART")]
    pub(crate) parts: Vec<HonestyPart>,
    /// Runs per row, with and without early stopping
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) seeds: u64,
    /// Targets per row of the coverage
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) samples: u32,
    /// Number of compared pairs of each kind
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) pairs: u64,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Part of the honesty benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HonestyPart {
    /// Early stops
    Stops,
    /// Coverage of intervals
    Coverage,
    /// Comparisons
    Comparisons,
}

#[derive(Debug, Args)]
pub(crate) struct MapArguments {
    /// Rows per seed, sent through a model that makes every kind of error
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) attacked: u32,
    /// Number of seeds; each uses different ids and faults
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) seeds: u32,
    /// Rows of the largest job; its memory is compared with a job of a tenth of the rows
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) rows: u32,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RaceArguments {
    /// Races per row
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) races: u64,
    /// Position bias of the judge in favour of the first answer; qualities range from 0 to 1
    #[arg(long, value_name = "B", default_value_t = 0.3)]
    pub(crate) bias: f64,
    /// Standard deviation of the judge's error per answer
    #[arg(long, value_name = "S", default_value_t = 0.1, value_parser = non_negative)]
    pub(crate) noise: f64,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SelectArguments {
    /// Recorded matrix of combinations and datapoints, as JSON; repeatable
    #[arg(long = "matrix", value_name = "FILE")]
    pub(crate) matrices: Vec<PathBuf>,
    /// Recorded matrix of which random parts are measured: 9 to 20 neighbours in the ranking, 100 to 300 datapoints;
    /// repeatable
    #[arg(long = "parts-of", value_name = "FILE")]
    pub(crate) parts_of: Vec<PathBuf>,
    /// Number of parts of each
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) parts: u64,
    /// Generated matrices whose name contains NAME; `all` or `none`
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) generated: String,
    /// Generated matrices per kind
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) instances: u64,
    /// Selector to run; repeatable [default: all that need no model]
    #[arg(long = "selector", value_name = "NAME")]
    pub(crate) selectors: Vec<String>,
    /// Number of orders of the datapoints
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) seeds: u64,
    /// First seed of orders, parts and generated matrices; another one gives data that differ from all figures in the docs
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100_000))]
    pub(crate) seed: u64,
    /// Confidence for auto and strict
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Print one JSON object per matrix and selector
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorldArguments {
    /// Row to measure; repeatable or separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    pub(crate) rows: Vec<String>,
    /// Strategy to measure: auto, adaptive, reactive, proactive, none or fixed-N; separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1.., default_value = "auto")]
    pub(crate) strategies: Vec<WorldStrategy>,
    /// Factor on the length of all rows; 0.2 for a quick check
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// Number of random mixes to measure instead of the rows, or in addition to --rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) mixes: Option<u32>,
    /// Seed of the random mixes
    #[arg(long, value_name = "S", default_value_t = 1, requires = "mixes")]
    pub(crate) seed: u64,
    /// Print one JSON object per row and strategy
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a factor on the length of rows. The bounds keep a row between a moment and a day.
fn scale(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.001..=100.0).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a number from 0.001 to 100"))
}

fn non_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is not a non-negative number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
