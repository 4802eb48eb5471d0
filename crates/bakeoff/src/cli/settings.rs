//! Environment of the process: variables that Bakeoff reads, paths of its files, resource limits.

use crate::error::UsageError;
use bakeoff_eval::RunFile;
use bakeoff_suite::Suite;
use etcetera::BaseStrategy;
use std::path::PathBuf;

/// Variable with the cache folder, instead of the user's.
const CACHE_DIR: &str = "BAKEOFF_CACHE_DIR";

/// Variable with the folder in which programs work, instead of `/var/tmp`.
const WORK_DIR: &str = "BAKEOFF_WORK_DIR";

/// Returns the path of the response cache; `None` if the user has no cache folder.
pub(crate) fn cache_file() -> Option<PathBuf> {
    Some(cache_folder()?.join("responses.sqlite"))
}

/// Returns the path of the limit history; `None` if the user has no cache folder.
pub(crate) fn history_file() -> Option<PathBuf> {
    Some(cache_folder()?.join("limits.json"))
}

/// Returns the folder in which programs work; `None` for the default.
pub(crate) fn work_dir() -> Option<PathBuf> {
    folder_variable(WORK_DIR)
}

fn folder_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn cache_folder() -> Option<PathBuf> {
    folder_variable(CACHE_DIR).or_else(|| {
        etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir().join("bakeoff"))
    })
}

/// Returns the file for the summary of a GitHub Actions step.
pub(crate) fn step_summary() -> Option<PathBuf> {
    let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// Returns whether the process runs in GitHub Actions.
pub(crate) fn is_github_actions() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Returns an environment variable. API keys have no other source.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the command line, for the record of a run.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Returns the suite of a stored run.
pub(crate) fn stored_suite(run: &RunFile) -> Result<PathBuf, UsageError> {
    let path = PathBuf::from(&run.suite.path);
    if path.exists() {
        return Ok(path);
    }
    Err(UsageError::new(format!("the suite of the run is not at {} any more", path.display()))
        .hint("name its new location with `--suite PATH`"))
}

/// Rejects `--agent`, `--all` and `--model` for a suite that defines its own targets.
pub(crate) fn check_agents(
    suite: &Suite,
    agents: &[String],
    all: bool,
    model: &Option<String>,
) -> Result<(), UsageError> {
    let option = match model {
        _ if suite.project.is_some() => return Ok(()),
        _ if !agents.is_empty() => "--agent",
        _ if all => "--all",
        Some(_) => "--model",
        None => return Ok(()),
    };
    Err(UsageError::new(format!("{option} is for FastSkill projects; this suite defines targets"))
        .hint("in a suite, set `agent` and `model` under [[target]]"))
}

/// Raises the limit of open files to its maximum: every request in flight needs one.
pub(crate) fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // On failure, commands with few connections still work.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
