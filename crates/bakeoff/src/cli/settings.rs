//! What the environment decides: every variable that Bakeoff itself reads, and where things are.

use bakeoff_suite::Suite;
use etcetera::BaseStrategy;
use std::path::PathBuf;

/// The folder of the cache, instead of the user's cache folder.
const CACHE_DIR: &str = "BAKEOFF_CACHE_DIR";

/// Where answers are cached; `None` when this user has no folder for such things.
pub(crate) fn cache_file() -> Option<PathBuf> {
    Some(cache_folder()?.join("responses.sqlite"))
}

/// Where what runs have learned about limits is kept.
pub(crate) fn memory_file() -> Option<PathBuf> {
    Some(cache_folder()?.join("limits.json"))
}

fn cache_folder() -> Option<PathBuf> {
    let own = std::env::var_os(CACHE_DIR).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    own.or_else(|| {
        etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir().join("bakeoff"))
    })
}

/// Where a step of GitHub Actions wants its summary.
pub(crate) fn step_summary() -> Option<PathBuf> {
    let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// Whether GitHub Actions reads what is written.
pub(crate) fn is_github_actions() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Keys come from the environment and from nowhere else.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What to write instead of `--agent` and `--model`.
pub(crate) const AGENTS_HINT: &str =
    "they are for FastSkill projects; in a suite, write `agent` and `model` under [[target]]";

/// That agents were named for a suite that has targets of its own.
pub(crate) fn refuse_agents(
    suite: &Suite,
    agents: &[String],
    model: &Option<String>,
) -> Option<&'static str> {
    match (suite.project.is_some(), agents.is_empty(), model) {
        (true, _, _) | (false, true, None) => None,
        (false, false, _) => Some("--agent does not go with a suite that has targets"),
        (false, true, Some(_)) => Some("--model does not go with a suite that has targets"),
    }
}

/// Allows as many open files as the system does at most: every request in flight is one.
pub(crate) fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Without it, runs with few connections are as good as before.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
