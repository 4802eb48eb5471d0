//! `bakeoff report`: prints the results of a run.

use crate::arguments::ReportArguments;
use crate::error::{CliError, UsageError};
use crate::export::{export, export_rows, write};
use crate::outcome::Outcome;
use crate::printer::Printer;
use bakeoff_core::{Summary, Verdict};
use bakeoff_eval::{JOURNAL_DAMAGED, SelectionFile};
use bakeoff_history::{PastRun, find_run};
use bakeoff_report::{Failures, Rates, notes, rates_table, selection_markdown, summary_table};
use std::path::Path;
use std::sync::Arc;

/// Failures printed; the folder of the run has all.
const MAX_FAILURES: usize = 20;

pub(super) fn run(arguments: &ReportArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let folder = find_run(&arguments.run.out, &arguments.run.run)?;
    let past = PastRun::open(&folder)?;
    let outcome = Outcome::passed().with("run_dir", folder.display().to_string());
    if past.file.select.is_some() {
        return report_search(arguments, &folder, &past, outcome, printer);
    }
    let summary = past.summary()?;
    arguments.export.check(None)?;
    export(&arguments.export, &past, &summary, false, printer)?;
    let mut rates = Rates::new(Arc::clone(&past.file.suite.cases.chosen));
    let mut failures = Failures::new(MAX_FAILURES, Arc::clone(&past.file.suite.cases.chosen));
    for result in past.results()? {
        let result = result?;
        failures.add(&result);
        rates.add(&result);
    }
    let (checks, tags) = (rates.checks(&summary), rates.tags(&summary));
    print_summary(&summary, &failures, printer);
    for (label, rates) in [("check", &checks), ("tag", &tags)] {
        if !rates.is_empty() {
            printer.data("");
            printer.data(rates_table(label, rates));
        }
    }
    printer.data("");
    printer.data(verdict_line(&summary));
    warn_of_damage(&past, &arguments.run.out, printer)?;
    if !past.is_finished() {
        printer
            .warning("incomplete run (killed or still running); missing trials count as skipped");
        printer.hint(format!("`{}` resumes it", resume_command(&past, &arguments.run.out)));
    }
    Ok(outcome
        .with("verdict", summary.verdict)
        .with("rule", &summary.rule)
        .with("checks", &checks)
        .with("tags", &tags)
        .with("summary", &summary))
}

/// Prints and exports the result of a search, which has a winner instead of a verdict.
fn report_search(
    arguments: &ReportArguments,
    folder: &Path,
    past: &PastRun,
    outcome: Outcome,
    printer: &Printer,
) -> Result<Outcome, CliError> {
    if arguments.export.junit.is_some() {
        let message = format!("{} is a search, which has no tests for --junit", past.file.run_id);
        return Err(UsageError::new(message).hint("`--markdown FILE` writes its result").into());
    }
    export_rows(&arguments.export, past, printer)?;
    let Some(selection) = SelectionFile::read(folder)? else {
        let message = format!("the search {} has no result", past.file.run_id);
        let command = resume_command(past, &arguments.run.out);
        return Err(UsageError::new(message).hint(format!("`{command}` resumes it")).into());
    };
    if let Some(path) = &arguments.export.markdown {
        let run_id = selection.run_id.as_str();
        let page = selection_markdown(&selection.selection, &selection.suite, run_id);
        write(path, |writer| writer.write_all(page.as_bytes()))?;
    }
    super::select::print_selection(&selection, usize::MAX, printer);
    Ok(outcome.with("best", &selection.best).with("selection", &selection))
}

/// Returns the verdict of a run with its rule.
pub(super) fn verdict_line(summary: &Summary) -> String {
    let verdict = match summary.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Inconclusive => "inconclusive",
    };
    // Runs of older versions have no rule.
    let colon = if summary.rule.is_empty() { "" } else { ": " };
    format!("verdict: {verdict}{colon}{}", summary.rule)
}

/// Warns if lines of the journal of a run cannot be read.
pub(super) fn warn_of_damage(
    past: &PastRun,
    out: &Path,
    printer: &Printer,
) -> Result<(), CliError> {
    let damage = past.damage()?;
    if !damage.is_empty() {
        printer.warning_with_code(JOURNAL_DAMAGED, &damage.describe());
        let command = resume_command(past, out);
        printer.hint(format!("`{command}` runs the trials without a result again"));
    }
    Ok(())
}

/// Returns the command that resumes a run.
fn resume_command(past: &PastRun, out: &Path) -> String {
    let command = if past.file.select.is_some() { "select" } else { "run" };
    let out = match out {
        path if path == Path::new("runs") => String::new(),
        path => format!(" --out {}", path.display()),
    };
    format!("bakeoff {command} --resume {}{out}", past.file.run_id)
}

/// Prints the table of a summary, its notes and the failures.
pub(super) fn print_summary(summary: &Summary, failures: &Failures, printer: &Printer) {
    printer.data(summary_table(summary));
    for lines in [notes(summary), failures.entries(summary)] {
        if !lines.is_empty() {
            printer.data("");
            lines.iter().for_each(|line| printer.data(line));
        }
    }
}
