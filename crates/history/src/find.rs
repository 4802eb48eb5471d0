//! Finding a run on disk.

use crate::Error;
use crate::list::run_folders;
use bakeoff_eval::{JOURNAL_FILE, RUN_FILE};
use bakeoff_suite::suggest;
use std::path::{Path, PathBuf};

/// Runs compared with a prefix that matches none, for a suggestion.
const MAX_SUGGESTIONS: usize = 10;

/// Matching runs that an error about an ambiguous prefix names.
const MAX_EXAMPLES: usize = 5;

/// Returns the folder of a run, given as a path, a unique prefix of a folder in `parent`, or `last`.
///
/// # Errors
///
/// When no run or more than one run matches.
pub fn find_run(parent: &Path, run: &str) -> Result<PathBuf, Error> {
    let usage = |message: String, hint| Err(Error::usage(message, hint));
    let path = Path::new(run);
    if is_run(path) {
        return Ok(path.to_owned());
    }
    let mut runs = run_folders(parent)?;
    if runs.is_empty() {
        let hint = "start one with `bakeoff run` or `bakeoff select`, or name the folder of all runs with `--out`";
        return usage(format!("there is no run in {}", parent.display()), Some(hint.to_owned()));
    }
    if run == "last" {
        return Ok(runs.swap_remove(0));
    }
    let name = |path: &PathBuf| -> String {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    if let Some(exact) = runs.iter().position(|path| name(path) == run) {
        return Ok(runs.swap_remove(exact));
    }
    let matches: Vec<&PathBuf> = runs.iter().filter(|path| name(path).starts_with(run)).collect();
    match matches.as_slice() {
        [path] => Ok((*path).clone()),
        [] => {
            let names: Vec<String> = runs.iter().take(MAX_SUGGESTIONS).map(name).collect();
            let hint = suggest(run, names.iter().map(String::as_str));
            usage(format!("no run in {} starts with `{run}`", parent.display()), hint)
        }
        several => {
            let names: Vec<String> =
                several.iter().take(MAX_EXAMPLES).map(|path| name(path)).collect();
            let hint = format!("use a longer prefix of, for example, {}", names.join(", "));
            usage(format!("{} runs start with `{run}`", several.len()), Some(hint))
        }
    }
}

/// Whether a folder holds a run. One of its files may have been lost.
pub(crate) fn is_run(path: &Path) -> bool {
    [RUN_FILE, JOURNAL_FILE].iter().any(|name| path.join(name).is_file())
}
