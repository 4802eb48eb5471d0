//! Durable files: an append-only journal of JSON lines with checksums that survives `kill -9` at any moment,
//! atomic file writes, files for their owner only, and export files.
//!
//! The meaning of the records is up to the callers.

mod atomic;
mod checksum;
mod output;
mod private;
mod reader;
mod writer;

pub use atomic::{write_atomic, write_atomic_with};
pub use output::{STANDARD_OUTPUT, follow_links, write_output};
pub use private::{
    create_private_folder, create_private_folders, is_open_to_others, private_file_options,
};
pub use reader::{Records, read};
pub use writer::{Journal, cut_torn_line, is_open};

use std::path::PathBuf;

/// Failure of a file operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened, read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The failed operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A complete line is not a valid record.
    #[error("{}:{line}: damaged line: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem.
        reason: String,
    },
    /// Another process has locked the journal.
    #[error("{} is being written by another process", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A record cannot be represented in JSON.
    #[error("cannot encode a record for {}", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
}
