//! Files that appear whole or not at all.

use crate::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes names of files in the making unique within this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// [`write_atomic_with`], with all the contents at hand.
pub fn write_atomic(path: &Path, contents: &[u8]) -> Result<(), Error> {
    write_atomic_with(path, |writer| writer.write_all(contents))
}

/// Writes a file under another name and renames it into place.
///
/// A reader sees the old contents or the new ones. The data is not forced to disk: after a power
/// cut the file may be missing, and the journal still knows everything.
pub fn write_atomic_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Error> {
    let error = |action, source| Error::Io { action, path: path.to_owned(), source };
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{unique}.tmp", std::process::id()));
    let making = path.with_file_name(name);
    let written = File::create(&making).and_then(|file| {
        let mut buffered = BufWriter::new(file);
        write(&mut buffered)?;
        buffered.flush()
    });
    if let Err(source) = written {
        // Nobody needs half a file; if it cannot be removed either, the first error says more.
        let _ = fs::remove_file(&making);
        return Err(error("write", source));
    }
    fs::rename(&making, path).map_err(|source| error("write", source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomic(&folder.path().join("gone/summary.json"), b"x").unwrap_err();
        assert!(error.to_string().contains("summary.json"), "{error}");
    }
}
