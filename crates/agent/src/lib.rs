//! How does one agent work on one task?
//!
//! External programs: a prompt on standard input, the answer on standard output. Scoring is for
//! others.

mod output;
mod process;

pub use process::{Ended, Finished, Program, ProgramError, run};
