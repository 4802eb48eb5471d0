//! Whole jobs, from a file with rows to a file with answers, on the simulated provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod again;
mod attack;
mod files;
mod limits;
mod odd;
mod resume;
mod support;
mod trouble;
