//! `bakeoff score`: re-runs the checks of a suite on the stored outputs of a run.

use super::report::{print_summary, warn_of_damage};
use super::run::{MAX_FAILURES, finished_outcome, print_verdict};
use crate::arguments::ScoreArguments;
use crate::error::CliError;
use crate::export::export;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::settings;
use crate::shutdown::block_on;
use bakeoff_core::{Event, ExitCode};
use bakeoff_eval::{Run, RunConfig};
use bakeoff_history::{PastRun, find_run, score};
use bakeoff_report::Failures;
use bakeoff_suite::{LoadOptions, Suite};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn run(arguments: &ScoreArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let past = PastRun::open(&find_run(&arguments.run.out, &arguments.run.run)?)?;
    warn_of_damage(&past, &arguments.run.out, printer)?;
    let path = match &arguments.suite {
        Some(path) => path.clone(),
        None => settings::stored_suite(&past.file)?,
    };
    let targets: Vec<String> = past
        .file
        .suite
        .targets
        .iter()
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect();
    // The targets of a search are the combinations of one target.
    let combinations = past.file.select.is_some();
    // Roles do not matter for checks, so a missing file is no problem unless the suite needs it.
    let roles = past.file.suite.roles_file.as_ref().map(PathBuf::from).filter(|file| file.exists());
    let options = LoadOptions::new()
        .targets(&targets)
        .judges_only(true)
        .combinations(combinations)
        .roles(roles.as_deref());
    let suite = Suite::load_with(&path, options, &settings::variable)?;
    arguments.export.check(Some(&suite))?;
    let mut config = RunConfig::new(&arguments.run.out);
    config.simulated_models = crate::models::simulated();
    config.threshold = arguments.threshold.or(Some(past.file.threshold()));
    config.keeps_own_threshold = arguments.threshold.is_none();
    config.ci = past.file.suite.is_ci_rule;
    let stored = if config.ci { None } else { past.file.suite_threshold() };
    config.suite_threshold = arguments.suite_threshold.or(stored);
    config.trials = Some(past.file.suite.trials);
    config.keeps_own_trials = true;
    config.targets = if combinations { Vec::new() } else { targets };
    config.seed = past.file.seed;
    config.cache = settings::cache_file();
    config.memory = settings::history_file();
    config.arguments = settings::command_line();
    let run = Run::new(suite, config)?;
    let mut failures = Failures::new(MAX_FAILURES, Arc::clone(&run.criteria().cases));
    let mut listen = |event: &Event| {
        printer.run_event(event);
        if let Event::TrialFinished { result } = event {
            failures.add(result);
        }
    };
    let finished = block_on(printer, async |shutdown| {
        score(run, &past, &shutdown.stopper(), &mut listen).await
    })?;
    let scored = PastRun::open(&finished.folder.path)?;
    export(&arguments.export, &scored, &finished.summary, false, printer)?;
    print_summary(&finished.summary, &failures, printer);
    print_verdict(&finished, printer);
    let code = match finished.exit_code {
        ExitCode::Failed | ExitCode::Inconclusive if arguments.no_fail => ExitCode::Passed,
        code => code,
    };
    Ok(finished_outcome(&finished, code, printer))
}
