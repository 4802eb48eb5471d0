//! `bakeoff run`: runs a suite.

use super::report::{print_summary, verdict_line};
use crate::arguments::RunArguments;
use crate::error::{CliError, UsageError};
use crate::export::export;
use crate::exposed::warn_if_open_to_others;
use crate::failed_cases::failed_cases;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use crate::progress::{ProgressDisplay, ProgressPrinter};
use crate::resume_command::hint_at_resume;
use crate::shutdown::{Shutdown, block_on};
use crate::{limits, settings};
use bakeoff_core::{Event, ExitCode, Verdict};
use bakeoff_eval::{Error, FinishedRun, HttpCallback, Run, RunConfig, RunFile};
use bakeoff_history::{PastRun, find_run, resume_state};
use bakeoff_pace::LimitOverrides;
use bakeoff_report::{Failures, http_line};
use bakeoff_stats::Threshold;
use bakeoff_suite::{Budget, LoadOptions, Suite};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Failures printed at the end; the folder of the run has all.
pub(super) const MAX_FAILURES: usize = 10;

pub(super) fn run(mut arguments: RunArguments, printer: &Printer) -> Result<Outcome, CliError> {
    settings::raise_file_limit();
    arguments.suite = arguments.suite_option.take().or(arguments.suite);
    let resumed = resumed_run(&arguments, printer)?;
    let model_argument = arguments.model.clone();
    let mut stored = StoredRule::default();
    if let Some((_, file)) = &resumed {
        stored = StoredRule::of(file);
        apply_stored_settings(file, &mut arguments)?;
    }
    let path = arguments.suite.clone().unwrap_or_else(|| PathBuf::from("."));
    // The targets of a FastSkill project are agents.
    arguments.targets.extend(arguments.agents.iter().cloned());
    let options = LoadOptions::new()
        .targets(&arguments.targets)
        .all_agents(arguments.all)
        .model(arguments.model.as_deref())
        .roles(arguments.roles.as_deref())
        .must_run(true);
    let suite = Suite::load_with(&path, options, &settings::variable)?;
    if suite.project.is_some() && arguments.roles.is_some() {
        let hint = "`--model` sets the model of the agents of a project";
        return Err(UsageError::new("a FastSkill project has no roles").hint(hint).into());
    }
    settings::check_agents(&suite, &arguments.agents, arguments.all, &model_argument)?;
    arguments.export.check(Some(&suite))?;
    if suite.project.is_some() {
        // The installed agents may have changed when the run is resumed.
        arguments.targets.clone_from(&suite.target_names);
    }
    if let Some((_, file)) = &resumed {
        // An extension may consist of a larger number of trials in the suite.
        let trials = if arguments.extend { suite.settings.trials } else { 0 };
        stored.trials = Some(trials.max(file.suite.trials));
    }
    if let Some(name) = &arguments.failed_of {
        let run = find_run(&arguments.execution.out, name)?;
        arguments.execution.only.cases = failed_cases(&run, &suite)?;
    }
    let limits = limits::overrides(&arguments.execution.limits)?;
    let (no_fail, is_ci) = (arguments.no_fail, arguments.ci);
    let (files, out) = (arguments.export.clone(), arguments.execution.out.clone());
    let resume = resumed.map(|(path, _)| path);
    let is_resumed = resume.is_some();
    let request_log = RequestLog::default();
    let on_http = arguments.execution.prints_requests().then(|| request_log.listener());
    let extend = arguments.extend;
    let mut config = config(arguments, limits);
    stored.apply_to(&mut config);
    config.on_http = on_http;
    let mut run = Run::new(suite, config)?;
    if let Some(path) = resume {
        let state = resume_state(&run, &path, extend)?;
        run = run.resume_from(state);
    }
    let (finished, mut failures) = block_on(printer, async |shutdown| {
        execute(run, is_ci, &request_log, &shutdown, printer).await
    })?;
    // Failures of earlier processes of this run count too.
    if is_resumed && let Ok(all) = all_failures(&finished) {
        failures = all;
    }
    // A run whose folder is gone has no result.
    let past = PastRun::open(&finished.folder.path)?;
    print_result(&finished, &failures, printer);
    if is_ci && settings::is_github_actions() {
        print_annotations(&finished, &failures, printer);
    }
    export(&files, &past, &finished.summary, true, printer)?;
    if finished.exit_code == ExitCode::Interrupted {
        hint_at_resume(&out, &finished.folder.path, printer);
    }
    let code = match finished.exit_code {
        ExitCode::Failed | ExitCode::Inconclusive if no_fail => ExitCode::Passed,
        code => code,
    };
    Ok(finished_outcome(&finished, code, printer))
}

