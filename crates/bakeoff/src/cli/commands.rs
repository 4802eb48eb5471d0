//! Commands, one module each. A command turns its arguments into an [`Outcome`] or a [`CliError`].

mod cache;
mod check;
mod compare;
mod init;
mod list;
mod map;
mod prices;
mod probe;
mod prune;
mod race;
mod report;
mod run;
mod schema;
mod score;
mod select;
mod shell;
mod show;
mod sim;
mod trace;
mod tune;

use crate::arguments::Command;
use crate::error::CliError;
use crate::exposed::warn_if_open_to_others;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::settings;

/// Runs a command.
pub(crate) fn run(command: Command, printer: &Printer) -> Result<Outcome, CliError> {
    command.check_standard_output()?;
    if command.uses_cache()
        && let Some(path) = settings::cache_file()
    {
        warn_if_open_to_others(&path, printer);
    }
    match command {
        Command::Init(arguments) => init::run(&arguments, printer),
        Command::Check(arguments) => check::run(&arguments, printer),
        Command::Run(arguments) => run::run(*arguments, printer),
        Command::Race(arguments) => race::run(*arguments, printer),
        Command::Select(arguments) => select::run(*arguments, printer),
        Command::Map(arguments) => map::run(&arguments, printer),
        Command::List(arguments) => list::run(&arguments, printer),
        Command::Report(arguments) => report::run(&arguments, printer),
        Command::Show(arguments) => show::run(&arguments, printer),
        Command::Compare(arguments) => compare::run(&arguments, printer),
        Command::Score(arguments) => score::run(&arguments, printer),
        Command::Trace(arguments) => trace::run(&arguments, printer),
        Command::Tune(arguments) => tune::run(&arguments, printer),
        Command::Prices(arguments) => prices::run(&arguments, printer),
        Command::Probe(arguments) => probe::run(&arguments, printer),
        Command::Schema => schema::run(printer),
        Command::Sim(arguments) => sim::run(&arguments, printer),
        Command::Cache(arguments) => cache::run(&arguments, printer),
        Command::Prune(arguments) => prune::run(&arguments, printer),
        Command::Completions(arguments) => Ok(shell::completions(&arguments, printer)),
        Command::Man(arguments) => shell::manual(&arguments, printer),
    }
}
