//! Runs of a target with a known pass rate, on the simulated provider.

use crate::Error;
use crate::scratch::Scratch;
use bakeoff_core::Summary;
use bakeoff_eval::{Run, RunConfig, Stopper};
use bakeoff_suite::Suite;
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

/// Maximum number of concurrent runs, which mostly wait for the disk.
const MAX_CONCURRENT_RUNS: usize = 64;

/// Returns a suite with one target.
pub(super) fn suite(
    rate: &str,
    threshold: &str,
    cases: u32,
    trials: u32,
    early_stop: &str,
) -> String {
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

/// Executes runs concurrently and passes each summary to `done`.
pub(super) async fn runs(
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
