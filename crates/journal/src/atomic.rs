//! Atomic file writes.

use crate::Error;
use crate::private::private_file_options;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the names of temporary files unique within this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Writes a file atomically; see [`write_atomic_with`].
pub fn write_atomic(path: &Path, contents: &[u8]) -> Result<(), Error> {
    write_atomic_with(path, |writer| writer.write_all(contents))
}

/// Writes a file atomically, for its owner only: under a temporary name, which is then renamed.
///
/// A reader sees either the old or the new contents. The data is not synced to disk: after a power failure
/// the file may be missing, but its contents can be restored from the journal.
pub fn write_atomic_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Error> {
    let write_buffered = |file| {
        let mut buffered = BufWriter::new(file);
        write(&mut buffered)?;
        buffered.flush()
    };
    replace(path, private_file_options(), write_buffered).map_err(|source| Error::Io {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// Returns a path next to `path` that no other call uses.
fn temporary_path(path: &Path) -> PathBuf {
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{unique}.tmp", std::process::id()));
    path.with_file_name(name)
}

/// Writes a new file and renames it to `path`. `options` has the mode of the new file.
pub(crate) fn replace(
    path: &Path,
    mut options: OpenOptions,
    write: impl FnOnce(File) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let temporary = temporary_path(path);
    let opened = options.write(true).create_new(true).open(&temporary);
    let written = opened.and_then(write).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // If the partial file cannot be removed either, the first error is the more useful one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn missing_folder_is_reported_with_the_file_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomic(&folder.path().join("gone/summary.json"), b"x").unwrap_err();
        assert!(error.to_string().contains("summary.json"), "{error}");
    }
}
