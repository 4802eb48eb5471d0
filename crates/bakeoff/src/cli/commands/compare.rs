//! `bakeoff compare`: compares targets case by case.

use crate::arguments::CompareArguments;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::Printer;
use bakeoff_core::{ExitCode, Finding, Summary};
use bakeoff_history::{CompareConfig, Error, PastRun, compare, find_run, pair_targets};
use bakeoff_report::{comparison_lines, comparison_notes, comparison_table};
use std::path::Path;

pub(super) fn run(arguments: &CompareArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let stored: Vec<(Summary, Option<String>)> =
        arguments.runs.iter().map(|name| open(name, &arguments.out)).collect::<Result<_, _>>()?;
    let found = pair_targets(&stored)?;
    let mut config = CompareConfig::default();
    config.alpha = arguments.alpha;
    config.detect = arguments.detect;
    config.within = arguments.within;
    let comparisons = compare(&found.pairs, config)?;
    if comparisons.len() > 1 {
        printer.data(comparison_table(&comparisons));
    }
    let notes = comparison_notes(&comparisons, &found.unpaired);
    notes.iter().for_each(|note| printer.data(note));
    for (index, comparison) in comparisons.iter().enumerate() {
        if index > 0 || !notes.is_empty() {
            printer.data("");
        }
        comparison_lines(comparison).iter().for_each(|line| printer.data(line));
    }
    let is_regression = comparisons
        .iter()
        .any(|comparison| comparison.gate && comparison.finding == Finding::Worse);
    if arguments.fail_on_regression && comparisons.iter().any(|it| it.scores.is_some()) {
        printer.message("--fail-on-regression uses the pass rate, not the score");
    }
    let code = match arguments.fail_on_regression && is_regression {
        true => ExitCode::Failed,
        false => ExitCode::Passed,
    };
    Ok(Outcome::new(code)
        .with("comparisons", &comparisons)
        .with("regression_metric", "pass_rate")
        .with("unpaired_targets", &found.unpaired))
}

/// Opens `RUN` or `RUN:TARGET`.
fn open(name: &str, out: &Path) -> Result<(Summary, Option<String>), Error> {
    let (run, target) = match name.rsplit_once(':') {
        Some((run, target)) if !Path::new(name).exists() => (run, Some(target.to_owned())),
        _ => (name, None),
    };
    let past = PastRun::open(&find_run(out, run)?)?;
    Ok((past.summary()?, target))
}
