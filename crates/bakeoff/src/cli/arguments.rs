//! Command-line arguments, one file per group of commands.

mod map;
mod probe;
mod race;
mod run;
mod select;
mod shared;
mod shell;
mod stored;
mod suite;
mod values;

pub(crate) use map::MapArguments;
pub(crate) use probe::{
    CacheAction, CacheArguments, PricesArguments, ProbeArguments, SimArguments,
};
pub(crate) use race::{AnswerScope, RaceArguments, StrategyName};
pub(crate) use run::RunArguments;
pub(crate) use select::SelectArguments;
pub(crate) use shared::{ExportArguments, LimitArguments, StoredRunArguments};
pub(crate) use shell::{CompletionsArguments, ManArguments};
pub(crate) use stored::{
    CompareArguments, ListArguments, PruneArguments, ReportArguments, ScoreArguments,
    ShowArguments, TraceArguments, TraceLog, TraceTrialsArguments, TuneArguments,
};
pub(crate) use suite::{CheckArguments, InitArguments};

use crate::error::UsageError;
use crate::printer::OutputMode;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// Parsed command line.
#[derive(Debug, Parser)]
#[command(name = "bakeoff", version, about = ABOUT, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Parses the arguments of this process.
    pub(crate) fn read() -> Result<Arguments, clap::Error> {
        Arguments::parse_from_words(std::env::args_os())
    }

    fn parse_from_words(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Arguments, clap::Error> {
        let mut command = accept_negative_numbers(Arguments::command());
        let matches = command.try_get_matches_from_mut(words)?;
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Takes a negative number after an option for its value, so that the message names the value and its range. It would
/// be an unknown option otherwise.
fn accept_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let has_value = argument.get_action().takes_values() && !argument.is_positional();
        // Some options accept more words with a leading hyphen.
        let accepts = has_value && !argument.is_allow_hyphen_values_set();
        if accepts { argument.allow_negative_numbers(true) } else { argument }
    });
    command.mut_subcommands(accept_negative_numbers)
}

const ABOUT: &str = "Compare language models, prompts and agents, with confidence intervals";

const EXIT_CODES: &str = "\
Exit codes: 0 passed · 1 failed · 2 usage or configuration error, no call was made · \
3 inconclusive · 4 internal or I/O error · 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write an example suite for the simulated provider
    Init(InitArguments),
    /// Validate a suite and print its plan, without making a call
    #[command(visible_alias = "validate")]
    Check(CheckArguments),
    /// Run a suite: cases × targets × trials
    Run(Box<RunArguments>),
    /// Send a prompt to several models and choose the best answer
    Race(Box<RaceArguments>),
    /// Find the best combination of models for the roles of an agent
    Select(Box<SelectArguments>),
    /// Process many rows with few requests, validated against a schema
    Map(Box<MapArguments>),
    /// List stored runs
    List(ListArguments),
    /// Print the results of a run, or export them as JUnit, Markdown, CSV or JSONL
    Report(ReportArguments),
    /// Print the prompt, answer, checks, tools and judges of the trials of a case
    Show(ShowArguments),
    /// Compare targets case by case, with significance tests
    Compare(CompareArguments),
    /// Re-run checks on the stored outputs of a run
    Score(ScoreArguments),
    /// Print the request log or limit log of a run
    Trace(TraceArguments),
    /// Change the limits of a running run, or pause it
    Tune(TuneArguments),
    /// Measure the rate and concurrency limits of a model
    Probe(ProbeArguments),
    /// Print the price of a model and its source
    Prices(PricesArguments),
    /// Print the JSON Schema of bakeoff.toml
    Schema,
    /// Serve the simulated provider over HTTP, in the OpenAI and Anthropic formats
    Sim(SimArguments),
    /// Inspect or clear the response cache
    Cache(CacheArguments),
    /// Delete old runs and old responses of the cache
    Prune(PruneArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Print the manual page, or write one page per command
    Man(ManArguments),
}

