//! Location of the folder of workspaces: what programs find in the folders above their own.

use std::path::{Path, PathBuf};

/// Code of the warning about files above the folder of workspaces.
pub(crate) const NOT_ISOLATED: &str = "EVAL_NOT_ISOLATED";

/// Files and folders that agents and tools search for in the folders above their own.
const SEARCHED_NAMES: [&str; 10] = [
    ".git",
    "CLAUDE.md",
    ".claude",
    "AGENTS.md",
    "GEMINI.md",
    ".cursor",
    ".mcp.json",
    "opencode.json",
    "bakeoff.toml",
    "skill-project.toml",
];

/// Returns whether a folder, which may not exist yet, lies within the folder of a suite.
pub(crate) fn is_within(folder: &Path, suite: &Path) -> bool {
    let suite = suite.parent().filter(|parent| *parent != Path::new(""));
    real_path(folder).starts_with(real_path(suite.unwrap_or(Path::new("."))))
}

/// Returns the files in the folders above a folder that change the behaviour of agents and tools.
pub(crate) fn visible_files(folder: &Path) -> Vec<PathBuf> {
    let folder = real_path(folder);
    let named = |above: &Path| SEARCHED_NAMES.map(|name| above.join(name));
    folder.ancestors().skip(1).flat_map(named).filter(|path| path.exists()).collect()
}

/// Returns the path without links; parts that do not exist are kept.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|existing| {
        let rest = absolute.strip_prefix(existing).ok()?;
        Some(existing.canonicalize().ok()?.join(rest))
    });
    // Joining an empty rest adds a separator.
    real.map_or(absolute, |path| path.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_missing_folders_do_not_hide_the_location() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        std::fs::create_dir_all(project.join("work")).unwrap();
        std::os::unix::fs::symlink(project.join("work"), dir.path().join("link")).unwrap();
        let suite = project.join("bakeoff.toml");
        for folder in ["project", "project/work", "project/new/deep", "link", "link/new"] {
            assert!(is_within(&dir.path().join(folder), &suite), "{folder}");
        }
        for folder in [".", "other", "project-2", "project/../new"] {
            assert!(!is_within(&dir.path().join(folder), &suite), "{folder}");
        }
    }

    #[test]
    fn files_above_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().canonicalize().unwrap();
        let outside = visible_files(&above.join("work"));
        std::fs::write(above.join("CLAUDE.md"), "").unwrap();
        std::fs::create_dir_all(above.join("work/AGENTS.md")).unwrap();
        let mut found = visible_files(&above.join("work"));
        found.retain(|path| !outside.contains(path));
        assert_eq!(found, [above.join("CLAUDE.md")]);
    }
}
