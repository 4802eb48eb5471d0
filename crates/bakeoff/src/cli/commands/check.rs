//! `bakeoff check`: validates a suite and prints its plan, without making a call.

use super::select::describe_space;
use crate::arguments::CheckArguments;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use crate::settings;
use bakeoff_eval::{Error, RunConfig, SearchOverrides, SearchRun, estimate};
use bakeoff_suite::{LoadOptions, Suite};

pub(super) fn run(arguments: &CheckArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let wanted = LoadOptions::new().targets(&arguments.agents).model(arguments.model.as_deref());
    let suite = Suite::load_with(&arguments.suite, wanted, &settings::variable)?;
    settings::check_agents(&suite, &arguments.agents, &arguments.model)?;
    let combinations = load_combinations(arguments);
    let mut warnings = suite.warnings.clone();
    // Candidates of roles may have other wire formats than the assigned models.
    for warning in combinations.iter().flat_map(|suite| &suite.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    for (code, message) in &warnings {
        printer.warning_with_code(code, message);
    }
    let search = combinations.map(describe_search).transpose()?;
    let plan = estimate(&suite);
    printer.data(format!("{}: {} is valid", suite.name, suite.path.display()));
    printer.data(format!(
        "{} × {} × {} = {}",
        count(plan.cases, "case"),
        count(plan.targets.len() as u64, "target"),
        count(plan.trials.into(), "trial"),
        count(plan.total_trials(), "trial"),
    ));
    if plan.targets.is_empty() {
        // Only a FastSkill project may lack targets: its agents need not be known yet.
        printer.data(
            "note: no targets, so there is nothing to run; select agents with `--agent NAME`",
        );
    }
    for target in &plan.targets {
        let tokens = target.usage.map(|usage| {
            format!(", about {} input and {} output tokens", usage.input, usage.output)
        });
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
        printer.data(format!("  judge {judge}: {}, not in the estimate", count(*calls, "call")));
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
    Ok(Outcome::passed())
}

/// Loads the combinations of the section [select], if the suite has one.
fn load_combinations(arguments: &CheckArguments) -> Option<Suite> {
    let wanted = LoadOptions::new().combinations(true);
    // Other problems of the suite have been reported already.
    Suite::load_with(&arguments.suite, wanted, &settings::variable).ok()
}

/// Describes what `bakeoff select` would do.
fn describe_search(suite: Suite) -> Result<String, Error> {
    let (all, target) = (estimate(&suite), suite.select.as_ref().map(|plan| plan.target.clone()));
    let search = SearchRun::new(suite, RunConfig::default(), &SearchOverrides::default())?;
    Ok(format!(
        "select: {} of {}; exhaustive search would cost about {}",
        describe_space(search.space()),
        target.unwrap_or_default(),
        all.total_cost(),
    ))
}
