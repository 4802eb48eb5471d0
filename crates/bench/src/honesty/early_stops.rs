//! Wrong verdicts of the early stop `confident`.

use super::simulated_runs::{runs, suite};
use crate::Error;
use crate::scratch::Scratch;
use bakeoff_core::Verdict;

/// Trials per run.
const TRIALS: u32 = 50;

/// True rates and thresholds of the rows.
const RATES_AND_THRESHOLDS: [(&str, &str); 5] =
    [("0.8", "0.7"), ("0.8", "0.9"), ("0.7", "0.7"), ("0.8", "0.8"), ("0.9", "0.9")];

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

/// Executes `seeds` runs per true rate and threshold, with and without early stops, and calls `on_row` for
/// each finished row.
pub async fn early_stops(
    seeds: u64,
    on_row: &mut (dyn FnMut(&StopRow) + Send),
) -> Result<Vec<StopRow>, Error> {
    let scratch = Scratch::new()?;
    let mut rows = Vec::new();
    for (rate, threshold) in RATES_AND_THRESHOLDS {
        let row = stop_row(&scratch, rate, threshold, seeds).await?;
        on_row(&row);
        rows.push(row);
    }
    Ok(rows)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses far fewer runs than a measurement; the bounds allow for random variation.
    #[tokio::test]
    async fn early_stops_keep_their_error_rates() {
        let rows = early_stops(60, &mut |_| {}).await.unwrap();
        for row in &rows {
            assert!(row.other_verdicts <= 5, "{row:?}");
            assert!(row.saved > 0.05, "{row:?}");
        }
        let saved: Vec<f64> = rows.iter().map(|row| row.saved).collect();
        assert!(saved[0] > 0.3 && saved[1] > 0.38, "{saved:?}");
    }
}
