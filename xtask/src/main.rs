//! The project's own chores.
//!
//! `cargo xtask test` is the one test command: people, the workflow and CI all call it.

mod layers;
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("test") => steps::test(),
        Some("layers") => layers::check(),
        _ => Err("usage: cargo xtask test | layers".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            steps::say(&format!("xtask: {message}"));
            ExitCode::FAILURE
        }
    }
}