impl Command {
    /// Returns the output mode that the arguments select.
    pub(crate) fn output_mode(&self) -> OutputMode {
        let (json, quiet) = match self {
            Command::Run(arguments) => (arguments.execution.json, arguments.execution.quiet),
            Command::Race(arguments) => (arguments.json, arguments.quiet),
            Command::Select(arguments) => (arguments.execution.json, arguments.execution.quiet),
            Command::Map(arguments) => (arguments.json, arguments.quiet),
            Command::List(arguments) => (arguments.json, false),
            Command::Report(arguments) => (arguments.run.json, false),
            Command::Show(arguments) => (arguments.json, false),
            Command::Compare(arguments) => (arguments.json, false),
            Command::Score(arguments) => (arguments.run.json, false),
            Command::Trace(arguments) => (arguments.log.run().json, false),
            Command::Tune(arguments) => (arguments.run.json, false),
            Command::Probe(arguments) => (arguments.json, false),
            Command::Prices(arguments) => (arguments.json, false),
            Command::Prune(arguments) => (arguments.json, false),
            Command::Check(arguments) => (arguments.json, false),
            Command::Init(_)
            | Command::Schema
            | Command::Sim(_)
            | Command::Cache(_)
            | Command::Completions(_)
            | Command::Man(_) => (false, false),
        };
        let is_redirected = self.exports().is_some_and(|files| files.to_standard_output() > 0);
        match (json, quiet) {
            (true, _) => OutputMode::Json,
            (false, true) => OutputMode::Quiet,
            (false, false) if is_redirected => OutputMode::Redirected,
            (false, false) => OutputMode::Text,
        }
    }

    /// Returns whether the command reads or writes the response cache, unless its flags say otherwise.
    pub(crate) fn uses_cache(&self) -> bool {
        matches!(
            self,
            Command::Run(_)
                | Command::Race(_)
                | Command::Select(_)
                | Command::Map(_)
                | Command::Score(_)
        )
    }

    /// Returns the export files of commands that have some.
    fn exports(&self) -> Option<&ExportArguments> {
        match self {
            Command::Run(arguments) => Some(&arguments.export),
            Command::Report(arguments) => Some(&arguments.export),
            Command::Score(arguments) => Some(&arguments.export),
            _ => None,
        }
    }

    /// Checks that standard output has one use.
    pub(crate) fn check_standard_output(&self) -> Result<(), UsageError> {
        let exports = self.exports().map_or(0, ExportArguments::to_standard_output);
        let uses = exports + usize::from(self.output_mode() == OutputMode::Json);
        if exports == 0 || uses == 1 {
            return Ok(());
        }
        let message = "`-` is standard output, which has one use; several options write to it";
        Err(UsageError::new(message).hint("name files for all but one of them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn negative_number_is_the_value_of_its_option() {
        let error = |words: &str| {
            let words = ["bakeoff"].into_iter().chain(words.split(' '));
            Arguments::parse_from_words(words).unwrap_err().to_string()
        };
        let table = [
            ("tune --rpm -1", "'-1' for '--rpm <N>': must be at least 1"),
            (
                "tune --max-connections -1",
                "'-1' for '--max-connections <N>': -1 is not in 1..=100000",
            ),
            (
                "run --deadline -3",
                "'-3' for '--deadline <SECONDS>': `-3` is not a number of seconds",
            ),
            ("run --rpm -5", "'-5' for '--rpm <N>': must be at least 1"),
            ("run --max-cost -0.5", "'-0.5' for '--max-cost <USD>': "),
            ("run --parallel -2", "'-2' for '--parallel <N>': must be at least 1"),
            ("run --seed -1", "'-1' for '--seed <N>': must be at least 0"),
            ("run --max-retries -1", "'-1' for '--max-retries <N>': must be at least 0"),
            ("run --threshold -0.1", "'-0.1' for '--threshold <SHARE>': "),
            ("compare a --alpha -1", "'-1' for '--alpha <LEVEL>': `-1` is not a number between"),
            ("probe sim/echo --max-seconds -1", "'-1' for '--max-seconds <SECONDS>': "),
            ("race hi --temperature -1", "'-1' for '--temperature <T>': "),
            ("sim --port -1", "'-1' for '--port <N>': -1 is not in 0..=65535"),
        ];
        for (words, expected) in table {
            let error = error(words);
            assert!(error.starts_with(&format!("error: invalid value {expected}")), "{error}");
        }
        assert!(error("run -5").starts_with("error: unexpected argument '-5'"));
    }

    #[test]
    fn every_option_accepts_negative_numbers() {
        fn check(command: &clap::Command) {
            for argument in command.get_opts().filter(|option| option.get_action().takes_values()) {
                let accepts = argument.is_allow_negative_numbers_set()
                    || argument.is_allow_hyphen_values_set();
                assert!(accepts, "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&accept_negative_numbers(Arguments::command()));
    }

    #[test]
    fn help_texts_are_one_line_without_full_stop() {
        fn check(command: &clap::Command) {
            let texts = command
                .get_arguments()
                .map(|argument| (argument.get_id().to_string(), argument.get_help()))
                .chain([(command.get_name().to_owned(), command.get_about())]);
            for (name, text) in texts {
                let text = text.map(ToString::to_string).unwrap_or_default();
                let place = format!("{} {name}: {text:?}", command.get_name());
                assert!(!text.is_empty() && !text.ends_with('.'), "{place}");
                assert!(!text.contains('\n'), "{place}");
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }
}
