//! Error rates of early stops and comparisons, measured on the simulated provider, where the true rates
//! are known.

use crate::Error;
use crate::scratch::Scratch;
use bakeoff_core::{Finding, Summary, Verdict};
use bakeoff_eval::{Run, RunConfig, Stopper};
use bakeoff_history::{CompareConfig, ComparedTarget, TargetPair, compare};
use bakeoff_suite::Suite;
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

/// Trials per run.
const TRIALS: u32 = 50;

/// True rates and thresholds of the early-stop rows.
const RATES_AND_THRESHOLDS: [(&str, &str); 5] =
    [("0.8", "0.7"), ("0.8", "0.9"), ("0.7", "0.7"), ("0.8", "0.8"), ("0.9", "0.9")];

/// Cases and trials of compared targets.
const COMPARISON_SIZE: (u32, u32) = (20, 3);

/// Maximum number of concurrent runs, which mostly wait for the disk.
const MAX_CONCURRENT_RUNS: usize = 64;

/// Configuration of the honesty benchmark.
#[derive(Debug, Clone)]
pub struct HonestyConfig {
    /// Runs per row, with and without early stops.
    pub seeds: u64,
    /// Number of compared pairs of runs of the same target.
    pub pairs: u64,
}

/// Results of the early stop `confident` for one rate and threshold.
#[derive(Debug, Clone)]
pub struct StopRow {
    /// True pass rate of the target.
    pub true_rate: f64,
    /// Threshold of the suite.
    pub threshold: f64,
    /// Number of runs.
    pub seeds: u64,
    /// Runs whose verdict differs from the verdict of all trials with the same seed.
    pub other_verdicts: u64,
    /// Share of saved trials.
    pub saved: f64,
}

/// Results of the honesty benchmark.
#[derive(Debug, Clone)]
pub struct HonestyReport {
    /// One row per true rate and threshold.
    pub stops: Vec<StopRow>,
    /// Pairs of runs of the same target.
    pub pairs: u64,
    /// Pairs with a difference.
    pub differences: u64,
}

/// Runs the honesty benchmark and calls `on_row` for each finished row.
pub async fn honesty(
    config: &HonestyConfig,
    on_row: &mut (dyn FnMut(&StopRow) + Send),
) -> Result<HonestyReport, Error> {
    let scratch = Scratch::new()?;
    let mut stops = Vec::new();
    for (rate, threshold) in RATES_AND_THRESHOLDS {
        let row = stop_row(&scratch, rate, threshold, config.seeds).await?;
        on_row(&row);
        stops.push(row);
    }
    let differences = count_differences(&scratch, config.pairs).await?;
    Ok(HonestyReport { stops, pairs: config.pairs, differences })
}

fn suite(rate: &str, threshold: &str, cases: u32, trials: u32, early_stop: &str) -> String {
    let cases: String = (0..cases).map(|number| format!("{{ id = \"c{number}\" }}, ")).collect();
    format!(
        r#"
        [suite]
        name = "honesty"
        trials = {trials}
        threshold = {threshold}
        early_stop = "{early_stop}"
        cost_warning = 1000000
        artifacts = "none"
        cache = "none"
        [[target]]
        name = "it"
        model = "sim/pass-{rate}"
        prompt = "{{{{ id }}}}"
        [cases]
        inline = [{cases}]
        [[check]]
        kind = "equals"
        value = "ok"
        "#
    )
}

async fn stop_row(
    scratch: &Scratch,
    rate: &str,
    threshold: &str,
    seeds: u64,
) -> Result<StopRow, Error> {
    let write = |early: &str| {
        let name = format!("{rate}-{threshold}-{early}.toml");
        scratch.write(&name, &suite(rate, threshold, 1, TRIALS, early))
    };
    let (full, early) = (write("off")?, write("confident")?);
    let jobs = (0..seeds).map(|seed| [(full.clone(), seed), (early.clone(), seed)]);
    let (mut other_verdicts, mut trials) = (0, 0);
    let mut verdicts: Vec<Option<Verdict>> = vec![None; seeds as usize];
    runs(scratch, jobs.flatten(), &mut |seed, summary| {
        let known = verdicts[seed as usize].replace(summary.verdict);
        other_verdicts += u64::from(known.is_some_and(|known| known != summary.verdict));
        trials += summary.targets.first().map_or(0, |target| target.counted);
    })
    .await?;
    let planned = seeds * u64::from(TRIALS);
    let number = |text: &str| text.parse().unwrap_or_default();
    Ok(StopRow {
        true_rate: number(rate),
        threshold: number(threshold),
        seeds,
        other_verdicts,
        // The count includes the runs with all trials.
        saved: 1.0 - (trials - planned) as f64 / planned as f64,
    })
}

