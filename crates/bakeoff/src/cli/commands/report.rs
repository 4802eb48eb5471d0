//! `bakeoff report`: what a run found.

use crate::arguments::ReportArguments;
use crate::commands::failed;
use crate::export::export;
use crate::printer::Printer;
use bakeoff_core::{ExitCode, Summary};
use bakeoff_eval::{Error, SelectionFile};
use bakeoff_history::{PastRun, find_run};
use bakeoff_report::{Failures, notes, summary_table};

/// Failures shown; all are in the files.
const FAILURES_SHOWN: usize = 20;

pub(crate) fn run(arguments: &ReportArguments, printer: &Printer) -> ExitCode {
    match report(arguments, printer) {
        Ok(()) => ExitCode::Passed,
        Err(error) => failed(&error, printer),
    }
}

fn report(arguments: &ReportArguments, printer: &Printer) -> Result<(), Error> {
    let folder = find_run(&arguments.run.out, &arguments.run.run)?;
    let past = PastRun::open(&folder)?;
    if let Some(found) = SelectionFile::read(&folder)? {
        export(&arguments.export, &past, &past.summary()?, false, printer)?;
        if arguments.run.json {
            printer.json(&found);
        } else {
            super::select::show(&found, usize::MAX, printer);
        }
        return Ok(());
    }
    let summary = past.summary()?;
    export(&arguments.export, &past, &summary, false, printer)?;
    if arguments.run.json {
        printer.json(&summary);
        return Ok(());
    }
    let mut failures = Failures::new(FAILURES_SHOWN);
    for result in past.results()? {
        failures.add(&result?);
    }
    show(&summary, &failures, printer);
    if !past.is_finished() {
        printer.talk("this run has no end: it was killed or still goes on; what is missing counts as skipped");
        let command = if past.file.select.is_some() { "select" } else { "run" };
        printer.talk(format!(
            "  hint: `bakeoff {command} --resume {}` goes on with it",
            past.file.run_id
        ));
    }
    Ok(())
}

/// The table and what stands below it.
pub(crate) fn show(summary: &Summary, failures: &Failures, printer: &Printer) {
    printer.data(summary_table(summary));
    for lines in [notes(summary), failures.lines()] {
        if !lines.is_empty() {
            printer.data("");
            lines.iter().for_each(|line| printer.data(line));
        }
    }
}
