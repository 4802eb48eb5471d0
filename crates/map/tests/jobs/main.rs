//! Tests of complete jobs with the simulated provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod edge_cases;
mod failures;
mod files;
mod invalid_replies;
mod items;
mod limits;
mod resume;
mod retry_errors;
mod support;
