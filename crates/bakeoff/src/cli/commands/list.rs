//! `bakeoff list`.

use crate::arguments::ListArguments;
use crate::commands::failed;
use crate::printer::Printer;
use bakeoff_core::ExitCode;
use bakeoff_history::{RunState, StoredRun};
use serde_json::json;

/// Targets of a run that are shown; a search that came to nothing has very many.
const SHOWN: usize = 10;

pub(crate) fn run(arguments: &ListArguments, printer: &Printer) -> ExitCode {
    let runs = match bakeoff_history::list(&arguments.out) {
        Ok(runs) => runs,
        Err(error) => return failed(&error, printer),
    };
    if runs.is_empty() && !arguments.json {
        printer.talk(format!("no runs in {}", arguments.out.display()));
    }
    for run in &runs {
        if arguments.json { printer.json(&as_json(run)) } else { printer.data(as_line(run)) }
    }
    ExitCode::Passed
}

fn as_line(run: &StoredRun) -> String {
    match &run.state {
        RunState::Finished { verdict, targets, .. } => {
            let mut shown: Vec<String> = targets
                .iter()
                .take(SHOWN)
                .map(|(name, passed, cases)| format!("{name} {passed}/{cases}"))
                .collect();
            if targets.len() > SHOWN {
                shown.push(format!("and {} more", targets.len() - SHOWN));
            }
            format!("{}  {}  {}", run.id, word(verdict), shown.join(", "))
        }
        RunState::FinishedSearch { best, confidence, stopped, .. } => {
            let sure = confidence.map_or(String::new(), |share| {
                format!(" ({:.1} % sure)", (1000.0 * share).floor() / 10.0)
            });
            let stopped = stopped.map_or(String::new(), |limit| format!("; {limit}"));
            format!("{}  search  best: {best}{sure}{stopped}", run.id)
        }
        RunState::Unfinished { trials } => {
            format!("{}  unfinished  {trials} trials in the journal", run.id)
        }
    }
}

fn word(verdict: &bakeoff_core::Verdict) -> String {
    serde_json::to_value(verdict)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn as_json(run: &StoredRun) -> serde_json::Value {
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
