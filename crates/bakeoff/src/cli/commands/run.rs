//! `bakeoff run`.

use crate::arguments::{LogLevel, RunArguments};
use crate::commands::failed;
use crate::commands::report::show as show_summary;
use crate::export::export;
use crate::printer::{Printer, count};
use crate::progress::{Progress, Voice};
use crate::{limits, problems, settings};
use bakeoff_core::{Event, ExitCode, Verdict};
use bakeoff_eval::{
    Budget, Error, Finished, LiveHttp, PastRun, Run, RunConfig, RunFile, Stopper, Suite, Wanted,
    find_run,
};
use bakeoff_pace::LimitOverrides;
use bakeoff_report::{Failures, http_line};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Failures shown at the end; the rest is in the run's folder.
const FAILURES_SHOWN: usize = 10;

pub(crate) fn run(mut arguments: RunArguments) -> ExitCode {
    let printer = Printer::new(arguments.quiet);
    settings::raise_file_limit();
    let earlier = match earlier(&arguments) {
        Ok(earlier) => earlier,
        Err(error) => return failed(&error, &printer),
    };
    let typed_model = arguments.model.clone();
    if let Some((_, file)) = &earlier {
        go_on_with(file, &mut arguments);
    }
    let path = arguments.suite.clone().unwrap_or_else(|| PathBuf::from("."));
    // The targets of a FastSkill project are agents.
    arguments.targets.extend(arguments.agents.iter().cloned());
    let wanted = Wanted {
        targets: &arguments.targets,
        model: arguments.model.as_deref(),
        must_run: true,
        ..Wanted::default()
    };
    let suite = match Suite::load_wanted(&path, wanted, &settings::variable) {
        Ok(suite) => suite,
        Err(found) => {
            problems::show(&found, &printer);
            return ExitCode::Usage;
        }
    };
    if let Some(refused) = settings::refuse_agents(&suite, &arguments.agents, &typed_model) {
        printer.error(refused, Some(settings::AGENTS_HINT));
        return ExitCode::Usage;
    }
    if let Some((_, file)) = &earlier {
        // A larger number in the suite is what an extension may be about.
        let trials = if arguments.extend { suite.settings.trials } else { 0 };
        arguments.trials = arguments.trials.or(Some(trials.max(file.suite.trials)));
    }
    let limits = match limits::overrides(&arguments.limits) {
        Ok(limits) => limits,
        Err(refused) => {
            printer.error(refused.message, Some(refused.hint));
            return ExitCode::Usage;
        }
    };
    let (json, no_fail, ci) = (arguments.json, arguments.no_fail, arguments.ci);
    let wanted = arguments.export.clone();
    let show = Show {
        json,
        plain: arguments.ci || json,
        hidden: json || printer.quiet,
        voice: Arc::default(),
    };
    let resume = earlier.map(|(path, _)| path);
    let is_resumed = resume.is_some();
    let config = RunConfig { resume, ..config(arguments, limits, &show) };
    let run = match Run::new(suite, config) {
        Ok(run) => run,
        Err(error) => return failed(&error, &printer),
    };
    let finished = match super::block_on(&printer, execute(run, &show, &printer)) {
        Ok(Ok((finished, mut failures))) => {
            // What failed before the run was interrupted failed all the same.
            if is_resumed && let Ok(all) = all_failures(&finished) {
                failures = all;
            }
            if !show.json {
                conclude(&finished, &failures, &printer);
            }
            if ci && !show.json && settings::is_github_actions() {
                annotate(&finished, &failures, &printer);
            }
            let exported = PastRun::open(&finished.folder.path)
                .and_then(|past| export(&wanted, &past, &finished.summary, true, &printer));
            if let Err(error) = exported {
                return failed(&error, &printer);
            }
            finished
        }
        Ok(Err(error)) => return failed(&error, &printer),
        Err(code) => return code,
    };
    let code = match finished.exit_code {
        ExitCode::Failed | ExitCode::Inconclusive if no_fail => ExitCode::Passed,
        code => code,
    };
    if json {
        printer.json(&Event::Done {
            run_dir: finished.folder.path.display().to_string(),
            verdict: finished.summary.verdict,
            exit_code: code.code(),
            summary: Box::new(finished.summary),
        });
    }
    printer.settle(code)
}

/// The run to go on with.
fn earlier(arguments: &RunArguments) -> Result<Option<(PathBuf, RunFile)>, Error> {
    let Some(wanted) = &arguments.resume else { return Ok(None) };
    let path = find_run(&arguments.out, wanted)?;
    let file = RunFile::read(&path)?;
    if file.select.is_some() {
        return Err(Error::Usage {
            code: None,
            message: format!("{} is a search", file.run_id),
            hint: Some(format!("`bakeoff select --resume {}` goes on with it", file.run_id)),
        });
    }
    Ok(Some((path, file)))
}

/// What is not said anew is as it was.
fn go_on_with(file: &RunFile, arguments: &mut RunArguments) {
    let keep = |said: &mut Vec<String>, stored: &[String]| {
        if said.is_empty() {
            *said = stored.to_vec();
        }
    };
    arguments.suite.get_or_insert_with(|| PathBuf::from(&file.suite.path));
    arguments.threshold.get_or_insert_with(|| file.threshold());
    arguments.suite_threshold = arguments.suite_threshold.or_else(|| file.suite_threshold());
    arguments.seed.get_or_insert(file.seed);
    if arguments.agents.is_empty() {
        keep(&mut arguments.targets, &file.suite.chosen.targets);
    }
    // Only agents have a model that the command line names.
    let model = |target: &serde_json::Value| {
        target.get("agent").and_then(|_| Some(target.get("model")?.as_str()?.to_owned()))
    };
    arguments.model = arguments.model.take().or_else(|| file.suite.targets.iter().find_map(model));
    keep(&mut arguments.only.cases, &file.suite.chosen.cases);
    keep(&mut arguments.only.tags, &file.suite.chosen.tags);
}

