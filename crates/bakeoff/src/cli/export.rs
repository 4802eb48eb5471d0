//! Export of a run to files for other programs.

use crate::arguments::ExportArguments;
use crate::error::CliError;
use crate::printer::{Printer, chain};
use crate::settings;
use bakeoff_core::{Summary, TrialResult};
use bakeoff_history::{PastRun, TrialInput, TrialInputs};
use bakeoff_journal::write_output;
use bakeoff_report::{CsvRows, Details, markdown, write_junit};
use serde::Serialize;
use serde_json::{Map, Value};
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
    export_rows(files, past, printer)
}

/// Writes the requested files with a row for each trial.
pub(crate) fn export_rows(
    files: &ExportArguments,
    past: &PastRun,
    printer: &Printer,
) -> Result<(), CliError> {
    if files.csv.is_none() && files.jsonl.is_none() {
        return Ok(());
    }
    let mut inputs = past.inputs()?;
    if inputs.is_none() {
        printer
            .warning("the run has no file `cases.jsonl`; prompts and fields of cases are missing");
    }
    if let Some(path) = &files.csv {
        let fields = inputs.as_ref().map(|inputs| inputs.fields().to_vec()).unwrap_or_default();
        write(path, |writer| {
            let mut csv = CsvRows::new(writer, &fields).map_err(std::io::Error::other)?;
            each_trial(past, &mut inputs, |result, input| {
                let written = csv.write(&result, input.prompt.as_deref(), input.case.as_ref());
                written.map_err(std::io::Error::other)
            })?;
            csv.finish().map_err(std::io::Error::other)
        })?;
    }
    if let Some(path) = &files.jsonl {
        write(path, |writer| {
            each_trial(past, &mut inputs, |result, TrialInput { prompt, case, .. }| {
                serde_json::to_writer(&mut *writer, &TrialRow { result, prompt, case })?;
                writer.write_all(b"\n")
            })
        })?;
    }
    Ok(())
}

/// Line of `--jsonl`.
#[derive(Serialize)]
struct TrialRow {
    #[serde(flatten)]
    result: TrialResult,
    prompt: Option<String>,
    case: Option<Map<String, Value>>,
}

fn each_trial(
    past: &PastRun,
    inputs: &mut Option<TrialInputs>,
    mut act: impl FnMut(TrialResult, TrialInput) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for result in past.results().map_err(std::io::Error::other)? {
        let result = result.map_err(std::io::Error::other)?;
        let input = inputs.as_mut().map(|inputs| inputs.read(&result.key)).transpose();
        act(result, input.map_err(std::io::Error::other)?.unwrap_or_default())?;
    }
    Ok(())
}

pub(crate) fn write(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), CliError> {
    write_output(path, write).map_err(|error| CliError::internal(chain(&error)))
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}
