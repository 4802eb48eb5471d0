//! The command line: what did the user ask for?
//!
//! Arguments in, exit code out. Data goes to standard output, talk to standard error.

mod arguments;
mod commands;
mod export;
mod limits;
mod models;
mod printer;
mod problems;
mod progress;
mod settings;

use arguments::{Arguments, Command};
use clap::Parser;
use printer::Printer;

fn main() -> std::process::ExitCode {
    // Processes that outlive the program that started them must be found and killed.
    bakeoff_agent::become_subreaper();
    let arguments = Arguments::parse();
    let printer = Printer::default();
    let code = match arguments.command {
        Command::Init(arguments) => commands::init::run(&arguments, &printer),
        Command::Check(arguments) => commands::check::run(&arguments, &printer),
        Command::Run(arguments) => commands::run::run(*arguments),
        Command::Race(arguments) => commands::race::run(*arguments),
        Command::Select(arguments) => commands::select::run(*arguments),
        Command::Map(arguments) => commands::map::run(*arguments),
        Command::List(arguments) => commands::list::run(&arguments, &printer),
        Command::Report(arguments) => commands::report::run(&arguments, &printer),
        Command::Compare(arguments) => commands::compare::run(&arguments, &printer),
        Command::Score(arguments) => commands::score::run(&arguments, &printer),
        Command::Trace(arguments) => commands::trace::run(&arguments, &printer),
        Command::Probe(arguments) => commands::probe::run(&arguments, &printer),
        Command::Schema => commands::schema::run(&printer),
        Command::Sim(arguments) => commands::sim::run(&arguments, &printer),
        Command::Cache(arguments) => commands::cache::run(&arguments, &printer),
    };
    std::process::ExitCode::from(printer.settle(code).code())
}
