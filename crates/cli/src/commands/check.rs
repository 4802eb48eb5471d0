//! `bakeoff check`: everything that can be known without a call.

use crate::arguments::CheckArguments;
use crate::printer::Printer;
use crate::{problems, settings};
use bakeoff_core::ExitCode;
use bakeoff_eval::{Suite, estimate};

pub(crate) fn run(arguments: &CheckArguments, printer: &Printer) -> ExitCode {
    let suite = match Suite::load(&arguments.suite, &settings::variable) {
        Ok(suite) => suite,
        Err(found) => {
            problems::show(&found, printer);
            return ExitCode::Usage;
        }
    };
    let plan = estimate(&suite);
    printer.data(format!("{}: nothing is wrong with {}", suite.name, suite.path.display()));
    printer.data(format!(
        "{} cases × {} targets × {} trials = {} trials",
        plan.cases,
        plan.targets.len(),
        plan.trials,
        plan.total_trials()
    ));
    for target in &plan.targets {
        let tokens = target
            .usage
            .map(|usage| format!(", about {} tokens in and {} out", usage.input, usage.output));
        let cost = match (target.usage, target.cost) {
            (Some(_), Some(cost)) => format!(", about {cost}"),
            (Some(_), None) => ", price unknown".to_owned(),
            (None, _) => String::new(),
        };
        printer.data(format!(
            "  {} ({}): {} trials{}{cost}",
            target.name,
            target.what,
            target.trials,
            tokens.unwrap_or_default()
        ));
    }
    printer.data(format!("estimated cost: {}", plan.total_cost()));
    ExitCode::Passed
}
