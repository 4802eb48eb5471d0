//! `bakeoff completions` and `bakeoff man`: completion scripts and manual pages.

use crate::arguments::{Arguments, CompletionsArguments, ManArguments};
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use clap::CommandFactory;
use std::path::Path;

pub(super) fn completions(arguments: &CompletionsArguments, printer: &Printer) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "bakeoff", &mut script);
    printer.data(String::from_utf8_lossy(&script).trim_end());
    Outcome::passed()
}

pub(super) fn manual(arguments: &ManArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let command = Arguments::command();
    let Some(folder) = &arguments.out else {
        let page = render(command).map_err(|error| CliError::internal(error.to_string()))?;
        printer.data(page.trim_end());
        return Ok(Outcome::passed());
    };
    let failed = |error: std::io::Error| {
        CliError::internal(format!("cannot write manual pages to {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let pages = write_pages(command, "bakeoff", folder).map_err(failed)?;
    printer.data(format!("wrote {} to {}", count(pages, "page"), folder.display()));
    Ok(Outcome::passed())
}

fn render(command: clap::Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    // `help` has no page of its own.
    clap_mangen::Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
    Ok(name_sections(&String::from_utf8_lossy(&page)))
}

/// Replaces the section `EXTRA`, which contains the text below the help, by sections named after their contents.
fn name_sections(page: &str) -> String {
    let mut named = String::new();
    for line in page.lines().filter(|line| *line != ".SH EXTRA") {
        match line.strip_prefix("Exit codes: ") {
            Some(codes) => named.push_str(&format!(".SH \"EXIT STATUS\"\n{codes}\n")),
            None if line == "Examples:" => named.push_str(".SH EXAMPLES\n"),
            None => named.push_str(&format!("{line}\n")),
        }
    }
    named
}

/// Writes the page of a command and those of its subcommands; returns their number.
fn write_pages(command: clap::Command, name: &str, folder: &Path) -> std::io::Result<u64> {
    let mut pages = 1;
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("{name}-{}", subcommand.get_name());
        pages += write_pages(subcommand.clone(), &name, folder)?;
    }
    // Without a display name, the synopsis would lack the name of the program.
    let page = render(command.display_name(name).bin_name(name.replace('-', " ")))?;
    std::fs::write(folder.join(format!("{name}.1")), page)?;
    Ok(pages)
}
