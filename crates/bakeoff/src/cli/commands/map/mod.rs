//! `bakeoff map`: many rows, few requests.

mod live;

use crate::arguments::MapArguments;
use crate::models::{self, Refused};
use crate::printer::{Printer, chain, count};
use crate::{limits, problems, settings};
use bakeoff_core::{ExitCode, Redactor};
use bakeoff_eval::{Place, Problem, SuiteModels};
use bakeoff_llm::{Cache, Client, ClientConfig, LimitHistory, Model};
use bakeoff_map::{
    Error, HeldRows, Job, JobConfig, JobOutcome, JobPlan, StopReason, Task, TaskProblem,
    batch_path, is_same_file, journal_path,
};
use live::Live;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// Whose answers are in the cache: those of all jobs.
const SCOPE: &str = "map";

pub(crate) fn run(arguments: MapArguments) -> ExitCode {
    let printer = Printer::new(arguments.quiet);
    settings::raise_file_limit();
    match prepare(&arguments, &printer) {
        Ok(ready) => match super::block_on(&printer, work(ready, &arguments, &printer)) {
            Ok(code) => printer.settle(code),
            Err(code) => code,
        },
        Err(code) => code,
    }
}

/// A job that can begin.
struct Ready {
    job: Job,
    client: Arc<Client>,
    /// Whether the task asks for facts about whole requests.
    has_facts: bool,
}

fn prepare(arguments: &MapArguments, printer: &Printer) -> Result<Ready, ExitCode> {
    let task = read_task(&arguments.task, printer)?;
    let written = [arguments.out.clone(), journal_path(&arguments.out), batch_path(&arguments.out)];
    if written.iter().any(|path| is_same_file(&arguments.task, path)) {
        let message =
            format!("{} is the task, and would be written over", arguments.task.display());
        return Err(Refused::new(message, "name another file for the output").show(printer));
    }
    let known = models::known(arguments.suite.as_deref(), printer)?;
    let models = resolve(arguments, &known).map_err(|refused| refused.show(printer))?;
    let limit_history = arguments
        .kept
        .memory()
        .map_or_else(LimitHistory::default, |path| LimitHistory::read(&path, SystemTime::now()));
    let learned = models.first().and_then(|(_, model)| limit_history.recall_model(model));
    let mut redactor = Redactor::default();
    models.iter().for_each(|(_, model)| model.add_secrets(&mut redactor));
    let simulator = bakeoff_sim::Config {
        seed: arguments.seed,
        models: known.simulated,
        ..bakeoff_sim::Config::default()
    };
    let mut config = ClientConfig::default()
        .simulator(simulator)
        .simulated_models(models::simulated())
        .redactor(redactor);
    config.cache = cache(arguments, printer);
    let client = Arc::new(Client::new(config.limit_history(limit_history)));
    let has_facts = !task.batch.is_empty();
    let config = JobConfig {
        input: arguments.rows.clone(),
        output: arguments.out.clone(),
        task,
        models,
        pack: arguments.pack,
        format: arguments.format,
        seed: arguments.seed,
        learned,
        max_cost: arguments.max_cost,
        force: arguments.force,
        retry_errors: arguments.retry_errors,
        max_held: HeldRows::default(),
    };
    let job = Job::new(config, Arc::clone(&client)).map_err(|error| show(&error, printer))?;
    if (arguments.resume || arguments.retry_errors) && !job.plan().is_resumed {
        job.discard().map_err(|error| show(&error, printer))?;
        let message = format!("{} has not been begun", arguments.out.display());
        let hint = "without `--resume` and `--retry-errors` it is";
        return Err(Refused::new(message, hint).show(printer));
    }
    Ok(Ready { job, client, has_facts })
}

fn read_task(path: &Path, printer: &Printer) -> Result<Task, ExitCode> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the task {}: {error}", path.display());
        printer.error(message, Some("`--task` names a TOML file"));
        ExitCode::Usage
    })?;
    Task::parse(&text).map_err(|found| {
        let problem = |problem: TaskProblem| Problem {
            code: None,
            message: problem.message,
            path: path.to_owned(),
            place: Some(Box::new(Place::of(&text, problem.span))),
            hint: problem.hint,
        };
        problems::show(&found.problems.into_iter().map(problem).collect::<Vec<_>>(), printer);
        ExitCode::Usage
    })
}

/// Everybody who is asked, in order, with limits that the command line has the last word on.
fn resolve(arguments: &MapArguments, known: &SuiteModels) -> Result<Vec<(String, Model)>, Refused> {
    let overrides = limits::overrides(&arguments.limits)
        .map_err(|refused| Refused::new(refused.message, refused.hint))?;
    let names = std::iter::once(&arguments.model).chain(&arguments.fallbacks);
    let model = |name: &String| {
        let model = models::resolve(name, known, None)?;
        let limits = overrides.apply(model.limits());
        limits.check().map_err(|error| {
            let hint = "what the command line says is put in place of the suite's";
            Refused::new(format!("limits of `{name}`: {error}"), hint)
        })?;
        if arguments.max_cost.is_some() && !model.is_priced() {
            return Err(Refused::new(
                format!("nobody knows the price of `{name}`, so --max-cost cannot be kept"),
                "give `prices` under [models] of a suite, and `--suite FILE`",
            ));
        }
        Ok((name.clone(), model.with_limits(limits)))
    };
    names.map(model).collect()
}

