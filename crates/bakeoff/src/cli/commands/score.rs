//! `bakeoff score`: judge what a run has said by today's checks.

use crate::arguments::ScoreArguments;
use crate::commands::failed;
use crate::commands::report::show;
use crate::commands::run::{stop_on_signal, verdict_line};
use crate::export::export;
use crate::printer::Printer;
use crate::{problems, settings};
use bakeoff_core::{Event, ExitCode};
use bakeoff_eval::{Error, Finished, PastRun, Run, RunConfig, Stopper, Suite, Wanted, find_run};
use bakeoff_report::Failures;
use std::path::PathBuf;

/// Failures shown; all are in the files.
const FAILURES_SHOWN: usize = 10;

pub(crate) fn run(arguments: &ScoreArguments, printer: &Printer) -> ExitCode {
    let past = match find_run(&arguments.run.out, &arguments.run.run)
        .and_then(|path| PastRun::open(&path))
    {
        Ok(past) => past,
        Err(error) => return failed(&error, printer),
    };
    let path = arguments.suite.clone().unwrap_or_else(|| PathBuf::from(&past.file.suite.path));
    let targets: Vec<String> = past
        .file
        .suite
        .targets
        .iter()
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect();
    // The targets of a search are the combinations of one.
    let combinations = past.file.select.is_some();
    let wanted = Wanted { targets: &targets, judges_only: true, combinations, ..Wanted::default() };
    let suite = match Suite::load_wanted(&path, wanted, &settings::variable) {
        Ok(suite) => suite,
        Err(found) => {
            problems::show(&found, printer);
            return ExitCode::Usage;
        }
    };
    let config = RunConfig {
        simulated_models: crate::models::simulated(),
        out: arguments.run.out.clone(),
        threshold: arguments.threshold.or(Some(past.file.threshold())),
        suite_threshold: arguments.suite_threshold.or_else(|| past.file.suite_threshold()),
        trials: Some(past.file.suite.trials),
        targets: if combinations { Vec::new() } else { targets },
        seed: past.file.seed,
        cache: settings::cache_file(),
        memory: settings::memory_file(),
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..RunConfig::default()
    };
    let scored = Run::new(suite, config)
        .and_then(|run| match super::block_on(printer, score(run, &past)) {
            Ok(scored) => scored.map(Ok),
            Err(code) => Ok(Err(code)),
        })
        .and_then(|scored| match scored {
            Ok((finished, failures)) => {
                conclude(arguments, &finished, &failures, printer).map(|()| finished.exit_code)
            }
            Err(code) => Ok(code),
        });
    match scored {
        Ok(ExitCode::Failed | ExitCode::Inconclusive) if arguments.no_fail => ExitCode::Passed,
        Ok(code) => code,
        Err(error) => failed(&error, printer),
    }
}

async fn score(run: Run, past: &PastRun) -> Result<(Finished, Failures), Error> {
    let mut failures = Failures::new(FAILURES_SHOWN);
    let mut listen = |event: &Event| {
        if let Event::TrialFinished { result } = event {
            failures.add(result);
        }
    };
    let stopper = Stopper::default();
    let listening = tokio::spawn(stop_on_signal(stopper.clone(), None));
    let finished = run.score(past, &stopper, &mut listen).await;
    listening.abort();
    Ok((finished?, failures))
}

fn conclude(
    arguments: &ScoreArguments,
    finished: &Finished,
    failures: &Failures,
    printer: &Printer,
) -> Result<(), Error> {
    let past = PastRun::open(&finished.folder.path)?;
    export(&arguments.export, &past, &finished.summary, false, printer)?;
    if arguments.run.json {
        printer.json(&finished.summary);
    } else {
        show(&finished.summary, failures, printer);
        printer.data("");
        printer.data(verdict_line(finished));
        printer.talk(format!("results: {}", finished.folder.path.display()));
    }
    Ok(())
}
