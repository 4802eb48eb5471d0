//! One module per command; each turns its arguments into an exit code.

pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod score;
pub(crate) mod sim;
pub(crate) mod trace;

use crate::printer::Printer;
use bakeoff_core::ExitCode;
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
