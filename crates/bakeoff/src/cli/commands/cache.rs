//! `bakeoff cache`.

use crate::arguments::{CacheAction, CacheArguments};
use crate::printer::{Printer, chain};
use crate::settings;
use bakeoff_core::ExitCode;
use bakeoff_llm::{Cache, CacheError};
use std::path::Path;

pub(crate) fn run(arguments: &CacheArguments, printer: &Printer) -> ExitCode {
    let Some(path) = settings::cache_file() else {
        printer.error("there is no folder for caches", Some("set BAKEOFF_CACHE_DIR"));
        return ExitCode::Internal;
    };
    match act(arguments.action, &path, printer) {
        Ok(()) => ExitCode::Passed,
        Err(error) => {
            printer.error(chain(&error), None);
            ExitCode::Internal
        }
    }
}

fn act(action: CacheAction, path: &Path, printer: &Printer) -> Result<(), CacheError> {
    match action {
        CacheAction::Stats => {
            let stats = Cache::stats(path)?;
            printer.data(format!("{}", path.display()));
            printer.data(format!(
                "{} answers of {} runs, {:.1} MB",
                stats.entries,
                stats.scopes,
                stats.bytes as f64 / 1e6
            ));
        }
        CacheAction::Clear => {
            let removed = Cache::clear(path)?;
            printer.data(format!("forgot {removed} answers"));
        }
    }
    Ok(())
}