fn cache(arguments: &MapArguments, printer: &Printer) -> Option<Cache> {
    Cache::open(&arguments.kept.cache()?, SCOPE)
        .map_err(|error| {
            printer.talk(format!("warning: answers are not cached: {}", chain(&error)));
        })
        .ok()
}

async fn work(ready: Ready, arguments: &MapArguments, printer: &Printer) -> ExitCode {
    let Ready { job, client, has_facts } = ready;
    let plan = job.plan().clone();
    if arguments.json {
        printer.json(&live::planned(&plan));
    } else {
        announce(&plan, &arguments.model, printer);
    }
    if arguments.dry_run {
        return match job.discard() {
            Ok(()) => ExitCode::Passed,
            Err(error) => show(&error, printer),
        };
    }
    let stop = CancellationToken::new();
    let mut live = Live::new(&plan, arguments.json, printer);
    let listening = tokio::spawn(stop_on_signal(stop.clone(), live.voice()));
    let finished = job.run(stop, &mut |progress| live.note(progress)).await;
    live.finish();
    listening.abort();
    if let Some(path) = arguments.kept.memory() {
        // Without it, the next job is as good as this one.
        let _ = LimitHistory::save(&path, &client.learned(), SystemTime::now());
    }
    match finished {
        Ok(finished) => conclude(&finished, has_facts, arguments, printer),
        Err(error) => show(&error, printer),
    }
}

/// The line that says what it comes to: items → requests.
fn announce(plan: &JobPlan, model: &str, printer: &Printer) {
    let why = match (&plan.choice, plan.rows) {
        (Some(choice), 1..) => format!("; {}", choice.binding),
        _ => String::new(),
    };
    let cost = match plan.expected_cost.filter(|cost| !cost.is_zero()) {
        Some(cost) => format!(", up to about {cost}"),
        None => String::new(),
    };
    printer.talk(format!(
        "{} → {} to {model}{cost} (up to {} each{why})",
        count(plan.rows, "item"),
        count(plan.requests, "request"),
        count(plan.pack.into(), "item"),
    ));
    if plan.is_finished {
        printer.talk("everything has been done before; `--force` begins anew");
    } else if plan.is_resumed {
        printer.talk(format!("going on: {} answered before", count(plan.answered, "row")));
    }
}

/// The first Ctrl-C (or a wish to end) lets requests finish, the second does not.
async fn stop_on_signal(stop: CancellationToken, voice: crate::progress::Voice) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
    for is_first in [true, false] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        if is_first {
            voice.say("stopping: waiting for requests that are under way; Ctrl-C again ends them");
            stop.cancel();
        } else {
            // What has been answered is in the journal.
            std::process::exit(i32::from(ExitCode::Interrupted.code()));
        }
    }
}

/// Tells how it ended; the exit code.
fn conclude(
    finished: &JobOutcome,
    has_facts: bool,
    arguments: &MapArguments,
    printer: &Printer,
) -> ExitCode {
    let progress = finished.progress;
    let code = match &finished.stop {
        Some(StopReason::Interrupted) => ExitCode::Interrupted,
        Some(StopReason::Budget | StopReason::ModelUnavailable(_)) => ExitCode::Inconclusive,
        None if progress.errors > 0 => ExitCode::Inconclusive,
        None => ExitCode::Passed,
    };
    if arguments.json {
        printer.json(&live::done(finished, &arguments.out, code));
        return code;
    }
    let cost = progress.cost.map_or("price unknown".to_owned(), |cost| cost.to_string());
    let cached = match progress.cached {
        0 => String::new(),
        cached => format!(", {cached} from the cache"),
    };
    printer.data(format!(
        "{}: {} of {}, {} · {}{cached} · {} tokens · {cost}",
        arguments.out.display(),
        progress.done,
        count(progress.rows, "row"),
        count(progress.errors, "error"),
        count(progress.requests, "request"),
        progress.usage.total(),
    ));
    if has_facts {
        let facts = batch_path(&arguments.out);
        printer.talk(format!("facts about whole requests: {}", facts.display()));
    }
    for (model, reason) in &finished.unavailable_models {
        printer.talk(format!("warning: {model} answers nobody any more: {reason}"));
    }
    let goes_on = "the same command goes on";
    let hint = format!("see to that, and {goes_on}");
    match &finished.stop {
        Some(StopReason::Interrupted) => printer.talk(format!("interrupted; {goes_on}")),
        Some(StopReason::Budget) => {
            let is_exceeded = progress.cost > arguments.max_cost;
            let why = match is_exceeded {
                true => "replies have cost more than was expected, and more than --max-cost",
                false => "another request might cost more than is left",
            };
            printer.talk(format!("{why}; with a higher --max-cost {goes_on}"));
        }
        Some(StopReason::ModelUnavailable(reason)) => printer.error(reason, Some(&hint)),
        None if progress.errors > 0 => {
            printer.talk(
                "  hint: rows without an answer say why in `error`; `--retry-errors` asks once more",
            );
        }
        None => {}
    }
    code
}

fn show(error: &Error, printer: &Printer) -> ExitCode {
    printer.error(chain(error), error.hint());
    if error.is_usage() { ExitCode::Usage } else { ExitCode::Internal }
}

/// A value for `stop` in JSON.
fn words(stop: &Option<StopReason>) -> serde_json::Value {
    match stop {
        None => json!(null),
        Some(StopReason::Interrupted) => json!("interrupted"),
        Some(StopReason::Budget) => json!("budget"),
        Some(StopReason::ModelUnavailable(reason)) => json!({ "refused": reason }),
    }
}
