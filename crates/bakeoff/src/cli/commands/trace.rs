//! `bakeoff trace`: how the calls of a run went out.

use crate::arguments::{StoredRunArguments, Trace, TraceArguments};
use crate::commands::failed;
use crate::printer::Printer;
use bakeoff_core::{ExitCode, HttpEntry, LimitRecord};
use bakeoff_history::{Error, RunLog, find_run, http_log, limit_log};
use bakeoff_report::{http_header, http_line, limit_header, limit_line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

pub(crate) fn run(arguments: &TraceArguments, printer: &Printer) -> ExitCode {
    let shown = match &arguments.what {
        Trace::Http(arguments) => {
            let failed = arguments.failed;
            let wanted = |entry: &HttpEntry| !failed || entry.error.is_some();
            let view = View { header: http_header(), line: http_line, nothing: "no calls" };
            show(&arguments.run, http_log, wanted, &view, printer)
        }
        Trace::Limits(arguments) => {
            let view = View { header: limit_header(), line: limit_line, nothing: "no changes" };
            show(arguments, limit_log, |_: &LimitRecord| true, &view, printer)
        }
    };
    match shown {
        Ok(()) => ExitCode::Passed,
        Err(error) => failed(&error, printer),
    }
}

/// How entries are shown to people.
struct View<T> {
    header: String,
    line: fn(&T) -> String,
    nothing: &'static str,
}

fn show<T: Serialize + DeserializeOwned>(
    arguments: &StoredRunArguments,
    open: fn(&Path) -> Result<RunLog<T>, Error>,
    wanted: impl Fn(&T) -> bool,
    view: &View<T>,
    printer: &Printer,
) -> Result<(), Error> {
    let run = find_run(&arguments.out, &arguments.run)?;
    let traced = open(&run)?;
    let is_torn = traced.is_torn;
    let mut count = 0_u64;
    for entry in traced.entries {
        let entry = entry?;
        if !wanted(&entry) {
            continue;
        }
        if arguments.json {
            printer.json(&entry);
        } else {
            if count == 0 {
                printer.data(&view.header);
            }
            printer.data((view.line)(&entry));
        }
        count += 1;
    }
    if count == 0 && !arguments.json {
        printer.talk(format!("{} in {}", view.nothing, run.display()));
    }
    if is_torn {
        printer
            .talk("the last line is not complete and was left out; the run was killed, or goes on");
    }
    Ok(())
}
