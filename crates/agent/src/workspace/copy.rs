//! Copying a folder.

use crate::process::is_exhaustion;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Copies a folder to one that does not exist yet.
pub(super) fn copy(source: &Path, target: &Path, without: &[&Path]) -> io::Result<()> {
    let source = source.canonicalize()?;
    // Told apart by their numbers: there are many ways to write a path.
    let number = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let without: Vec<(u64, u64)> =
        without.iter().filter_map(|path| Some(number(path.metadata().ok()?))).collect();
    fs::create_dir(target)?;
    let mut folders: Vec<(PathBuf, PathBuf)> = vec![(source, target.to_owned())];
    let mut made = Vec::new();
    while let Some((from, to)) = folders.pop() {
        for entry in fs::read_dir(&from).map_err(|error| about(error, &from))? {
            let entry = entry.map_err(|error| about(error, &from))?;
            let (path, place) = (entry.path(), to.join(entry.file_name()));
            let metadata = entry.metadata().map_err(|error| about(error, &path))?;
            let kind = metadata.file_type();
            if kind.is_dir() {
                if !without.contains(&number(metadata)) {
                    fs::create_dir(&place)?;
                    folders.push((path, place));
                }
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(|error| about(error, &path))?;
                std::os::unix::fs::symlink(target, &place)?;
            } else if kind.is_file() {
                copy_file(&path, &place, &metadata).map_err(|error| about(error, &path))?;
            }
        }
        made.push((from, to));
    }
    for (from, to) in made.into_iter().rev() {
        let mode = from.metadata().map_or(0o755, |metadata| metadata.permissions().mode());
        // Whoever works there must be able to.
        fs::set_permissions(&to, fs::Permissions::from_mode(mode & 0o777 | 0o700))?;
    }
    Ok(())
}

/// The standard library lets the file system share the blocks where it can.
fn copy_file(from: &Path, to: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    fs::copy(from, to)?;
    // By its time it is seen later whether the file was written to; without it, by its contents.
    if let (Ok(file), Ok(time)) = (File::open(to), metadata.modified()) {
        let _ = file.set_modified(time);
    }
    Ok(())
}

fn about(error: io::Error, path: &Path) -> io::Error {
    // That the machine is at its limit must be seen by the number, and is not about the file.
    if is_exhaustion(&error) {
        return error;
    }
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