/// How a run is shown.
struct Show {
    json: bool,
    plain: bool,
    hidden: bool,
    /// Speaks while the run is shown.
    voice: Arc<OnceLock<Voice>>,
}

fn config(arguments: RunArguments, limits: LimitOverrides, show: &Show) -> RunConfig {
    let voice = Arc::clone(&show.voice);
    let on_http = LiveHttp::new(move |entry| {
        if let Some(voice) = voice.get() {
            voice.say(&http_line(entry));
        }
    });
    let is_live = arguments.log_level == LogLevel::Http && !arguments.quiet;
    RunConfig {
        simulated_models: crate::models::simulated(),
        out: arguments.out,
        resume: None,
        extend: arguments.extend,
        budget: Budget {
            cost: arguments.max_cost,
            tokens: arguments.max_tokens,
            time: arguments.deadline,
        },
        trials: arguments.trials,
        threshold: arguments.threshold,
        suite_threshold: arguments.suite_threshold,
        ci: arguments.ci,
        parallel: arguments.parallel,
        targets: arguments.targets,
        cases: arguments.only.cases,
        tags: arguments.only.tags,
        seed: arguments.seed.unwrap_or_default(),
        cache: arguments.kept.cache(),
        limits,
        pools: None,
        memory: arguments.kept.memory(),
        on_http: is_live.then_some(on_http),
        transport: None,
        keep: arguments.keep,
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    }
}

async fn execute(run: Run, show: &Show, printer: &Printer) -> Result<(Finished, Failures), Error> {
    let plan = run.plan();
    if !show.json {
        printer.talk(format!(
            "{}: {} × {} × {} = {}",
            plan.suite,
            count(plan.cases, "case"),
            count(plan.targets.len() as u64, "target"),
            count(plan.trials.into(), "trial"),
            count(plan.total, "trial"),
        ));
    }
    let stopper = Stopper::default();
    let mut progress = Progress::new(&plan, show.hidden, show.plain);
    let voice = (!printer.quiet).then(|| progress.voice());
    // Nobody has set it before: a run is executed once.
    let _ = show.voice.set(progress.voice());
    let listening = tokio::spawn(stop_on_signal(stopper.clone(), voice));
    let mut failures = Failures::new(FAILURES_SHOWN);
    let mut listen = |event: &Event| {
        if show.json {
            printer.json(event);
        }
        match event {
            Event::TrialFinished { result } => failures.add(result),
            Event::RunResumed { run_id, done, .. } if !show.json => {
                printer.talk(format!("going on with {run_id}: {} done", count(*done, "trial")));
            }
            Event::Warning { code, message } if !show.json => {
                printer.talk(format!("warning: {message} [{code}]"));
            }
            _ => {}
        }
        if let Some(line) = progress.note(event) {
            printer.talk(line);
        }
    };
    let finished = run.execute(&stopper, &mut listen).await;
    progress.finish();
    listening.abort();
    Ok((finished?, failures))
}

/// The first Ctrl-C (or a pipeline's wish to end) lets trials finish, the second ends them.
pub(crate) async fn stop_on_signal(stopper: Stopper, voice: Option<Voice>) {
    use tokio::signal::unix::{SignalKind, signal};
    let say = |line: &str| {
        if let Some(voice) = &voice {
            voice.say(line);
        }
    };
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
    for first in [true, false] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        if first {
            say("stopping: waiting for the trials that are under way; Ctrl-C again ends them");
            stopper.stop();
        } else {
            say("ending the trials that are under way");
            stopper.abort();
        }
    }
}

fn conclude(finished: &Finished, failures: &Failures, printer: &Printer) {
    let summary = &finished.summary;
    show_summary(summary, failures, printer);
    printer.data("");
    printer.data(verdict_line(finished));
    printer.talk(format!("results: {}", finished.folder.path.display()));
    let missing: u64 = summary.targets.iter().map(|target| target.errors + target.skipped).sum();
    if summary.verdict == Verdict::Inconclusive && missing > 0 {
        let missing = count(missing, "trial");
        printer.talk(format!("  hint: {missing} without a result; the verdict depends on them"));
    }
}

/// What a run comes to, in a line.
pub(crate) fn verdict_line(finished: &Finished) -> String {
    let verdict = match finished.summary.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Inconclusive => "inconclusive",
    };
    let interrupted =
        if finished.exit_code == ExitCode::Interrupted { " (interrupted)" } else { "" };
    format!("verdict: {verdict}{interrupted}")
}

/// The failures of a whole run, those of earlier processes included.
fn all_failures(finished: &Finished) -> Result<Failures, Error> {
    let mut failures = Failures::new(FAILURES_SHOWN);
    for result in PastRun::open(&finished.folder.path)?.results()? {
        failures.add(&result?);
    }
    Ok(failures)
}

/// Marks what went wrong where a pull request shows it.
fn annotate(finished: &Finished, failures: &Failures, printer: &Printer) {
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let kind = if finished.summary.verdict == Verdict::Passed { "warning" } else { "error" };
    let title = escape(&finished.summary.suite).replace(':', "%3A").replace(',', "%2C");
    for line in failures.lines() {
        printer.data(format!("::{kind} title={title}::{}", escape(&line)));
    }
}
