//! `bakeoff select`: searches the best combination of models for the roles of an agent.

mod display;

use super::run::RequestLog;
use crate::arguments::SelectArguments;
use crate::error::{CliError, UsageError};
use crate::exposed::warn_if_open_to_others;
use crate::outcome::Outcome;
use crate::output_file::check_writable;
use crate::printer::{Printer, count};
use crate::resume_command::hint_at_resume;
use crate::shutdown::{Shutdown, block_on};
use crate::{limits, settings};
use bakeoff_core::{Event, ExitCode, one_line};
use bakeoff_eval::{
    Error, FinishedSearch, RunConfig, RunFile, SearchOverrides, SearchRun, SelectionFile,
};
use bakeoff_history::{find_run, resume_state};
use bakeoff_report::{ranking_table, selection_notes, selection_svg};
use bakeoff_select::{SearchProgress, Space};
use bakeoff_suite::{LoadOptions, Suite};
use display::SearchDisplay;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Combinations printed at the end; selection.json has all.
const MAX_ROWS: usize = 15;

pub(super) fn run(mut arguments: SelectArguments, printer: &Printer) -> Result<Outcome, CliError> {
    settings::raise_file_limit();
    arguments.suite = arguments.suite_option.take().or(arguments.suite);
    let resume = resumed_search(&mut arguments)?;
    if let Some(path) = &resume {
        warn_if_open_to_others(path, printer);
    }
    let path = arguments.suite.clone().unwrap_or_else(|| PathBuf::from("."));
    let options = LoadOptions::new().must_run(true).combinations(true);
    let suite = Suite::load_with(&path, options, &settings::variable)?;
    let suite_file = suite.path.clone();
    if let Some(file) = &arguments.apply {
        check_writable(file, &[&suite_file]).map_err(|message| {
            UsageError::new(message).hint("`--apply` needs the path of a writable file")
        })?;
    }
    let request_log = RequestLog::default();
    let search = new_search(suite, &arguments, resume, &request_log)?;
    let searched = block_on(printer, async |shutdown| {
        execute(search, &request_log, &shutdown, printer).await
    })?;
    conclude(searched, &arguments, &suite_file, printer)
}

/// Finds the search to resume, and takes settings that the command line leaves out from it.
fn resumed_search(arguments: &mut SelectArguments) -> Result<Option<PathBuf>, CliError> {
    let Some(name) = &arguments.resume else { return Ok(None) };
    let path = find_run(&arguments.execution.out, name)?;
    let file = RunFile::read(&path)?;
    if file.select.is_none() {
        let hint = format!("use `bakeoff run --resume {}`", file.run_id);
        return Err(UsageError::new(format!("{} is not a search", file.run_id)).hint(hint).into());
    }
    if arguments.suite.is_none() {
        arguments.suite = Some(settings::stored_suite(&file)?);
    }
    arguments.seed.get_or_insert(file.seed);
    let mut overrides = overrides(arguments);
    if let Some(stored) = &file.select {
        overrides.fill(&stored.overrides);
    }
    let SearchOverrides {
        method, confidence, max_cost, max_cells, deadline, parallel, apply, ..
    } = overrides;
    (arguments.method, arguments.confidence, arguments.apply) = (method, confidence, apply);
    (arguments.max_cells, arguments.execution.max_cost) = (max_cells, max_cost);
    (arguments.execution.deadline, arguments.execution.parallel) = (deadline, parallel);
    arguments.execution.only.fill(&file.suite.chosen);
    Ok(Some(path))
}

/// Returns the settings that replace those of `[select]`.
fn overrides(arguments: &SelectArguments) -> SearchOverrides {
    let SelectArguments { execution, apply, .. } = arguments;
    let mut overrides = SearchOverrides::default();
    overrides.method.clone_from(&arguments.method);
    overrides.confidence = arguments.confidence;
    overrides.max_cost = execution.max_cost;
    overrides.max_cells = arguments.max_cells;
    overrides.deadline = execution.deadline;
    overrides.parallel = execution.parallel;
    // A search can be resumed from another folder.
    overrides.apply = apply.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone()));
    overrides
}

fn new_search(
    suite: Suite,
    arguments: &SelectArguments,
    resume: Option<PathBuf>,
    request_log: &RequestLog,
) -> Result<SearchRun, CliError> {
    let execution = &arguments.execution;
    let mut config = RunConfig::new(&execution.out);
    config.simulated_models = crate::models::simulated();
    execution.only.clone().configure(&mut config);
    config.seed = arguments.seed.unwrap_or_default();
    config.cache = execution.reuse.cache_file();
    config.limits = limits::overrides(&execution.limits)?;
    config.memory = execution.reuse.history_file();
    config.work_dir = settings::work_dir();
    config.on_http = execution.prints_requests().then(|| request_log.listener());
    config.arguments = settings::command_line();
    let overrides = overrides(arguments);
    let search = SearchRun::new(suite, config, &overrides)?;
    let Some(path) = resume else { return Ok(search) };
    // More cases extend a search without invalidating finished trials.
    let state = resume_state(search.run(), &path, true)?;
    Ok(search.resume_from(state))
}

