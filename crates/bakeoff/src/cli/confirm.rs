//! Confirmation of costs and deletions on the terminal.

use crate::error::UsageError;
use crate::printer::Printer;
use std::io::{BufRead, IsTerminal};

/// Asks for confirmation. Fails unless the user confirms.
pub(crate) fn confirm(printer: &Printer) -> Result<(), UsageError> {
    if !std::io::stdin().is_terminal() {
        return Err(UsageError::new("confirmation needed, but stdin is not a terminal")
            .hint("`--yes` skips the confirmation"));
    }
    printer.notice("continue? [y/N]");
    let mut reply = String::new();
    let read = std::io::stdin().lock().read_line(&mut reply);
    let is_yes = matches!(reply.trim().to_lowercase().as_str(), "y" | "yes");
    if read.is_ok() && is_yes { Ok(()) } else { Err(UsageError::new("not confirmed")) }
}
