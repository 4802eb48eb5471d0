//! `bakeoff-bench`: benchmarks of Bakeoff against alternatives.

mod arguments;
mod command;
mod printer;
mod program;

use arguments::Arguments;
use clap::Parser;
use printer::Printer;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    std::process::ExitCode::from(command::run(&arguments, &Printer).code())
}
