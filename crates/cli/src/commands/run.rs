//! `bakeoff run`.

use crate::arguments::RunArguments;
use crate::printer::{Printer, chain};
use crate::progress::Progress;
use crate::{problems, settings};
use bakeoff_core::{Event, ExitCode, Verdict};
use bakeoff_eval::{Error, Finished, Run, RunConfig, Stopper, Suite};
use bakeoff_report::{Failures, summary_table};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Failures shown at the end; the rest is in the run's folder.
const FAILURES_SHOWN: usize = 10;

pub(crate) fn run(arguments: RunArguments, printer: &Printer) -> ExitCode {
    let printer = Printer { quiet: printer.quiet || arguments.quiet };
    settings::raise_file_limit();
    let suite = match Suite::load(&arguments.suite, &settings::variable) {
        Ok(suite) => suite,
        Err(found) => {
            problems::show(&found, &printer);
            return ExitCode::Usage;
        }
    };
    let (json, no_fail) = (arguments.json, arguments.no_fail);
    let show = Show { json, plain: arguments.ci || json, hidden: json || printer.quiet };
    let run = match Run::new(suite, config(arguments)) {
        Ok(run) => run,
        Err(error) => return failed(&error, &printer),
    };
    let finished = match super::block_on(&printer, execute(run, &show, &printer)) {
        Ok(Ok((finished, failures))) => {
            if !show.json {
                conclude(&finished, &failures, &printer);
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
    code
}

/// How a run is shown.
struct Show {
    json: bool,
    plain: bool,
    hidden: bool,
}

fn config(arguments: RunArguments) -> RunConfig {
    RunConfig {
        out: arguments.out,
        trials: arguments.trials,
        threshold: arguments.threshold,
        suite_threshold: arguments.suite_threshold,
        ci: arguments.ci,
        parallel: arguments.parallel,
        targets: arguments.targets,
        cases: arguments.cases,
        tags: arguments.tags,
        seed: arguments.seed,
        cache: if arguments.no_cache { None } else { settings::cache_file() },
        max_connections: arguments.max_connections,
        max_retries: arguments.max_retries,
        attempt_timeout: arguments.attempt_timeout,
        transport: None,
        arguments: std::env::args().collect(),
    }
}

async fn execute(run: Run, show: &Show, printer: &Printer) -> Result<(Finished, Failures), Error> {
    let plan = run.plan();
    if !show.json {
        printer.talk(format!(
            "{}: {} cases × {} targets × {} trials = {} trials",
            plan.suite,
            plan.cases,
            plan.targets.len(),
            plan.trials,
            plan.total
        ));
    }
    let stopper = Stopper::default();
    let listening = tokio::spawn(stop_on_signal(stopper.clone()));
    let mut progress = Progress::new(&plan, show.hidden, show.plain);
    let mut failures = Failures::new(FAILURES_SHOWN);
    let mut listen = |event: &Event| {
        if show.json {
            printer.json(event);
        }
        match event {
            Event::TrialFinished { result } => failures.add(result),
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

/// The first Ctrl-C lets trials finish, the second ends them, a third ends this process.
async fn stop_on_signal(stopper: Stopper) {
    let stopping = Arc::new(AtomicBool::new(false));
    loop {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        let printer = Printer::default();
        if stopping.swap(true, Ordering::Relaxed) {
            printer.talk("ending the trials that are under way");
            stopper.abort();
        } else {
            printer.talk(
                "stopping: waiting for the trials that are under way; Ctrl-C again ends them",
            );
            stopper.stop();
        }
    }
}

fn conclude(finished: &Finished, failures: &Failures, printer: &Printer) {
    let summary = &finished.summary;
    printer.data(summary_table(summary));
    let lines = failures.lines();
    if !lines.is_empty() {
        printer.data("");
        lines.iter().for_each(|line| printer.data(line));
    }
    let verdict = match summary.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Inconclusive => "inconclusive",
    };
    printer.data("");
    printer.data(format!("verdict: {verdict}"));
    printer.talk(format!("results: {}", finished.folder.path.display()));
    let missing: u64 = summary.targets.iter().map(|target| target.errors + target.skipped).sum();
    if summary.verdict == Verdict::Inconclusive && missing > 0 {
        printer
            .talk(format!("  hint: {missing} trials have no result; the verdict depends on them"));
    }
}

fn failed(error: &Error, printer: &Printer) -> ExitCode {
    match error {
        Error::Usage { code, message, hint } => {
            let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
            printer.error(format!("{message}{code}"), hint.as_deref());
            ExitCode::Usage
        }
        error => {
            printer.error(chain(error), None);
            ExitCode::Internal
        }
    }
}