/// Returns the outcome of a run whose results are written.
pub(super) fn finished_outcome(
    finished: &FinishedRun,
    code: ExitCode,
    printer: &Printer,
) -> Outcome {
    // As JSON, the summary of a large run takes tens of megabytes.
    if !printer.is_json() {
        return Outcome::new(code);
    }
    Outcome::new(code)
        .with("run_dir", finished.folder.path.display().to_string())
        .with("verdict", finished.summary.verdict)
        .with("rule", &finished.summary.rule)
        .with("summary", &finished.summary)
}

/// Finds the run to resume.
fn resumed_run(
    arguments: &RunArguments,
    printer: &Printer,
) -> Result<Option<(PathBuf, RunFile)>, CliError> {
    let Some(name) = &arguments.resume else { return Ok(None) };
    let path = find_run(&arguments.execution.out, name)?;
    warn_if_open_to_others(&path, printer);
    let file = RunFile::read(&path)?;
    if file.select.is_some() {
        let hint = format!("use `bakeoff select --resume {}`", file.run_id);
        return Err(UsageError::new(format!("{} is a search", file.run_id)).hint(hint).into());
    }
    Ok(Some((path, file)))
}

/// Takes settings that the command line leaves out from the resumed run.
fn apply_stored_settings(file: &RunFile, arguments: &mut RunArguments) -> Result<(), UsageError> {
    if arguments.suite.is_none() {
        arguments.suite = Some(settings::stored_suite(file)?);
    }
    if file.suite.is_ci_rule && arguments.suite_threshold.is_none() {
        arguments.ci = true;
    } else {
        arguments.suite_threshold = arguments.suite_threshold.or_else(|| file.suite_threshold());
    }
    arguments.seed.get_or_insert(file.seed);
    arguments.roles =
        arguments.roles.take().or_else(|| file.suite.roles_file.clone().map(PathBuf::from));
    if arguments.agents.is_empty() && arguments.targets.is_empty() {
        arguments.targets.clone_from(&file.suite.chosen.targets);
    }
    // The command line sets the model of agents only.
    let model = |target: &serde_json::Value| {
        target.get("agent").and_then(|_| Some(target.get("model")?.as_str()?.to_owned()))
    };
    arguments.model = arguments.model.take().or_else(|| file.suite.targets.iter().find_map(model));
    arguments.execution.only.fill(&file.suite.chosen);
    Ok(())
}

/// Number of trials and threshold of the resumed run, for cases without their own.
#[derive(Debug, Default)]
struct StoredRule {
    trials: Option<u32>,
    threshold: Option<Threshold>,
    /// Whether the command line of the resumed run set them for all cases.
    has_fixed_trials: bool,
    has_fixed_threshold: bool,
}

impl StoredRule {
    fn of(file: &RunFile) -> StoredRule {
        StoredRule {
            trials: Some(file.suite.trials),
            threshold: Some(file.threshold()),
            has_fixed_trials: file.suite.has_fixed_trials,
            has_fixed_threshold: file.suite.has_fixed_threshold,
        }
    }

    /// Sets what the command line leaves out.
    fn apply_to(self, config: &mut RunConfig) {
        if config.trials.is_none() {
            config.keeps_own_trials = !self.has_fixed_trials;
            config.trials = self.trials;
        }
        if config.threshold.is_none() {
            config.keeps_own_threshold = !self.has_fixed_threshold;
            config.threshold = self.threshold;
        }
    }
}

/// Log of requests on standard error, for `--log-level http`.
#[derive(Default)]
pub(super) struct RequestLog {
    /// Set when the progress display exists.
    printer: Arc<OnceLock<ProgressPrinter>>,
}

impl RequestLog {
    pub(super) fn listener(&self) -> HttpCallback {
        let printer = Arc::clone(&self.printer);
        HttpCallback::new(move |entry| {
            if let Some(printer) = printer.get() {
                printer.print(&http_line(entry));
            }
        })
    }

    pub(super) fn print_with(&self, printer: ProgressPrinter) {
        // A command has one display.
        let _ = self.printer.set(printer);
    }
}

