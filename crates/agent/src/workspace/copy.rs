//! Copying of template folders.

use crate::process::is_exhaustion;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Copies a folder to one that does not exist.
pub(super) fn copy(source: &Path, target: &Path, excluded: &[&Path]) -> io::Result<()> {
    let source = source.canonicalize()?;
    // Folders are compared by device and inode, because one folder can have several paths.
    let file_id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let excluded: Vec<(u64, u64)> =
        excluded.iter().filter_map(|path| Some(file_id(path.metadata().ok()?))).collect();
    fs::create_dir(target)?;
    let mut folders: Vec<(PathBuf, PathBuf)> = vec![(source, target.to_owned())];
    let mut created = Vec::new();
    while let Some((from, to)) = folders.pop() {
        for entry in fs::read_dir(&from).map_err(|error| with_path(error, &from))? {
            let entry = entry.map_err(|error| with_path(error, &from))?;
            let (path, copied) = (entry.path(), to.join(entry.file_name()));
            let metadata = entry.metadata().map_err(|error| with_path(error, &path))?;
            let kind = metadata.file_type();
            if kind.is_dir() {
                if !excluded.contains(&file_id(metadata)) {
                    fs::create_dir(&copied)?;
                    folders.push((path, copied));
                }
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(|error| with_path(error, &path))?;
                std::os::unix::fs::symlink(target, &copied)?;
            } else if kind.is_file() {
                copy_file(&path, &copied, &metadata).map_err(|error| with_path(error, &path))?;
            }
        }
        created.push((from, to));
    }
    for (from, to) in created.into_iter().rev() {
        let mode = from.metadata().map_or(0o755, |metadata| metadata.permissions().mode());
        // The program must be able to write, also if the source is read-only.
        fs::set_permissions(&to, fs::Permissions::from_mode(mode & 0o777 | 0o700))?;
    }
    Ok(())
}

/// Copies a file; the standard library shares blocks where the file system supports it.
fn copy_file(from: &Path, to: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    fs::copy(from, to)?;
    // The modification time shows later whether the file was changed; without it, contents are compared.
    if let (Ok(file), Ok(time)) = (File::open(to), metadata.modified()) {
        let _ = file.set_modified(time);
    }
    Ok(())
}

fn with_path(error: io::Error, path: &Path) -> io::Error {
    // Callers recognise exhaustion by the OS error code, which a new error would not have.
    if is_exhaustion(&error) {
        return error;
    }
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
