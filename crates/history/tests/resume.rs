//! Resuming runs through the public API.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_eval::{FinishedRun, Run, RunConfig, Stopper};
use bakeoff_history::{Error, resume_state};
use bakeoff_suite::Suite;
use std::path::Path;

/// A chain of two roles with different models.
const SUITE: &str = r#"
[roles]
planner = "small"
solver = "large"
[models]
small = { provider = "sim", model = "planning" }
large = { provider = "sim", model = "solving" }
[[target]]
name = "pipeline"
chain = [
    { role = "planner", prompt = "Plan: {{ question }}" },
    { role = "solver", prompt = "{{ planner }}, then {{ question }}" },
]
[cases]
inline = [{ id = "one", question = "2+2" }]
[[check]]
kind = "contains"
value = "{{ question }}"
required = false
"#;

/// Writes the suite and runs it, or resumes the run in `resume`.
async fn run(folder: &Path, suite: &str, resume: Option<&Path>) -> Result<FinishedRun, Error> {
    let path = folder.join("bakeoff.toml");
    std::fs::write(&path, suite).unwrap();
    let suite = Suite::load(&path, &|_| None).unwrap();
    let config = RunConfig::new(folder.join("runs"));
    let mut run = Run::new(suite, config)?;
    if let Some(path) = resume {
        let state = resume_state(&run, path, false)?;
        run = run.resume_from(state);
    }
    Ok(run.execute(&Stopper::default(), &mut |_| {}).await?)
}

#[tokio::test(start_paused = true)]
async fn resume_requires_the_same_roles() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path(), SUITE, None).await.unwrap().folder.path;
    let resume = async |suite: &str| run(folder.path(), suite, Some(&first)).await;
    assert!(resume(SUITE).await.is_ok());
    let changed = SUITE.replacen("solver = \"large\"", "solver = \"small\"", 1);
    let error = resume(&changed).await.err().unwrap().to_string();
    assert!(error.ends_with("role `solver` has changed"), "{error}");
    // A role that no target uses may be added.
    let added = SUITE.replacen("[roles]", "[roles]\ncritic = \"small\"", 1);
    assert!(resume(&added).await.is_ok());
}
