//! Do early stops and comparisons keep what they promise? Measured on the simulated provider, where
//! the truth is known.

use crate::Error;
use crate::scratch::Scratch;
use bakeoff_core::{Finding, Summary, Verdict};
use bakeoff_eval::{Run, RunConfig, Stopper};
use bakeoff_history::{CompareConfig, ComparedTarget, compare};
use bakeoff_suite::Suite;
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

/// Trials of a run that may stop early.
const TRIALS: u32 = 50;

/// True rates and thresholds that are measured.
const STOPS: [(&str, &str); 5] =
    [("0.8", "0.7"), ("0.8", "0.9"), ("0.7", "0.7"), ("0.8", "0.8"), ("0.9", "0.9")];

/// Cases and trials of targets that are compared.
const COMPARED: (u32, u32) = (20, 3);

/// Runs at once: they wait for the disk.
const AT_ONCE: usize = 64;

/// What is measured.
#[derive(Debug, Clone)]
pub struct HonestyConfig {
    /// Runs with and without early stops, for each row.
    pub seeds: u64,
    /// Pairs of runs of the same target.
    pub pairs: u64,
}

/// What `confident` did.
#[derive(Debug, Clone)]
pub struct StopRow {
    /// The target's true pass rate.
    pub true_rate: f64,
    /// The threshold.
    pub threshold: f64,
    /// Runs.
    pub seeds: u64,
    /// Runs with another verdict than all trials of the same seed give.
    pub other_verdicts: u64,
    /// Share of the trials that were saved.
    pub saved: f64,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct HonestyReport {
    /// One row per true rate and threshold.
    pub stops: Vec<StopRow>,
    /// Pairs of runs of the same target.
    pub pairs: u64,
    /// Those of them in which a difference was found.
    pub differences: u64,
}

/// Measures both. `tell` hears of each row when it is done.
pub async fn honesty(
    config: &HonestyConfig,
    tell: &mut (dyn FnMut(&StopRow) + Send),
) -> Result<HonestyReport, Error> {
    let scratch = Scratch::new()?;
    let mut stops = Vec::new();
    for (rate, threshold) in STOPS {
        let row = stop_row(&scratch, rate, threshold, config.seeds).await?;
        tell(&row);
        stops.push(row);
    }
    let differences = compared(&scratch, config.pairs).await?;
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
    let (mut other_verdicts, mut made) = (0, 0);
    let mut verdicts: Vec<Option<Verdict>> = vec![None; seeds as usize];
    runs(scratch, jobs.flatten(), &mut |seed, summary| {
        let known = verdicts[seed as usize].replace(summary.verdict);
        other_verdicts += u64::from(known.is_some_and(|known| known != summary.verdict));
        made += summary.targets.first().map_or(0, |target| target.counted);
    })
    .await?;
    let planned = seeds * u64::from(TRIALS);
    let number = |text: &str| text.parse().unwrap_or_default();
    Ok(StopRow {
        true_rate: number(rate),
        threshold: number(threshold),
        seeds,
        other_verdicts,
        // The other half are the runs with all trials.
        saved: 1.0 - (made - planned) as f64 / planned as f64,
    })
}

/// In how many of so many pairs of runs of the same target a difference is found.
async fn compared(scratch: &Scratch, pairs: u64) -> Result<u64, Error> {
    let (cases, trials) = COMPARED;
    let path = scratch.write("compared.toml", &suite("0.8", "0.5", cases, trials, "off"))?;
    let mut waiting: Vec<Option<Summary>> = vec![None; pairs as usize];
    let mut differences = 0;
    let mut problem = None;
    let jobs = (0..2 * pairs).map(|seed| (path.clone(), seed));
    runs(scratch, jobs, &mut |seed, summary| {
        let place = &mut waiting[(seed / 2) as usize];
        let Some(first) = place.take() else {
            *place = Some(summary);
            return;
        };
        let found = ComparedTarget::find(&first, None).and_then(|baseline| {
            let candidate = ComparedTarget::find(&summary, None)?;
            compare(
                baseline,
                &[candidate],
                CompareConfig { seed: seed / 2, ..CompareConfig::default() },
            )
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

/// Makes runs, several at once, and hands over what is said of each.
async fn runs(
    scratch: &Scratch,
    jobs: impl Iterator<Item = (PathBuf, u64)>,
    done: &mut (dyn FnMut(u64, Summary) + Send),
) -> Result<(), Error> {
    let mut running: JoinSet<Result<(u64, Summary), Error>> = JoinSet::new();
    let out = scratch.folder().join("runs");
    for (suite, seed) in jobs {
        if running.len() >= AT_ONCE
            && let Some(ended) = running.join_next().await
        {
            let (seed, summary) = ended.map_err(|error| Error::Eval(error.to_string()))??;
            done(seed, summary);
        }
        let out = out.clone();
        running.spawn(async move { run(&suite, out, seed).await.map(|summary| (seed, summary)) });
    }
    while let Some(ended) = running.join_next().await {
        let (seed, summary) = ended.map_err(|error| Error::Eval(error.to_string()))??;
        done(seed, summary);
    }
    Ok(())
}

async fn run(suite: &Path, out: PathBuf, seed: u64) -> Result<Summary, Error> {
    let suite = Suite::load(suite, &|_| None).map_err(|error| Error::Eval(error.to_string()))?;
    let config = RunConfig { out, seed, ..RunConfig::default() };
    let made = async { Run::new(suite, config)?.execute(&Stopper::default(), &mut |_| {}).await };
    let finished = made.await.map_err(|error| Error::Eval(error.to_string()))?;
    // Thousands of folders help nobody; the scratch folder goes with the rest.
    let _ = std::fs::remove_dir_all(&finished.folder.path);
    Ok(finished.summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far fewer runs than a measurement needs; the bounds are as wide as chance demands.
    #[tokio::test]
    async fn early_stops_and_comparisons_keep_what_they_promise() {
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
