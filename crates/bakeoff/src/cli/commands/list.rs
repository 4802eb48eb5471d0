//! `bakeoff list`: lists stored runs.

use crate::arguments::ListArguments;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use bakeoff_history::{RunState, StoredRun};
use bakeoff_select::SearchLimit;
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
        RunState::Finished { verdict, interrupted, targets, .. } => {
            let mut shown: Vec<String> = targets
                .iter()
                .take(MAX_TARGETS)
                .map(|(name, passed, cases)| format!("{name} {passed}/{cases}"))
                .collect();
            if targets.len() > MAX_TARGETS {
                shown.push(format!("and {} more", targets.len() - MAX_TARGETS));
            }
            let state = if *interrupted { "interrupted".to_owned() } else { verdict_name(verdict) };
            format!("{}  {state}  {}", run.id, shown.join(", "))
        }
        RunState::FinishedSearch { best, confidence, stopped, .. } => {
            // Rounded down, so that the confidence is never overstated.
            let confidence = confidence.map_or(String::new(), |share| {
                format!(" (confidence {:.1} %)", (1000.0 * share).floor() / 10.0)
            });
            let stopped = stopped.map_or(String::new(), |limit| format!("; {limit}"));
            format!("{}  search  best: {best}{confidence}{stopped}", run.id)
        }
        RunState::Unfinished { trials, running } => {
            let state = if *running { "running" } else { "interrupted" };
            format!("{}  {state}  {} finished", run.id, count(*trials, "trial"))
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
        RunState::Finished { suite, verdict, interrupted, targets } => json!({
            "run_id": run.id,
            "run_dir": run.path.display().to_string(),
            "suite": suite,
            "state": if *interrupted { "interrupted" } else { "finished" },
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
            "state": match stopped {
                Some(SearchLimit::Halted) => "interrupted",
                _ => "finished",
            },
            "best": best,
            "confidence": confidence,
            "stopped": stopped,
        }),
        RunState::Unfinished { trials, running } => json!({
            "run_id": run.id,
            "run_dir": run.path.display().to_string(),
            "state": if *running { "running" } else { "interrupted" },
            "verdict": null,
            "trials": trials,
        }),
    }
}
