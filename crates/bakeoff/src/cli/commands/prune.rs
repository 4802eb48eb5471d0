//! `bakeoff prune`: deletes old runs and old responses of the cache.

use crate::arguments::PruneArguments;
use crate::confirm::confirm;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use crate::settings;
use bakeoff_history::{OldRun, old_runs};
use bakeoff_llm::Cache;
use std::time::SystemTime;

pub(super) fn run(arguments: &PruneArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let before = SystemTime::now().checked_sub(arguments.older_than);
    let before = before.unwrap_or(SystemTime::UNIX_EPOCH);
    let runs = old_runs(&arguments.out, before)?;
    let cache = settings::cache_file();
    let responses = match &cache {
        Some(cache) => Cache::count_before(cache, before)?,
        None => 0,
    };
    if arguments.dry_run || !arguments.yes {
        runs.iter().for_each(|run| printer.notice(line(run)));
        printer.notice(format!("{} of the cache", count(responses, "response")));
    }
    if arguments.dry_run {
        return Ok(outcome(&runs, responses, arguments.dry_run, printer));
    }
    if !arguments.yes && (!runs.is_empty() || responses > 0) {
        confirm(printer)?;
    }
    let mut deleted = Vec::with_capacity(runs.len());
    for run in runs {
        match run.delete()? {
            true => deleted.push(run),
            false => printer.warning(format!("skipped {}: it is running", run.path.display())),
        }
    }
    let responses = match &cache {
        Some(cache) if responses > 0 => Cache::delete_before(cache, before)?,
        _ => 0,
    };
    Ok(outcome(&deleted, responses, arguments.dry_run, printer))
}

fn line(run: &OldRun) -> String {
    format!("{}  {}", run.path.display(), megabytes(run.bytes))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Prints the sum of the runs and responses, and returns it.
fn outcome(runs: &[OldRun], responses: u64, is_plan: bool, printer: &Printer) -> Outcome {
    let bytes = runs.iter().map(|run| run.bytes).sum();
    let action = if is_plan { "would delete" } else { "deleted" };
    printer.data(format!(
        "{action} {} ({}) and {} of the cache",
        count(runs.len() as u64, "run"),
        megabytes(bytes),
        count(responses, "response")
    ));
    let paths: Vec<String> = runs.iter().map(|run| run.path.display().to_string()).collect();
    Outcome::passed()
        .with("dry_run", is_plan)
        .with("runs", paths)
        .with("bytes", bytes)
        .with("responses", responses)
}
