//! Differences that `compare` finds between runs of the same target.

use super::simulated_runs::{runs, suite};
use crate::Error;
use crate::scratch::Scratch;
use bakeoff_core::{Finding, Summary};
use bakeoff_history::{CompareConfig, ComparedTarget, TargetPair, compare};

/// Cases and trials of compared targets.
const COMPARISON_SIZE: (u32, u32) = (20, 3);

/// Compares `pairs` pairs of runs of the same target, and returns the number of pairs for which a difference
/// is found.
pub async fn identical_targets(pairs: u64) -> Result<u64, Error> {
    let scratch = Scratch::new()?;
    let (cases, trials) = COMPARISON_SIZE;
    let path = scratch.write("compared.toml", &suite("0.8", "0.5", cases, trials, "off"))?;
    let mut waiting: Vec<Option<Summary>> = vec![None; pairs as usize];
    let mut differences = 0;
    let mut problem = None;
    let jobs = (0..2 * pairs).map(|seed| (path.clone(), seed));
    runs(&scratch, jobs, &mut |seed, summary| {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses far fewer runs than a measurement; the bound allows for random variation.
    #[tokio::test]
    async fn identical_targets_rarely_differ() {
        let differences = identical_targets(30).await.unwrap();
        assert!(differences <= 6, "{differences}");
    }
}
