//! `bakeoff map`: processes many rows with few requests.

mod display;

use crate::arguments::MapArguments;
use crate::client::{ClientOptions, ModelClient, read_history};
use crate::error::{CliError, UsageError};
use crate::models::{ModelResolver, require_price};
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use crate::resume_command::hint_at_same_command;
use crate::shutdown::{Shutdown, block_on};
use crate::{limits, settings};
use bakeoff_core::ExitCode;
use bakeoff_llm::Model;
use bakeoff_map::{
    Job, JobConfig, JobOutcome, JobPlan, StopReason, Task, TaskProblem, batch_path, is_same_file,
    journal_path,
};
use bakeoff_suite::{Problem, SourcePosition};
use display::JobDisplay;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// Scope of cached responses: all jobs share them.
const CACHE_SCOPE: &str = "map";

pub(super) fn run(arguments: &MapArguments, printer: &Printer) -> Result<Outcome, CliError> {
    settings::raise_file_limit();
    let prepared = prepare(arguments, printer)?;
    block_on(printer, async |shutdown| prepared.run(arguments, &shutdown, printer).await)
}

/// A job that can start.
struct PreparedJob {
    job: Job,
    client: ModelClient,
    /// Set if the task has batch-level fields.
    has_facts: bool,
}

fn prepare(arguments: &MapArguments, printer: &Printer) -> Result<PreparedJob, CliError> {
    let task = read_task(&arguments.task)?;
    let written = [arguments.out.clone(), journal_path(&arguments.out), batch_path(&arguments.out)];
    if written.iter().any(|path| is_same_file(&arguments.task, path)) {
        let message = format!("the output would overwrite the task {}", arguments.task.display());
        return Err(UsageError::new(message).hint("use another output file").into());
    }
    let resolver = ModelResolver {
        limits: limits::overrides(&arguments.limits)?,
        keyless: arguments.dry_run.then(RefCell::default),
        ..ModelResolver::new(arguments.suite.as_deref())?
    };
    let models = resolve_models(arguments, &resolver)?;
    if let Some(environment) = &resolver.keyless {
        environment.borrow().warn(printer);
    }
    let history = arguments.reuse.history_file();
    let learned =
        models.first().and_then(|(_, model)| read_history(history.as_ref()).recall_model(model));
    let options = ClientOptions {
        seed: arguments.seed,
        cache: arguments.reuse.cache_file().map(|path| (path, CACHE_SCOPE)),
        history,
        // The job has its own budget, which its journal restores.
        max_cost: None,
        ..ClientOptions::default()
    };
    let names = models.iter().map(|(_, model)| model);
    let client = ModelClient::new(names, resolver.defined, options, printer);
    let has_facts = !task.batch.is_empty();
    let mut config = JobConfig::new(&arguments.rows, &arguments.out, task, models);
    config.pack = arguments.pack;
    config.format = arguments.format;
    config.seed = arguments.seed;
    config.learned = learned;
    config.max_cost = arguments.max_cost;
    config.force = arguments.force;
    config.retry_errors = arguments.retry_errors;
    let job = Job::new(config, Arc::clone(&client.client))?;
    if (arguments.resume || arguments.retry_errors) && !job.plan().is_resumed {
        job.discard()?;
        let message = format!("no job to resume for {}", arguments.out.display());
        let hint = "omit `--resume` and `--retry-errors` to start it";
        return Err(UsageError::new(message).hint(hint).into());
    }
    Ok(PreparedJob { job, client, has_facts })
}

fn read_task(path: &Path) -> Result<Task, CliError> {
    let bytes = std::fs::read(path).map_err(|error| {
        UsageError::new(format!("cannot read the task {}: {error}", path.display()))
            .hint("`--task` needs the path of a TOML file")
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        CliError::Problems(vec![Problem {
            code: None,
            message: "not UTF-8".to_owned(),
            path: path.to_owned(),
            position: Some(Box::new(SourcePosition::of_invalid_utf8(error.as_bytes()))),
            hint: Some("save the file as UTF-8".to_owned()),
        }])
    })?;
    Task::parse(&text).map_err(|found| {
        let problem = |problem: TaskProblem| Problem {
            code: None,
            message: problem.message,
            path: path.to_owned(),
            position: Some(Box::new(SourcePosition::of(&text, problem.span))),
            hint: problem.hint,
        };
        CliError::Problems(found.problems.into_iter().map(problem).collect())
    })
}

