//! `bakeoff show`: prints the stored trials of a case.

mod render;

use crate::arguments::ShowArguments;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, chain};
use bakeoff_history::{PastRun, StoredTrial, TrialSelection, find_run};
use render::trial_text;
use serde_json::{Value, json};

pub(super) fn run(arguments: &ShowArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let folder = find_run(&arguments.out, &arguments.run)?;
    let past = PastRun::open(&folder)?;
    let selection = TrialSelection {
        case: &arguments.case,
        target: arguments.target.as_deref(),
        trial: arguments.trial,
    };
    let trials = past.trials(selection)?;
    for (index, trial) in trials.iter().enumerate() {
        if index > 0 {
            printer.data("");
        }
        // Outputs may contain sequences that take over a terminal; `--json` has them unchanged.
        printer.data(trial_text(trial));
        if let Some(missing) = missing(trial) {
            printer.warning(missing);
            printer.hint("set `artifacts = \"all\"` under [suite] to store them for every trial");
        }
    }
    // As JSON, the trials of a case may be large.
    if !printer.is_json() {
        return Ok(Outcome::passed());
    }
    Ok(Outcome::passed()
        .with("run_dir", folder.display().to_string())
        .with("trials", trials.iter().map(to_json).collect::<Vec<_>>()))
}

/// Describes the parts of a trial that are not stored, or cannot be read.
fn missing(trial: &StoredTrial) -> Option<String> {
    let number = trial.result.key.trial;
    match &trial.exchange {
        Ok(Some(_)) => None,
        Ok(None) => Some(format!(
            "no files of trial {number} are stored: its prompt, the results of tools and the replies of judges are \
             missing"
        )),
        Err(error) => Some(format!(
            "the prompt, the results of tools and the replies of judges of trial {number} are missing: {}",
            chain(error)
        )),
    }
}

fn to_json(trial: &StoredTrial) -> Value {
    let mut fields = json!(trial.result);
    let exchange = trial.exchange.as_ref().ok().and_then(Option::as_ref);
    fields["messages"] = json!(exchange.map(|exchange| &exchange.messages));
    fields["tools"] = json!(exchange.map(|exchange| &exchange.tools));
    fields["judging"] = json!(exchange.map(|exchange| &exchange.judging));
    fields["missing"] = json!(missing(trial));
    fields
}