/// Counts the pairs of runs of the same target for which a difference is found.
async fn count_differences(scratch: &Scratch, pairs: u64) -> Result<u64, Error> {
    let (cases, trials) = COMPARISON_SIZE;
    let path = scratch.write("compared.toml", &suite("0.8", "0.5", cases, trials, "off"))?;
    let mut waiting: Vec<Option<Summary>> = vec![None; pairs as usize];
    let mut differences = 0;
    let mut problem = None;
    let jobs = (0..2 * pairs).map(|seed| (path.clone(), seed));
    runs(scratch, jobs, &mut |seed, summary| {
        let slot = &mut waiting[(seed / 2) as usize];
        let Some(first) = slot.take() else {
            *slot = Some(summary);
            return;
        };
        let found = ComparedTarget::find(&first, None).and_then(|baseline| {
            let candidate = ComparedTarget::find(&summary, None)?;
            let mut config = CompareConfig::default();
            config.seed = seed / 2;
            compare(&[TargetPair { baseline, candidate, gate: true }], config)
        });
        match found {
            Ok(found) => {
                let is_difference = found.iter().any(|one| one.finding != Finding::NoDifference);
                differences += u64::from(is_difference);
            }
            Err(error) => problem = Some(error),
        }
    })
    .await?;
    problem.map_or(Ok(differences), |error| Err(Error::Eval(error.to_string())))
}

/// Executes runs concurrently and passes each summary to `done`.
async fn runs(
    scratch: &Scratch,
    jobs: impl Iterator<Item = (PathBuf, u64)>,
    done: &mut (dyn FnMut(u64, Summary) + Send),
) -> Result<(), Error> {
    let mut running: JoinSet<Result<(u64, Summary), Error>> = JoinSet::new();
    let out = scratch.folder().join("runs");
    for (suite, seed) in jobs {
        if running.len() >= MAX_CONCURRENT_RUNS
            && let Some(joined) = running.join_next().await
        {
            let (seed, summary) = joined.map_err(|error| Error::Eval(error.to_string()))??;
            done(seed, summary);
        }
        let out = out.clone();
        running.spawn(async move { run(&suite, out, seed).await.map(|summary| (seed, summary)) });
    }
    while let Some(joined) = running.join_next().await {
        let (seed, summary) = joined.map_err(|error| Error::Eval(error.to_string()))??;
        done(seed, summary);
    }
    Ok(())
}

async fn run(suite: &Path, out: PathBuf, seed: u64) -> Result<Summary, Error> {
    let suite = Suite::load(suite, &|_| None).map_err(|error| Error::Eval(error.to_string()))?;
    let mut config = RunConfig::new(out);
    config.seed = seed;
    let execution =
        async { Run::new(suite, config)?.execute(&Stopper::default(), &mut |_| {}).await };
    let finished = execution.await.map_err(|error| Error::Eval(error.to_string()))?;
    // Limits disk use; the scratch folder is removed at the end anyway.
    let _ = std::fs::remove_dir_all(&finished.folder.path);
    Ok(finished.summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses far fewer runs than a measurement; the bounds allow for random variation.
    #[tokio::test]
    async fn early_stops_and_comparisons_keep_their_error_rates() {
        let config = HonestyConfig { seeds: 60, pairs: 30 };
        let report = honesty(&config, &mut |_| {}).await.unwrap();
        for row in &report.stops {
            assert!(row.other_verdicts <= 5, "{row:?}");
            assert!(row.saved > 0.05, "{row:?}");
        }
        let saved: Vec<f64> = report.stops.iter().map(|row| row.saved).collect();
        assert!(saved[0] > 0.3 && saved[1] > 0.38, "{saved:?}");
        assert!(report.differences <= 6, "{report:?}");
    }
}
