//! Tasks of the project: `cargo xtask test` is the one test command, used by developers, the workflow and CI.

mod layers;
mod steps;
mod tools;
mod wheel;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("test") => steps::test(),
        Some("layers") => layers::check(),
        Some("wheel") => wheel::check().map(|_| ()),
        _ => Err("usage: cargo xtask test | layers | wheel".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            print(&format!("xtask: {message}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to standard error.
fn print(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
