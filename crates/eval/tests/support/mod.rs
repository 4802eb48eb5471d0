//! What tests of runs share: a folder with a suite, and what came of running it.

#![allow(dead_code, reason = "no file of tests uses all of it")]

use bakeoff_core::{Attempt, Event, TrialResult};
use bakeoff_eval::{Error, Finished, Problem, Run, RunConfig, Stopper, Suite, Wanted};
use serde_json::Value;
use std::path::PathBuf;

/// A folder with a suite.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// A run that is over, and its trials in the order in which they ended.
pub(crate) struct Ran {
    pub(crate) finished: Finished,
    pub(crate) results: Vec<TrialResult>,
}

/// What combinations are wanted with.
pub(crate) const COMBINATIONS: Wanted<'static> =
    Wanted { targets: &[], model: None, must_run: true, judges_only: false, combinations: true };

/// As `bakeoff run` wants it.
pub(crate) const RUN: Wanted<'static> = Wanted { combinations: false, ..COMBINATIONS };

impl Place {
    pub(crate) fn new(suite: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        place.rewrite(suite);
        place
    }

    pub(crate) fn rewrite(&self, suite: &str) {
        std::fs::write(self.path("bakeoff.toml"), suite).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The suite, in an environment with nothing but programs.
    pub(crate) fn load(&self, wanted: Wanted<'_>) -> Result<Suite, Vec<Problem>> {
        let environment = |name: &str| (name == "PATH").then(|| std::env::var("PATH").unwrap());
        Suite::load_wanted(&self.path("bakeoff.toml"), wanted, &environment)
    }

    /// What is wrong with the suite, as people read it.
    pub(crate) fn problems(&self, wanted: Wanted<'_>) -> String {
        let problems = self.load(wanted).expect_err("something is wrong");
        let folder = format!("{}/", self.folder.path().display());
        let shown: Vec<String> =
            problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect();
        shown.join("\n")
    }

    pub(crate) fn config(&self) -> RunConfig {
        RunConfig {
            out: self.path("runs"),
            cache: Some(self.path("cache.sqlite")),
            ..RunConfig::default()
        }
    }

    pub(crate) async fn run(&self, wanted: Wanted<'_>) -> Ran {
        self.try_run(wanted, self.config()).await.unwrap()
    }

    pub(crate) async fn try_run(
        &self,
        wanted: Wanted<'_>,
        config: RunConfig,
    ) -> Result<Ran, Error> {
        let run = Run::new(self.load(wanted).unwrap(), config)?;
        let mut results = Vec::new();
        let mut listen = |event: &Event| {
            if let Event::TrialFinished { result } = event {
                results.push(TrialResult::clone(result));
            }
        };
        let finished = run.execute(&Stopper::default(), &mut listen).await?;
        Ok(Ran { finished, results })
    }
}

impl Ran {
    /// What the only trial came to.
    pub(crate) fn only(&self) -> &Attempt {
        assert_eq!(self.results.len(), 1);
        &self.results[0].attempt
    }

    /// The lines of a file of the run.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.finished.folder.path.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
