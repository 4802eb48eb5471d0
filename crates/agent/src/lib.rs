//! How does one agent work on one task?
//!
//! External programs: a prompt on standard input, the answer on standard output; workers that stay
//! and answer line by line; and coding agents that are known by name. Each works in a folder of its
//! own, and whatever it starts is ended with it. Scoring is for others.

mod coding;
mod group;
mod identity;
mod output;
mod process;
mod system;
mod worker;
mod workspace;

pub use coding::{CodingAgent, Listener, Said, trouble};
pub use identity::{Identity, RUN_VARIABLE, TRIAL_VARIABLE, end_left_behind};
pub use process::{Ended, Finished, Program, ProgramError, Running, is_exhaustion, run, start};
pub use worker::{WorkerError, WorkerProgram, Workers};
pub use workspace::{Left, Template, Workspace, remove};
