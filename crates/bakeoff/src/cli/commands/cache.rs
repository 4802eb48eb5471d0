//! `bakeoff cache`: inspects or clears the response cache.

use crate::arguments::{CacheAction, CacheArguments};
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::{Printer, count};
use crate::settings;
use bakeoff_llm::Cache;

pub(super) fn run(arguments: &CacheArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let path = settings::cache_file()
        .ok_or_else(|| CliError::internal("no cache folder").hint("set BAKEOFF_CACHE_DIR"))?;
    match arguments.action {
        CacheAction::Stats => {
            let stats = Cache::stats(&path)?;
            printer.data(format!("{}", path.display()));
            printer.data(format!(
                "{} of {}, {:.1} MB",
                count(stats.entries, "response"),
                count(stats.scopes, "run"),
                stats.bytes as f64 / 1e6
            ));
        }
        CacheAction::Clear => {
            let removed = Cache::clear(&path)?;
            printer.data(format!("deleted {}", count(removed, "response")));
        }
    }
    Ok(Outcome::passed())
}
