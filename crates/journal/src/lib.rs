//! What has already happened?
//!
//! An append-only file of JSON lines that survives `kill -9` at any moment, and files that appear
//! whole or not at all. What the lines mean is for others to know.

mod atomic;
mod reader;
mod writer;

pub use atomic::{write_atomic, write_atomic_with};
pub use reader::{Lines, read};
pub use writer::{Journal, cut_torn_line};

use std::path::PathBuf;

/// Something went wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A line in the middle is not what was written.
    #[error("{}:{line}: damaged line: {reason}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process writes it.
    #[error("{} is being written by another process", path.display())]
    Locked {
        /// Which file.
        path: PathBuf,
    },
    /// A value has no JSON form.
    #[error("cannot write an entry for {}", path.display())]
    Encode {
        /// For which file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
}
