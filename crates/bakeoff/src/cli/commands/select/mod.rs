//! `bakeoff select`.

mod live;

use crate::arguments::{LogLevel, SelectArguments};
use crate::commands::failed;
use crate::commands::run::stop_on_signal;
use crate::printer::{Printer, count};
use crate::progress::Voice;
use crate::{limits, problems, settings};
use bakeoff_core::{Event, ExitCode};
use bakeoff_eval::{
    Error, LiveHttp, RunConfig, RunFile, Search, SearchOverrides, Searched, SelectionFile, Stopper,
    Suite, Wanted, find_run,
};
use bakeoff_report::{http_line, ranking_table, selection_notes, selection_svg};
use bakeoff_select::Space;
use live::Live;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Combinations shown at the end; selection.json has all.
const SHOWN: usize = 15;

pub(crate) fn run(mut arguments: SelectArguments) -> ExitCode {
    let printer = Printer::new(arguments.quiet);
    settings::raise_file_limit();
    let earlier = match earlier(&mut arguments) {
        Ok(earlier) => earlier,
        Err(error) => return failed(&error, &printer),
    };
    let path = arguments.suite.clone().unwrap_or_else(|| PathBuf::from("."));
    let wanted = Wanted { must_run: true, combinations: true, ..Wanted::default() };
    let suite = match Suite::load_wanted(&path, wanted, &settings::variable) {
        Ok(suite) => suite,
        Err(found) => {
            problems::show(&found, &printer);
            return ExitCode::Usage;
        }
    };
    let suite_file = suite.path.clone();
    let refused = arguments.apply.as_deref().and_then(|to| cannot_write(to, &suite_file));
    if let Some(refused) = refused {
        printer.error(refused, Some("`--apply` names a file that may be written"));
        return ExitCode::Usage;
    }
    let voice = Arc::default();
    let search = match search(suite, &arguments, earlier, &voice) {
        Ok(search) => search,
        Err(Refused::Limits(refused)) => {
            printer.error(refused.message, Some(refused.hint));
            return ExitCode::Usage;
        }
        Err(Refused::Other(error)) => return failed(&error, &printer),
    };
    let searched = match super::block_on(&printer, execute(search, &arguments, &voice, &printer)) {
        Ok(Ok(searched)) => searched,
        Ok(Err(error)) => return failed(&error, &printer),
        Err(code) => return code,
    };
    conclude(searched, &arguments, &suite_file, &printer)
}

/// The search to go on with; what is not said anew is as it was.
fn earlier(arguments: &mut SelectArguments) -> Result<Option<PathBuf>, Error> {
    let Some(wanted) = &arguments.resume else { return Ok(None) };
    let path = find_run(&arguments.out, wanted)?;
    let file = RunFile::read(&path)?;
    if file.select.is_none() {
        return Err(Error::Usage {
            code: None,
            message: format!("{} is no search", file.run_id),
            hint: Some(format!("`bakeoff run --resume {}` goes on with it", file.run_id)),
        });
    }
    arguments.suite.get_or_insert_with(|| PathBuf::from(&file.suite.path));
    arguments.seed.get_or_insert(file.seed);
    let only = &mut arguments.only;
    if only.cases.is_empty() && only.tags.is_empty() {
        only.cases.clone_from(&file.suite.chosen.cases);
        only.tags.clone_from(&file.suite.chosen.tags);
    }
    Ok(Some(path))
}

/// Why a file could not, or should not, be written when the search is over.
fn cannot_write(path: &Path, suite: &Path) -> Option<String> {
    let shown = path.display();
    // A link is written through.
    let (path, is_new) = match path.canonicalize() {
        Ok(path) => (path, false),
        Err(_) => (path.to_owned(), true),
    };
    if path.is_dir() {
        return Some(format!("{shown} is a folder"));
    }
    if suite.canonicalize().is_ok_and(|suite| suite == path) {
        return Some(format!("{shown} is the suite itself"));
    }
    if !is_new {
        let opened = std::fs::File::options().append(true).open(&path);
        return opened.err().map(|error| format!("cannot write {shown}: {error}"));
    }
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // The only way to know is to try.
    match std::fs::File::create_new(&path) {
        Ok(_) => {
            let _ = std::fs::remove_file(&path);
            None
        }
        Err(_) if !folder.is_dir() => Some(format!("there is no folder {}", folder.display())),
        Err(error) => Some(format!("cannot write {shown}: {error}")),
    }
}

enum Refused {
    Limits(limits::Refused),
    Other(Error),
}

