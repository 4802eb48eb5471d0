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
pub(crate) use probe::{CacheAction, CacheArguments, ProbeArguments, SimArguments};
pub(crate) use race::{AnswerScope, RaceArguments, StrategyName};
pub(crate) use run::RunArguments;
pub(crate) use select::SelectArguments;
pub(crate) use shared::{ExportArguments, LimitArguments, StoredRunArguments};
pub(crate) use shell::{CompletionsArguments, ManArguments};
pub(crate) use stored::{
    CompareArguments, ListArguments, ReportArguments, ScoreArguments, TraceArguments, TraceLog,
    TraceTrialsArguments, TuneArguments,
};
pub(crate) use suite::{CheckArguments, InitArguments};

use crate::printer::OutputMode;
use clap::{Parser, Subcommand};

/// Parsed command line.
#[derive(Debug, Parser)]
#[command(name = "bakeoff", version, about = ABOUT, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
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
    /// Print the JSON Schema of bakeoff.toml
    Schema,
    /// Serve the simulated provider over HTTP, in the OpenAI and Anthropic formats
    Sim(SimArguments),
    /// Inspect or clear the response cache
    Cache(CacheArguments),
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
            Command::Compare(arguments) => (arguments.json, false),
            Command::Score(arguments) => (arguments.run.json, false),
            Command::Trace(arguments) => (arguments.log.run().json, false),
            Command::Tune(arguments) => (arguments.run.json, false),
            Command::Probe(arguments) => (arguments.json, false),
            Command::Check(arguments) => (arguments.json, false),
            Command::Init(_)
            | Command::Schema
            | Command::Sim(_)
            | Command::Cache(_)
            | Command::Completions(_)
            | Command::Man(_) => (false, false),
        };
        match (json, quiet) {
            (true, _) => OutputMode::Json,
            (false, true) => OutputMode::Quiet,
            (false, false) => OutputMode::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn argument_definition_is_consistent() {
        Arguments::command().debug_assert();
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
