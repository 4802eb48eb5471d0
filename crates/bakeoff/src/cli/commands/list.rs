//! `bakeoff list`: lists stored runs.

use crate::arguments::ListArguments;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::Printer;
use bakeoff_history::{RunState, StoredRun};
use serde_json::{Value, json};

/// Targets printed per run; an unsuccessful search can have very many.
const MAX_TARGETS: usize = 10;

pub(super) fn run(arguments: &ListArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let runs = bakeoff_history::list(&arguments.out)?;
    if runs.is_empty() {
        printer.message(format!("no runs in {}", arguments.out.display()));
    }
    runs.iter().for_each(|run| printer.data(to_line(run)));
    Ok(Outcome::passed().with("runs", runs.iter().map(to_json).collect::<Vec<_>>()))
}

fn to_line(run: &StoredRun) -> String {
    match &run.state {
        RunState::Finished { verdict, targets, .. } => {
            let mut shown: Vec<String> = targets
                .iter()
                .take(MAX_TARGETS)
                .map(|(name, passed, cases)| format!("{name} {passed}/{cases}"))
                .collect();
            if targets.len() > MAX_TARGETS {
                shown.push(format!("and {} more", targets.len() - MAX_TARGETS));
            }
            format!("{}  {}  {}", run.id, verdict_name(verdict), shown.join(", "))
        }
        RunState::FinishedSearch { best, confidence, stopped, .. } => {
            // Rounded down, so that the confidence is never overstated.
            let confidence = confidence.map_or(String::new(), |share| {
                format!(" (confidence {:.1} %)", (1000.0 * share).floor() / 10.0)
            });
            let stopped = stopped.map_or(String::new(), |limit| format!("; {limit}"));
            format!("{}  search  best: {best}{confidence}{stopped}", run.id)
        }
        RunState::Unfinished { trials } => {
            format!("{}  unfinished  {trials} trials in the journal", run.id)
        }
    }
}

fn verdict_name(verdict: &bakeoff_core::Verdict) -> String {
    serde_json::to_value(verdict)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn to_json(run: &StoredRun) -> Value {
    match &run.state {
        RunState::Finished { suite, verdict, targets } => json!({
            "run_id": run.id,
            "run_dir": run.path.display().to_string(),
            "suite": suite,
            "verdict": verdict,
            "targets": targets
                .iter()
                .map(|(name, passed, cases)| json!({"target": name, "passed": passed, "total_cases": cases}))
                .collect::<Vec<_>>(),
        }),
        RunState::FinishedSearch { suite, best, confidence, stopped } => json!({
            "run_id": run.id,
            "run_dir": run.path.display().to_string(),
            "suite": suite,
            "best": best,
            "confidence": confidence,
            "stopped": stopped,
        }),
        RunState::Unfinished { trials } => {
            json!({"run_id": run.id, "run_dir": run.path.display().to_string(), "verdict": null, "trials": trials})
        }
    }
}
