//! `bakeoff check`: validates a suite and prints its plan, without making a call.

use super::run::describe_size;
use super::select::describe_space;
use crate::arguments::CheckArguments;
use crate::error::CliError;
use crate::keyless::KeylessEnvironment;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use crate::settings;
use bakeoff_eval::{
    Error, Estimate, RunConfig, SearchOverrides, SearchRun, estimate, estimate_cases,
};
use bakeoff_suite::{LoadOptions, Suite};
use serde_json::{Value, json};

pub(super) fn run(arguments: &CheckArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let wanted = LoadOptions::new()
        .targets(&arguments.agents)
        .all_agents(arguments.all)
        .model(arguments.model.as_deref());
    let mut environment = KeylessEnvironment::default();
    let suite = environment.load(&arguments.suite, wanted)?;
    settings::check_agents(&suite, &arguments.agents, arguments.all, &arguments.model)?;
    let combinations = load_combinations(arguments, &mut environment);
    environment.warn(printer);
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
    let mut config = RunConfig::default();
    config.seed = arguments.seed.unwrap_or_default();
    arguments.only.clone().configure(&mut config);
    let plan = estimate_cases(&suite, &config)?;
    printer.data(format!("{}: {} is valid", suite.name, suite.path.display()));
    let targets = plan.targets.len() as u64;
    printer.data(describe_size(plan.cases, targets, plan.trials, plan.total_trials()));
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
    Ok(Outcome::passed().with_fields(describe(&suite, &plan)))
}

/// Returns the settings of a valid suite; those of a FastSkill project with FastSkill's names.
fn describe(suite: &Suite, plan: &Estimate) -> Value {
    let mut fields = json!({
        "valid": true,
        "suite": suite.name,
        "path": suite.path,
        "targets": plan.targets.iter().map(|target| &target.name).collect::<Vec<_>>(),
        "timeout_seconds": suite.settings.timeout.as_secs_f64(),
        "trials_per_case": suite.settings.trials,
        "parallel": suite.settings.parallel,
        "pass_threshold": suite.settings.threshold.as_f64(),
        "case_count": plan.cases,
        "check_count": suite.checks.len(),
        "total_trials": plan.total_trials(),
        "estimated_cost_nanodollars": plan.total_cost(),
    });
    if let Some(project) = &suite.project {
        fields["prompts_path"] = json!(project.prompts);
        fields["checks_path"] = json!(project.checks);
        fields["project_root"] = json!(project.root);
        fields["check_count"] = json!(project.check_count);
        fields["fail_on_missing_agent"] = json!(project.fail_on_missing_agent);
        fields["timeout_seconds"] = json!(suite.settings.timeout.as_secs());
    }
    fields
}

/// Loads the combinations of the section [select], if the suite has one.
fn load_combinations(
    arguments: &CheckArguments,
    environment: &mut KeylessEnvironment,
) -> Option<Suite> {
    let wanted = LoadOptions::new().combinations(true);
    // Other problems of the suite have been reported already.
    environment.load(&arguments.suite, wanted).ok()
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