/// Resolves the model and its fallbacks, in order.
fn resolve_models(
    arguments: &MapArguments,
    resolver: &ModelResolver,
) -> Result<Vec<(String, Model)>, UsageError> {
    let names = std::iter::once(&arguments.model).chain(&arguments.fallbacks);
    let resolve = |name: &String| {
        let model = resolver.resolve(name)?;
        if arguments.max_cost.is_some() {
            require_price(name, &model)?;
        }
        Ok((name.clone(), model))
    };
    names.map(resolve).collect()
}

impl PreparedJob {
    async fn run(
        self,
        arguments: &MapArguments,
        shutdown: &Shutdown,
        printer: &Printer,
    ) -> Result<Outcome, CliError> {
        let PreparedJob { job, client, has_facts } = self;
        let plan = job.plan().clone();
        printer.event("planned", display::plan_to_json(&plan));
        print_plan(&plan, &arguments.model, printer);
        if arguments.dry_run {
            job.discard()?;
            return Ok(Outcome::passed().with_fields(display::plan_to_json(&plan)));
        }
        let mut display = JobDisplay::new(&plan, printer);
        shutdown.print_with(display.printer());
        let finished =
            job.run(shutdown.stop_token(), &mut |progress| display.update(progress)).await;
        display.finish();
        client.save_history();
        let finished = finished?;
        let code = exit_code(&finished);
        print_result(&finished, &plan, has_facts, arguments, printer);
        Ok(Outcome::new(code).with_fields(display::result_to_json(&finished, &arguments.out)))
    }
}

/// Prints the plan: items → requests.
fn print_plan(plan: &JobPlan, model: &str, printer: &Printer) {
    let reason = match (&plan.choice, plan.rows) {
        (Some(choice), 1..) => format!("; {}", choice.binding),
        _ => String::new(),
    };
    let cost = match plan.expected_cost.filter(|cost| !cost.is_zero()) {
        Some(cost) => format!(", up to about {cost}"),
        None => String::new(),
    };
    printer.message(format!(
        "{} → {} to {model}{cost} (up to {} each{reason})",
        count(plan.rows, "item"),
        count(plan.requests, "request"),
        count(plan.pack.into(), "item"),
    ));
    if plan.is_finished {
        printer.message("all rows are finished; use `--force` to start over");
    } else if plan.is_resumed {
        printer.message(format!("resuming: {} answered", count(plan.answered, "row")));
    }
}

fn exit_code(finished: &JobOutcome) -> ExitCode {
    match &finished.stop {
        Some(StopReason::Interrupted) => ExitCode::Interrupted,
        Some(StopReason::Budget | StopReason::ModelUnavailable(_)) => ExitCode::Inconclusive,
        None if finished.progress.errors > 0 => ExitCode::Inconclusive,
        None => ExitCode::Passed,
    }
}

fn print_result(
    finished: &JobOutcome,
    plan: &JobPlan,
    has_facts: bool,
    arguments: &MapArguments,
    printer: &Printer,
) {
    let progress = finished.progress;
    let cost = progress.cost.map_or("price unknown".to_owned(), |cost| cost.to_string());
    let cached = match progress.cached {
        0 => String::new(),
        cached => format!(", {cached} cached"),
    };
    // The figures include the requests of earlier processes.
    let scope = if plan.is_resumed { "whole job: " } else { "" };
    printer.data(format!(
        "{}: {} of {}, {} · {scope}{}{cached} · {} tokens · {cost}",
        arguments.out.display(),
        progress.done,
        count(progress.rows, "row"),
        count(progress.errors, "error"),
        count(progress.requests, "request"),
        progress.usage.total(),
    ));
    if has_facts {
        printer.message(format!("batch results: {}", batch_path(&arguments.out).display()));
    }
    for (model, reason) in &finished.unavailable_models {
        printer.warning(format!("{model} no longer accepts requests: {reason}"));
    }
    match &finished.stop {
        Some(StopReason::Interrupted) => {
            printer.message("interrupted");
            hint_at_same_command(printer);
        }
        Some(StopReason::Budget) => {
            let reason = match progress.cost > arguments.max_cost {
                true => "replies cost more than expected and exceeded --max-cost",
                false => "stopped: another request could exceed --max-cost",
            };
            printer.message(reason);
            printer.hint("run the same command with a higher --max-cost to resume");
        }
        Some(StopReason::ModelUnavailable(reason)) => {
            printer.error(reason, Some("fix the cause and run the same command to resume"));
        }
        None if progress.errors > 0 => {
            printer
                .hint("`error` in the output has the reason; `--retry-errors` retries these rows");
        }
        None => {}
    }
}
