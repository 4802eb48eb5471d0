//! `bakeoff init`: a suite that works at once.

use crate::arguments::InitArguments;
use crate::printer::Printer;
use bakeoff_core::ExitCode;
use bakeoff_journal::write_atomic;

const FILES: [(&str, &str); 2] = [
    ("bakeoff.toml", include_str!("../templates/bakeoff.toml")),
    ("cases.jsonl", include_str!("../templates/cases.jsonl")),
];

pub(crate) fn run(arguments: &InitArguments, printer: &Printer) -> ExitCode {
    let folder = &arguments.folder;
    if !arguments.force {
        for (name, _) in FILES {
            let path = folder.join(name);
            if path.exists() {
                let message = format!("{} exists already", path.display());
                printer.error(message, Some("`--force` replaces it"));
                return ExitCode::Usage;
            }
        }
    }
    if let Err(error) = std::fs::create_dir_all(folder) {
        printer.error(format!("cannot create {}: {error}", folder.display()), None);
        return ExitCode::Internal;
    }
    for (name, contents) in FILES {
        if let Err(error) = write_atomic(&folder.join(name), contents.as_bytes()) {
            printer.error(crate::printer::chain(&error), None);
            return ExitCode::Internal;
        }
        printer.data(format!("wrote {}", folder.join(name).display()));
    }
    let suite =
        if folder.as_os_str() == "." { String::new() } else { format!(" {}", folder.display()) };
    printer.talk(format!("next: bakeoff run{suite}"));
    ExitCode::Passed
}
