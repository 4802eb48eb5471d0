//! `bakeoff init`: writes an example suite for the simulated provider.

use crate::arguments::InitArguments;
use crate::error::{CliError, UsageError};
use crate::outcome::Outcome;
use crate::printer::{Printer, chain};
use bakeoff_journal::write_output;

const FILES: [(&str, &str); 2] = [
    ("bakeoff.toml", include_str!("../templates/bakeoff.toml")),
    ("cases.jsonl", include_str!("../templates/cases.jsonl")),
];

pub(super) fn run(arguments: &InitArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let folder = &arguments.folder;
    if !arguments.force {
        for (name, _) in FILES {
            let path = folder.join(name);
            if path.exists() {
                let error = UsageError::new(format!("{} already exists", path.display()));
                return Err(error.hint("`--force` overwrites it").into());
            }
        }
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        CliError::internal(format!("cannot create {}: {error}", folder.display()))
    })?;
    for (name, contents) in FILES {
        write_output(&folder.join(name), |writer| writer.write_all(contents.as_bytes()))
            .map_err(|error| CliError::internal(chain(&error)))?;
        printer.data(format!("wrote {}", folder.join(name).display()));
    }
    let suite =
        if folder.as_os_str() == "." { String::new() } else { format!(" {}", folder.display()) };
    printer.message(format!("next: bakeoff run{suite}"));
    Ok(Outcome::passed())
}
