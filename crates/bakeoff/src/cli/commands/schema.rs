//! `bakeoff schema`: prints the JSON Schema of the suite file.

use crate::error::CliError;
use crate::outcome::Outcome;
use crate::printer::Printer;

pub(super) fn run(printer: &Printer) -> Result<Outcome, CliError> {
    let schema = serde_json::to_string_pretty(&bakeoff_suite::schema())
        .map_err(|error| CliError::internal(error.to_string()))?;
    printer.data(schema);
    Ok(Outcome::passed())
}
