//! Shared fixtures: a folder with a suite file, and the results of running it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use bakeoff_core::{Attempt, Event, TrialResult};
use bakeoff_eval::{Error, FinishedRun, Run, RunConfig, Stopper};
use bakeoff_suite::{LoadOptions, Suite, SuiteError};
use serde_json::Value;
use std::path::PathBuf;

/// A folder with a suite file.
pub(crate) struct TestSuite {
    folder: tempfile::TempDir,
}

/// A finished run and its results, in the order in which trials ended.
pub(crate) struct TestRun {
    pub(crate) finished: FinishedRun,
    pub(crate) results: Vec<TrialResult>,
}

/// Options of `bakeoff select`.
pub(crate) const COMBINATIONS: LoadOptions<'static> =
    LoadOptions::new().must_run(true).combinations(true);

/// Options of `bakeoff run`.
pub(crate) const RUN: LoadOptions<'static> = LoadOptions::new().must_run(true);

impl TestSuite {
    pub(crate) fn new(suite: &str) -> TestSuite {
        let test = TestSuite { folder: tempfile::tempdir().unwrap() };
        test.rewrite(suite);
        test
    }

    pub(crate) fn rewrite(&self, suite: &str) {
        std::fs::write(self.path("bakeoff.toml"), suite).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Loads the suite in an environment that has only `PATH`.
    pub(crate) fn load(&self, options: LoadOptions<'_>) -> Result<Suite, SuiteError> {
        let environment = |name: &str| (name == "PATH").then(|| std::env::var("PATH").unwrap());
        Suite::load_with(&self.path("bakeoff.toml"), options, &environment)
    }

    pub(crate) fn config(&self) -> RunConfig {
        let mut config = RunConfig::new(self.path("runs"));
        config.cache = Some(self.path("cache.sqlite"));
        config
    }

    pub(crate) async fn run(&self, options: LoadOptions<'_>) -> TestRun {
        self.try_run(options, self.config()).await.unwrap()
    }

    pub(crate) async fn try_run(
        &self,
        options: LoadOptions<'_>,
        config: RunConfig,
    ) -> Result<TestRun, Error> {
        let run = Run::new(self.load(options).unwrap(), config)?;
        let mut results = Vec::new();
        let mut listen = |event: &Event| {
            if let Event::TrialFinished { result } = event {
                results.push(TrialResult::clone(result));
            }
        };
        let finished = run.execute(&Stopper::default(), &mut listen).await?;
        Ok(TestRun { finished, results })
    }
}

impl TestRun {
    /// Returns the attempt of the only trial.
    pub(crate) fn only(&self) -> &Attempt {
        assert_eq!(self.results.len(), 1);
        &self.results[0].attempt
    }

    /// Returns the lines of a JSONL file of the run.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.finished.folder.path.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
