//! Races through the public API, with the simulated provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod branches;
mod contexts;
mod events;
mod figures;
mod load;
mod session_files;
mod support;
