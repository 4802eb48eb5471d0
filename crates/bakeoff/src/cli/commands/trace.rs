//! `bakeoff trace`: prints the logs of a run.

use crate::arguments::{StoredRunArguments, TraceArguments, TraceLog, TraceTrialsArguments};
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, chain, count};
use bakeoff_core::{HttpEntry, LimitRecord};
use bakeoff_history::{Error, RunLog, find_run, http_log, limit_log, trial_traces};
use bakeoff_report::{http_header, http_line, limit_header, limit_line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::Path;

pub(super) fn run(arguments: &TraceArguments, printer: &Printer) -> Result<Outcome, CliError> {
    match &arguments.log {
        TraceLog::Http(arguments) => {
            let only_failed = arguments.failed;
            let filter = |entry: &HttpEntry| !only_failed || entry.error.is_some();
            let format = LogFormat {
                event: "http",
                header: http_header(),
                line: http_line,
                if_empty: "no requests",
            };
            print(&arguments.run, http_log, filter, &format, printer)
        }
        TraceLog::Limits(arguments) => {
            let format = LogFormat {
                event: "limit",
                header: limit_header(),
                line: limit_line,
                if_empty: "no limit changes",
            };
            print(arguments, limit_log, |_: &LimitRecord| true, &format, printer)
        }
        TraceLog::Trials(arguments) => print_trials(arguments, printer),
    }
}

/// Prints the stored exchanges of trials with their targets.
fn print_trials(arguments: &TraceTrialsArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let run = find_run(&arguments.run.out, &arguments.run.run)?;
    let is_selected =
        |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let mut entries = 0_u64;
    for trace in trial_traces(&run)? {
        let trace = match trace {
            Ok(trace) => trace,
            // The traces of other trials do not depend on a damaged file.
            Err(error) => {
                printer.warning(format!("skipped a trial: {}", chain(&error)));
                continue;
            }
        };
        let (target, case) = (trace.key.target.as_str(), trace.key.case.as_str());
        if !is_selected(&arguments.target, target) || !is_selected(&arguments.case, case) {
            continue;
        }
        for entry in &trace.entries {
            match printer.is_json() {
                true => printer.event("trial", json!({ "key": trace.key, "entry": entry })),
                false => printer.data(format!("{target}/{case}/{} {entry}", trace.key.trial)),
            }
            entries += 1;
        }
    }
    if entries == 0 {
        printer.message(format!("no stored trials in {}", run.display()));
        printer.hint("set `artifacts = \"all\"` to keep the files of passed trials, too");
    }
    Ok(Outcome::passed().with("entries", entries))
}

/// Output format of a log.
struct LogFormat<T> {
    /// Name of the event per entry.
    event: &'static str,
    header: String,
    line: fn(&T) -> String,
    if_empty: &'static str,
}

fn print<T: Serialize + DeserializeOwned>(
    arguments: &StoredRunArguments,
    open: fn(&Path) -> Result<RunLog<T>, Error>,
    filter: impl Fn(&T) -> bool,
    format: &LogFormat<T>,
    printer: &Printer,
) -> Result<Outcome, CliError> {
    let run = find_run(&arguments.out, &arguments.run)?;
    let log = open(&run)?;
    let is_torn = log.is_torn;
    let mut entries = 0_u64;
    let mut damaged_lines = 0_u64;
    for entry in log.entries {
        let entry = match entry {
            Err(Error::Log(bakeoff_journal::Error::Damaged { .. })) => {
                damaged_lines += 1;
                continue;
            }
            entry => entry?,
        };
        if !filter(&entry) {
            continue;
        }
        if printer.is_json() {
            printer.event(format.event, json!({ "entry": entry }));
        } else {
            if entries == 0 {
                printer.data(&format.header);
            }
            printer.data((format.line)(&entry));
        }
        entries += 1;
    }
    if entries == 0 {
        printer.message(format!("{} in {}", format.if_empty, run.display()));
    }
    if damaged_lines > 0 {
        printer.warning(format!("skipped {}", count(damaged_lines, "unreadable line")));
    }
    if is_torn {
        printer.warning("skipped the incomplete last line (run killed or still running)");
    }
    Ok(Outcome::passed().with("entries", entries))
}
