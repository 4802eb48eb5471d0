//! Judging strategies through the public API, with the simulated provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod fallbacks;
mod judge;
mod majority;
mod pairwise;
mod panel;
mod prompts;
mod resume;
mod support;
mod verifier;
mod wire;
