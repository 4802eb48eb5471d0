//! `bakeoff check`: everything that can be known without a call.

use crate::arguments::CheckArguments;
use crate::commands::failed;
use crate::commands::select::size;
use crate::printer::{Printer, count};
use crate::{problems, settings};
use bakeoff_core::ExitCode;
use bakeoff_eval::{Error, RunConfig, SearchOverrides, SearchRun, estimate};
use bakeoff_suite::{LoadOptions, Suite};

pub(crate) fn run(arguments: &CheckArguments, printer: &Printer) -> ExitCode {
    let wanted = LoadOptions {
        targets: &arguments.agents,
        model: arguments.model.as_deref(),
        ..LoadOptions::default()
    };
    let suite = match Suite::load_with(&arguments.suite, wanted, &settings::variable) {
        Ok(suite) => suite,
        Err(found) => {
            problems::show(found.problems(), printer);
            return ExitCode::Usage;
        }
    };
    if let Some(refused) = settings::refuse_agents(&suite, &arguments.agents, &arguments.model) {
        printer.error(refused, Some(settings::AGENTS_HINT));
        return ExitCode::Usage;
    }
    for (code, message) in &suite.warnings {
        printer.talk(format!("warning: {message} [{code}]"));
    }
    let search = match search(arguments) {
        Ok(search) => search,
        Err(error) => return failed(&error, printer),
    };
    let plan = estimate(&suite);
    printer.data(format!("{}: nothing is wrong with {}", suite.name, suite.path.display()));
    printer.data(format!(
        "{} × {} × {} = {}",
        count(plan.cases, "case"),
        count(plan.targets.len() as u64, "target"),
        count(plan.trials.into(), "trial"),
        count(plan.total_trials(), "trial"),
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
            "  {} ({}): {}{}{cost}",
            target.name,
            target.what,
            count(target.trials, "trial"),
            tokens.unwrap_or_default()
        ));
    }
    for (judge, calls) in &plan.judges {
        printer
            .data(format!("  judge {judge}: {}, not part of the estimate", count(*calls, "call")));
    }
    let models = || plan.targets.iter().filter(|target| target.usage.is_some());
    let priced = models().filter(|target| target.cost.is_some()).count();
    let cost = match (priced, models().count()) {
        (0, 1..) => "unknown".to_owned(),
        (priced, models)
            if priced < models || plan.targets.iter().any(|target| target.is_lower_bound) =>
        {
            format!("at least {}", plan.total_cost())
        }
        _ => plan.total_cost().to_string(),
    };
    printer.data(format!("estimated cost: {cost}"));
    search.iter().for_each(|line| printer.data(line));
    ExitCode::Passed
}

/// What `bakeoff select` would do, if the suite has [select].
fn search(arguments: &CheckArguments) -> Result<Option<String>, Error> {
    let wanted = LoadOptions { combinations: true, ..LoadOptions::default() };
    // What else is wrong with it has been found already.
    let Ok(suite) = Suite::load_with(&arguments.suite, wanted, &settings::variable) else {
        return Ok(None);
    };
    let (all, target) = (estimate(&suite), suite.select.as_ref().map(|plan| plan.target.clone()));
    let search = SearchRun::new(suite, RunConfig::default(), &SearchOverrides::default())?;
    Ok(Some(format!(
        "select: {} of {}; all of them would cost about {}",
        size(search.space()),
        target.unwrap_or_default(),
        all.total_cost(),
    )))
}
