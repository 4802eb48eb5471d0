//! The program as its users see it: exit codes, standard output, standard error, files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod acceptance;
mod agents;
mod bad_checks;
mod bad_suites;
mod bad_targets;
mod checks;
mod clients;
mod compatibility;
mod disk;
mod docs;
mod evidence;
mod fastskill;
mod faults;
mod killed;
mod map;
mod pacing;
mod pacing_http;
mod probe;
mod programs;
mod race;
mod reports;
mod resume;
mod runs;
mod secrets;
mod select;
mod services;
mod stopping;
mod support;
mod tools;
mod workers;
