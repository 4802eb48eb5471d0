//! The `bakeoff` command line.
//!
//! [`arguments`] defines what can be typed, [`commands`] runs it, and this file turns the outcome into output
//! and an exit code. Data goes to standard output, messages go to standard error. Algorithms live in the
//! library crates.

mod arguments;
mod client;
mod commands;
mod confirm;
mod error;
mod export;
mod exposed;
mod failed_cases;
mod keyless;
mod limits;
mod models;
mod outcome;
mod output_file;
mod printer;
mod problems;
mod progress;
mod resume_command;
mod settings;
mod shutdown;

use arguments::Arguments;
use error::UsageError;
use printer::{OutputMode, Printer};

fn main() -> std::process::ExitCode {
    // Adopts processes that outlive the program that started them, so that they can be found and killed.
    bakeoff_agent::become_subreaper();
    let code = match Arguments::read() {
        Ok(arguments) => {
            let printer = Printer::new(arguments.command.output_mode());
            let outcome = commands::run(arguments.command, &printer);
            bakeoff_agent::kill_descendants();
            printer.finish(outcome).code()
        }
        Err(error) => reject(&error),
    };
    std::process::ExitCode::from(code)
}

/// Prints the help, the version or the usage error of clap, and returns the exit code.
fn reject(error: &clap::Error) -> u8 {
    let code = u8::try_from(error.exit_code()).unwrap_or(u8::MAX);
    // Standard error may be closed; the exit code still reports the error.
    let _ = error.print();
    // The arguments are not parsed, so the stream can only be recognised by its flag.
    let has_json = std::env::args_os()
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json");
    if error.use_stderr() && has_json {
        let text = error.render().to_string();
        // The list of missing arguments and the tips follow the first line; the usage is not part of the message.
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines = lines.take_while(|line| {
            !line.starts_with("Usage:") && !line.starts_with("For more information")
        });
        let message = lines.collect::<Vec<_>>().join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let error = UsageError::new(message).hint("`--help` lists the arguments");
        return Printer::new(OutputMode::Json).error_event(&error.into()).code();
    }
    code
}
