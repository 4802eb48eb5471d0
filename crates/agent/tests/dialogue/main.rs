//! The loop of a model and its tools, through the public door and down to the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod compaction;
mod ending;
mod events;
mod history;
mod support;
mod tools;
