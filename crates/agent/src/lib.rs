//! How does one agent work on one task?
//!
//! External programs: a prompt on standard input, the answer on standard output; or workers that
//! stay and answer line by line. Scoring is for others.

mod output;
mod process;
mod worker;

pub use process::{Ended, Finished, Program, ProgramError, run};
pub use worker::{WorkerError, WorkerProgram, Workers};
