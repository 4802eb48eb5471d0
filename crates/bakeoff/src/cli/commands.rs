//! One module per command; each turns its arguments into an exit code.

pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod probe;
pub(crate) mod race;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod sim;
pub(crate) mod trace;

use crate::printer::{Printer, chain};
use bakeoff_core::ExitCode;
use bakeoff_eval::Error;
use std::future::Future;

/// Runs asynchronous work to its end.
fn block_on<T>(printer: &Printer, work: impl Future<Output = T>) -> Result<T, ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => Ok(runtime.block_on(work)),
        Err(error) => {
            printer.error(format!("cannot start: {error}"), None);
            Err(ExitCode::Internal)
        }
    }
}

/// Says what went wrong with a run; gives the exit code.
fn failed(error: &Error, printer: &Printer) -> ExitCode {
    match error {
        Error::Usage { code, message, hint } => {
            let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
            printer.error(format!("{message}{code}"), hint.as_deref());
            ExitCode::Usage
        }
        error @ Error::Create { .. } => {
            printer.error(chain(error), Some("`--out` names the folder of all runs"));
            ExitCode::Internal
        }
        error => {
            printer.error(chain(error), None);
            ExitCode::Internal
        }
    }
}
