//! Export of a run to files for other programs.

use crate::arguments::ExportArguments;
use crate::error::CliError;
use crate::printer::{Printer, chain};
use crate::settings;
use bakeoff_core::{Summary, TrialResult};
use bakeoff_history::{Error, PastRun};
use bakeoff_journal::write_output;
use bakeoff_report::{CsvRows, Details, markdown, write_junit};
use std::io::Write;
use std::path::Path;

/// Writes the requested files and, with `with_step_summary`, the summary of a GitHub Actions step.
pub(crate) fn export(
    files: &ExportArguments,
    past: &PastRun,
    summary: &Summary,
    with_step_summary: bool,
    printer: &Printer,
) -> Result<(), CliError> {
    let step = if with_step_summary { settings::step_summary() } else { None };
    if files.junit.is_some() || files.markdown.is_some() || step.is_some() {
        let mut details = Details::default();
        for result in past.results()? {
            details.add(&result?);
        }
        if let Some(path) = &files.junit {
            write(path, |writer| {
                write_junit(summary, &details, files.junit_per.into(), writer)
                    .map_err(std::io::Error::other)
            })?;
        }
        let page = markdown(summary, &details);
        if let Some(path) = &files.markdown {
            write(path, |writer| writer.write_all(page.as_bytes()))?;
        }
        if let Some(path) = step
            && let Err(error) = append(&path, &page)
        {
            printer.warning(format!("cannot write the step summary: {error}"));
        }
    }
    if let Some(path) = &files.csv {
        let rows = past.results()?;
        write(path, |writer| {
            let mut csv = CsvRows::new(writer).map_err(std::io::Error::other)?;
            each(rows, |result| csv.write(&result).map_err(std::io::Error::other))?;
            csv.finish().map_err(std::io::Error::other)
        })?;
    }
    if let Some(path) = &files.jsonl {
        let rows = past.results()?;
        write(path, |writer| {
            each(rows, |result| {
                serde_json::to_writer(&mut *writer, &result)?;
                writer.write_all(b"\n")
            })
        })?;
    }
    Ok(())
}

fn each(
    rows: impl Iterator<Item = Result<TrialResult, Error>>,
    mut act: impl FnMut(TrialResult) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for row in rows {
        act(row.map_err(std::io::Error::other)?)?;
    }
    Ok(())
}

fn write(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), CliError> {
    write_output(path, write).map_err(|error| CliError::internal(chain(&error)))
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}
