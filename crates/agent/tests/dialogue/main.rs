//! The agent loop, from the public API down to the HTTP requests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod compaction;
mod events;
mod history;
mod outcomes;
mod support;
mod tools;
