//! Warning about stored prompts and answers that other users of the machine can read.
//!
//! New files are private. Older ones may not be, and their modes are the user's choice, so they stay as they are.

use crate::printer::Printer;
use bakeoff_journal::is_open_to_others;
use std::path::Path;

/// Warns if other users have permissions on a file or folder. A file in a private folder is private.
pub(crate) fn warn_if_open_to_others(path: &Path, printer: &Printer) {
    let is_in_private_folder = path.is_file()
        && path.parent().is_some_and(|folder| folder.exists() && !is_open_to_others(folder));
    if is_open_to_others(path) && !is_in_private_folder {
        printer.warning_with_code(
            "OPEN_TO_OTHERS",
            &format!("other users of this machine have permissions on {0}; `chmod -R go= {0}` removes them", path.display()),
        );
    }
}