fn config(arguments: RunArguments, limits: LimitOverrides) -> RunConfig {
    let execution = arguments.execution;
    let mut config = RunConfig::new(execution.out);
    config.simulated_models = crate::models::simulated();
    config.budget =
        Budget { cost: execution.max_cost, tokens: arguments.max_tokens, time: execution.deadline };
    config.trials = arguments.trials;
    config.threshold = arguments.threshold;
    config.suite_threshold = arguments.suite_threshold;
    config.ci = arguments.ci;
    config.parallel = execution.parallel;
    config.targets = arguments.targets;
    execution.only.configure(&mut config);
    config.seed = arguments.seed.unwrap_or_default();
    config.cache = execution.reuse.cache_file();
    config.limits = limits;
    config.memory = execution.reuse.history_file();
    config.keep = arguments.keep;
    config.work_dir = settings::work_dir();
    config.arguments = settings::command_line();
    config
}

/// Describes the number of trials of a plan.
pub(super) fn describe_size(cases: u64, targets: u64, trials: u32, total: u64) -> String {
    let (all, trials) = (cases * targets * u64::from(trials), count(trials.into(), "trial"));
    // Cases may have their own numbers of trials.
    let trials = if all == total { trials } else { format!("{trials} unless a case has its own") };
    let (cases, targets) = (count(cases, "case"), count(targets, "target"));
    format!("{cases} × {targets} × {trials} = {}", count(total, "trial"))
}

async fn execute(
    run: Run,
    is_ci: bool,
    request_log: &RequestLog,
    shutdown: &Shutdown,
    printer: &Printer,
) -> Result<(FinishedRun, Failures), Error> {
    let plan = run.plan();
    let targets = plan.targets.len() as u64;
    let size = describe_size(plan.cases, targets, plan.trials, plan.total);
    printer.message(format!("{}: {size}", plan.suite));
    let mut progress = ProgressDisplay::new(&plan, !printer.shows_progress(), is_ci);
    request_log.print_with(progress.printer());
    shutdown.print_with(progress.printer());
    let mut failures = Failures::new(MAX_FAILURES, Arc::clone(&run.criteria().cases));
    let mut listen = |event: &Event| {
        printer.run_event(event);
        match event {
            Event::TrialFinished { result } => failures.add(result),
            Event::RunResumed { run_id, done, .. } => {
                printer.message(format!("resuming {run_id}: {} done", count(*done, "trial")));
            }
            _ => {}
        }
        if let Some(line) = progress.update(event) {
            printer.message(line);
        }
    };
    let finished = run.execute(&shutdown.stopper(), &mut listen).await;
    progress.finish();
    Ok((finished?, failures))
}

fn print_result(finished: &FinishedRun, failures: &Failures, printer: &Printer) {
    let summary = &finished.summary;
    print_summary(summary, failures, printer);
    print_verdict(finished, printer);
    let missing: u64 = summary.targets.iter().map(|target| target.errors + target.skipped).sum();
    if summary.verdict == Verdict::Inconclusive && missing > 0 {
        let missing = count(missing, "trial");
        printer.hint(format!("{missing} without a result; the verdict depends on them"));
    }
}

/// Prints the verdict of a run and its folder.
pub(super) fn print_verdict(finished: &FinishedRun, printer: &Printer) {
    let interrupted =
        if finished.exit_code == ExitCode::Interrupted { " (interrupted)" } else { "" };
    printer.data("");
    printer.data(format!("{}{interrupted}", verdict_line(&finished.summary)));
    printer.message(format!("results: {}", finished.folder.path.display()));
}

/// Returns the failures of a whole run, those of earlier processes included.
fn all_failures(finished: &FinishedRun) -> Result<Failures, bakeoff_history::Error> {
    let past = PastRun::open(&finished.folder.path)?;
    let mut failures = Failures::new(MAX_FAILURES, Arc::clone(&past.file.suite.cases.chosen));
    for result in past.results()? {
        failures.add(&result?);
    }
    Ok(failures)
}

/// Prints failures as annotations that GitHub shows on a pull request.
fn print_annotations(finished: &FinishedRun, failures: &Failures, printer: &Printer) {
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let kind = if finished.summary.verdict == Verdict::Passed { "warning" } else { "error" };
    let title = escape(&finished.summary.suite).replace(':', "%3A").replace(',', "%2C");
    for entry in failures.entries(&finished.summary) {
        printer.data(format!("::{kind} title={title}::{}", escape(&entry)));
    }
}
