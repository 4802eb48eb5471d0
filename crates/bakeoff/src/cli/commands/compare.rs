//! `bakeoff compare`: is it better?

use crate::arguments::CompareArguments;
use crate::commands::failed;
use crate::printer::Printer;
use bakeoff_core::{ExitCode, Finding, Summary};
use bakeoff_history::{CompareConfig, Error, PastRun, baseline_and_candidates, compare, find_run};
use bakeoff_report::comparison_lines;
use std::path::Path;

pub(crate) fn run(arguments: &CompareArguments, printer: &Printer) -> ExitCode {
    match show(arguments, printer) {
        Ok(code) => code,
        Err(error) => failed(&error, printer),
    }
}

fn show(arguments: &CompareArguments, printer: &Printer) -> Result<ExitCode, Error> {
    let stored: Vec<(Summary, Option<String>)> =
        arguments.runs.iter().map(|word| open(word, &arguments.out)).collect::<Result<_, _>>()?;
    let (baseline, candidates) = baseline_and_candidates(&stored)?;
    let config = CompareConfig {
        alpha: arguments.alpha,
        detect: arguments.detect,
        within: arguments.within,
        seed: 0,
    };
    let found = compare(baseline, &candidates, config)?;
    for (number, comparison) in found.iter().enumerate() {
        if arguments.json {
            printer.json(comparison);
            continue;
        }
        if number > 0 {
            printer.data("");
        }
        comparison_lines(comparison).iter().for_each(|line| printer.data(line));
    }
    let is_worse = found.iter().any(|comparison| comparison.finding == Finding::Worse);
    Ok(if arguments.fail_on_regression && is_worse { ExitCode::Failed } else { ExitCode::Passed })
}

/// `RUN` or `RUN:TARGET`.
fn open(word: &str, out: &Path) -> Result<(Summary, Option<String>), Error> {
    let (run, target) = match word.rsplit_once(':') {
        Some((run, target)) if !Path::new(word).exists() => (run, Some(target.to_owned())),
        _ => (word, None),
    };
    let past = PastRun::open(&find_run(out, run)?)?;
    Ok((past.summary()?, target))
}
