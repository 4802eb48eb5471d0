//! `bakeoff schema`.

use crate::printer::Printer;
use bakeoff_core::ExitCode;

pub(crate) fn run(printer: &Printer) -> ExitCode {
    match serde_json::to_string_pretty(&bakeoff_suite::schema()) {
        Ok(text) => {
            printer.data(text);
            ExitCode::Passed
        }
        Err(error) => {
            printer.error(error.to_string(), None);
            ExitCode::Internal
        }
    }
}