async fn execute(
    search: SearchRun,
    request_log: &RequestLog,
    shutdown: &Shutdown,
    printer: &Printer,
) -> Result<FinishedSearch, Error> {
    let space = search.space().clone();
    printer.message(format!("{}; method: {}", describe_space(&space), search.method()));
    let display = Mutex::new(SearchDisplay::new(!printer.shows_progress()));
    let lock = || display.lock().unwrap_or_else(PoisonError::into_inner);
    request_log.print_with(lock().printer());
    shutdown.print_with(lock().printer());
    let mut last_error = None;
    let mut listen = |event: &Event| {
        printer.run_event(event);
        match event {
            Event::TrialFinished { result } => {
                last_error = result.attempt.error.as_ref().map(|error| error.message.clone());
            }
            Event::RunResumed { run_id, done, .. } => {
                printer.message(format!("resuming {run_id}: {} done", count(*done, "cell")));
            }
            _ => {}
        }
        if let Some(line) = lock().update(event) {
            printer.message(line);
        }
    };
    let mut on_round = |progress: SearchProgress<'_>| {
        if let Some(line) = lock().update_round(&space, progress) {
            printer.message(line);
        }
    };
    let searched = search.execute(&shutdown.stopper(), &mut listen, &mut on_round).await;
    lock().finish();
    if let (Ok(FinishedSearch { found: Err(_), .. }), Some(error)) = (&searched, last_error) {
        printer.message(format!("last error: {}", one_line(&error)));
    }
    searched
}

/// Describes the size of a search space.
pub(super) fn describe_space(space: &Space) -> String {
    let trials = space.datapoints() / space.cases().max(1);
    let trials = match trials {
        1 => String::new(),
        trials => format!(" × {}", count(trials as u64, "trial")),
    };
    format!(
        "{} × {}{trials} = {}",
        count(space.combos() as u64, "combination"),
        count(space.cases() as u64, "case"),
        count(space.cells() as u64, "cell"),
    )
}

/// Prints the result of a search and writes its files.
fn conclude(
    searched: FinishedSearch,
    arguments: &SelectArguments,
    suite: &Path,
    printer: &Printer,
) -> Result<Outcome, CliError> {
    let code = match searched.exit_code {
        ExitCode::Inconclusive | ExitCode::Failed if arguments.no_fail => ExitCode::Passed,
        code => code,
    };
    let folder = &searched.folder.path;
    let hint = || {
        if searched.exit_code == ExitCode::Interrupted {
            hint_at_resume(&arguments.execution.out, folder, printer);
        }
    };
    let outcome = Outcome::new(code).with("run_dir", folder.display().to_string());
    let file = match &searched.found {
        Ok(file) => file,
        Err(error) => {
            printer.error(error.to_string(), None);
            printer.message(format!("results: {}", folder.display()));
            hint();
            let outcome = outcome.with("best", ()).with("selection", ());
            return Ok(outcome.with("error", error.to_string()));
        }
    };
    let title = format!("{}: {} on score and cost", file.suite, file.target);
    let plot = folder.join("selection.svg");
    if let Err(source) = std::fs::write(&plot, selection_svg(&file.selection, &title)) {
        return Err(Error::Write { path: plot, source }.into());
    }
    print_selection(file, if arguments.all { usize::MAX } else { MAX_ROWS }, printer);
    printer.message(format!("results: {}, plot: {}", folder.display(), plot.display()));
    if let Some(path) = &arguments.apply {
        file.apply(suite, path)?;
        printer.message(format!("roles: {}", path.display()));
    }
    hint();
    Ok(outcome.with("best", &file.best).with("selection", file))
}

/// Prints the best combinations and the notes of a selection.
pub(super) fn print_selection(file: &SelectionFile, max_rows: usize, printer: &Printer) {
    let selection = &file.selection;
    printer.data(ranking_table(&selection.ranking, Some(selection), max_rows));
    let hidden = selection.ranking.len().saturating_sub(max_rows);
    if hidden > 0 {
        printer.data(format!("   … and {hidden} more; --all prints them"));
    }
    printer.data("");
    selection_notes(selection).iter().for_each(|note| printer.data(note));
}
