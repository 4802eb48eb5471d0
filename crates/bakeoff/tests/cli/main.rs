//! End-to-end tests of the `bakeoff` binary: exit codes, output and files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod acceptance;
mod agents;
mod bad_checks;
mod bad_suites;
mod bad_targets;
mod budgets;
mod case_selection;
mod chat_history;
mod checks;
mod clients;
mod comparisons;
mod compatibility;
mod damage;
mod disk;
mod docs;
mod evidence;
mod fastskill;
mod fastskill_golden;
mod faults;
mod isolation;
mod json;
mod killed;
mod map;
mod matrix;
mod pacing;
mod pacing_http;
mod prices;
mod probe;
mod programs;
mod race;
mod reports;
mod resume;
mod runs;
mod secrets;
mod select;
mod services;
mod shell;
mod show;
mod stopping;
mod support;
mod tools;
mod tune;
mod verdicts;
mod workers;