fn search(
    suite: Suite,
    arguments: &SelectArguments,
    resume: Option<PathBuf>,
    voice: &Arc<OnceLock<Voice>>,
) -> Result<Search, Refused> {
    let limits = limits::overrides(&arguments.limits).map_err(Refused::Limits)?;
    let voice = Arc::clone(voice);
    let on_http = LiveHttp::new(move |entry| {
        if let Some(voice) = voice.get() {
            voice.say(&http_line(entry));
        }
    });
    let is_live = arguments.log_level == LogLevel::Http && !arguments.quiet;
    let config = RunConfig {
        simulated_models: crate::models::simulated(),
        out: arguments.out.clone(),
        // More cases make a search larger, and spoil nothing that it has paid for.
        extend: resume.is_some(),
        resume,
        parallel: arguments.parallel,
        cases: arguments.only.cases.clone(),
        tags: arguments.only.tags.clone(),
        seed: arguments.seed.unwrap_or_default(),
        cache: arguments.kept.cache(),
        limits,
        memory: arguments.kept.memory(),
        on_http: is_live.then_some(on_http),
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..RunConfig::default()
    };
    let overrides = SearchOverrides {
        method: arguments.method.clone(),
        confidence: arguments.confidence,
        max_cost: arguments.max_cost,
        max_cells: arguments.max_cells,
        deadline: arguments.deadline,
    };
    Search::new(suite, config, &overrides).map_err(Refused::Other)
}

async fn execute(
    search: Search,
    arguments: &SelectArguments,
    voice: &OnceLock<Voice>,
    printer: &Printer,
) -> Result<Searched, Error> {
    let space = search.space().clone();
    if !arguments.json {
        printer.talk(format!("{}; searching by {}", size(&space), search.method(),));
    }
    let hidden = arguments.json || printer.quiet;
    let live = Mutex::new(Live::new(hidden));
    let lock = || live.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody has set it before: a search is executed once.
    let _ = voice.set(lock().voice());
    let stopper = Stopper::default();
    let speaker = (!printer.quiet).then(|| lock().voice());
    let listening = tokio::spawn(stop_on_signal(stopper.clone(), speaker));
    let mut last_error = None;
    let mut listen = |event: &Event| {
        match event {
            Event::TrialFinished { result } => {
                last_error = result.attempt.error.as_ref().map(|why| why.message.clone());
            }
            Event::RunResumed { run_id, done, .. } if !arguments.json => {
                printer.talk(format!("going on with {run_id}: {} paid for", count(*done, "cell")));
            }
            Event::Warning { code, message } if !arguments.json => {
                printer.talk(format!("warning: {message} [{code}]"));
            }
            _ => {}
        }
        if let Some(line) = lock().note(event) {
            printer.talk(line);
        }
    };
    let mut on_round = |progress: bakeoff_select::SearchProgress<'_>| {
        if let Some(line) = lock().round(&space, progress) {
            printer.talk(line);
        }
    };
    let searched = search.execute(&stopper, &mut listen, &mut on_round).await;
    lock().finish();
    listening.abort();
    if let (Ok(Searched { found: Err(_), .. }), Some(error)) = (&searched, last_error) {
        printer.talk(format!("the last error: {error}"));
    }
    searched
}

/// How much there is to search.
pub(crate) fn size(space: &Space) -> String {
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

fn conclude(
    searched: Searched,
    arguments: &SelectArguments,
    suite: &Path,
    printer: &Printer,
) -> ExitCode {
    let code = match searched.exit_code {
        ExitCode::Inconclusive | ExitCode::Failed if arguments.no_fail => ExitCode::Passed,
        code => code,
    };
    let folder = &searched.folder.path;
    let file = match &searched.found {
        Ok(file) => file,
        Err(error) => {
            printer.error(error.to_string(), None);
            if arguments.json {
                printer.json(&serde_json::json!({ "error": error.to_string() }));
            }
            printer.talk(format!("results: {}", folder.display()));
            return printer.settle(code);
        }
    };
    let title = format!("{}: {} on score and cost", file.suite, file.target);
    let plot = folder.join("selection.svg");
    if let Err(source) = std::fs::write(&plot, selection_svg(&file.selection, &title)) {
        return failed(&Error::Write { path: plot, source }, printer);
    }
    if arguments.json {
        printer.json(file);
    } else {
        show(file, if arguments.all { usize::MAX } else { SHOWN }, printer);
        printer.talk(format!("results: {}, plot: {}", folder.display(), plot.display()));
    }
    if let Some(to) = &arguments.apply {
        if let Err(error) = file.apply(suite, to) {
            return failed(&error, printer);
        }
        printer.talk(format!("routes: {}", to.display()));
    }
    printer.settle(code)
}

/// The first of the ranking, and what came of it.
pub(crate) fn show(file: &SelectionFile, most: usize, printer: &Printer) {
    let selection = &file.selection;
    printer.data(ranking_table(&selection.ranking, Some(selection.winner), &selection.front, most));
    let left = selection.ranking.len().saturating_sub(most);
    if left > 0 {
        printer.data(format!("   … and {left} more; --all shows them"));
    }
    printer.data("");
    selection_notes(selection).iter().for_each(|note| printer.data(note));
}
