//! Files that are made of a run for other programs.

use crate::arguments::ExportArguments;
use crate::printer::Printer;
use crate::settings;
use bakeoff_core::{Summary, TrialResult};
use bakeoff_history::{Error, PastRun};
use bakeoff_journal::write_atomic_with;
use bakeoff_report::{CsvRows, Details, markdown, write_junit};
use std::io::Write;
use std::path::Path;

/// Writes what was asked for. With `finds_itself`, a step of GitHub Actions gets its summary.
pub(crate) fn export(
    wanted: &ExportArguments,
    past: &PastRun,
    summary: &Summary,
    finds_itself: bool,
    printer: &Printer,
) -> Result<(), Error> {
    let step = if finds_itself { settings::step_summary() } else { None };
    if wanted.junit.is_some() || wanted.markdown.is_some() || step.is_some() {
        let mut details = Details::default();
        for result in past.results()? {
            details.add(&result?);
        }
        if let Some(path) = &wanted.junit {
            write(path, |writer| {
                write_junit(summary, &details, writer).map_err(std::io::Error::other)
            })?;
        }
        let page = markdown(summary, &details);
        if let Some(path) = &wanted.markdown {
            write(path, |writer| writer.write_all(page.as_bytes()))?;
        }
        if let Some(path) = step
            && let Err(error) = append(&path, &page)
        {
            printer.talk(format!("warning: the step has no summary: {error}"));
        }
    }
    if let Some(path) = &wanted.csv {
        let rows = past.results()?;
        write(path, |writer| {
            let mut csv = CsvRows::new(writer).map_err(std::io::Error::other)?;
            each(rows, |result| csv.write(&result).map_err(std::io::Error::other))?;
            csv.finish().map_err(std::io::Error::other)
        })?;
    }
    if let Some(path) = &wanted.jsonl {
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
) -> Result<(), Error> {
    write_atomic_with(path, write).map_err(Error::Log)
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}
