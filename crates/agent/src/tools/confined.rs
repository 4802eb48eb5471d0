//! Access to files within one folder, by paths that a model has written.
//!
//! Paths are checked component by component, and the targets of links must lie within the folder. A program that
//! runs at the same time could still replace a folder by a link between check and use; but an agent that can run
//! programs has access to all files anyway.

use crate::dialogue::ToolError;
use nix::fcntl::OFlag;
use serde::Deserialize;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of components of a path. Creating folders takes time that grows with the square of their depth.
const MAX_DEPTH: usize = 64;

/// Folder that confines relative paths.
#[derive(Debug, Clone)]
pub(super) struct ConfinedFolder {
    /// Canonical path.
    root: PathBuf,
}

/// Treatment of existing content when a file is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WriteMode {
    #[default]
    Overwrite,
    Append,
}

impl ConfinedFolder {
    pub(super) fn new(folder: &Path) -> io::Result<ConfinedFolder> {
        let root = folder.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(ConfinedFolder { root })
    }

    /// Returns the path relative to the folder, for messages.
    pub(super) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Returns the canonical path of an existing folder.
    pub(super) fn existing_folder(&self, path: &str) -> Result<PathBuf, ToolError> {
        let found = self.existing(path)?;
        if !found.is_dir() {
            return Err(ToolError::Failed(format!("`{path}` is no folder")));
        }
        Ok(found)
    }

    /// Opens an existing regular file. Opening a pipe or device could block or have side effects.
    pub(super) fn open(&self, path: &str) -> Result<File, ToolError> {
        let found = self.existing(path)?;
        check_path(path, &found)?;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(open_flags())
            .open(&found)
            .map_err(|error| path_error(path, &error))?;
        check_file(path, &file)?;
        Ok(file)
    }

    /// Opens a regular file for writing; creates it and its parent folders if they are missing.
    pub(super) fn create(&self, path: &str, mode: WriteMode) -> Result<File, ToolError> {
        let parts = path_parts(path)?;
        let Some((name, folders)) = parts.split_last() else {
            return Err(ToolError::Failed(format!("`{path}` is no path of a file")));
        };
        let mut folder = self.root.clone();
        for part in folders {
            folder = self.ensure_folder(path, &folder.join(part))?;
        }
        let mut target = folder.join(name);
        match target.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                // Opening a dangling link would create its target, which can lie outside of the folder.
                target = self.resolve(path, &target)?;
                check_path(path, &target)?;
            }
            Ok(_) => check_path(path, &target)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(path_error(path, &error)),
        }
        let file = OpenOptions::new()
            .write(true)
            .append(mode == WriteMode::Append)
            .create(true)
            .truncate(false)
            .custom_flags(open_flags())
            .open(&target)
            .map_err(|error| path_error(path, &error))?;
        // Truncate only after the check.
        check_file(path, &file)?;
        if mode == WriteMode::Overwrite {
            file.set_len(0).map_err(|error| path_error(path, &error))?;
        }
        Ok(file)
    }

    /// Returns a parent folder; creates it if it is missing.
    fn ensure_folder(&self, path: &str, folder: &Path) -> Result<PathBuf, ToolError> {
        match folder.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(folder.to_owned()),
            Ok(metadata) if metadata.is_symlink() => {
                let found = self.resolve(path, folder)?;
                if !found.is_dir() {
                    return Err(ToolError::Failed(format!(
                        "`{}` is no folder",
                        self.relative(folder)
                    )));
                }
                Ok(found)
            }
            Ok(_) => Err(ToolError::Failed(format!("`{}` is no folder", self.relative(folder)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(path_error(path, &error))
                }
                // A concurrent call may have created something else, so check again.
                _ => self.resolve(path, folder),
            },
            Err(error) => Err(path_error(path, &error)),
        }
    }

    /// Returns the canonical path of an existing file or folder.
    fn existing(&self, path: &str) -> Result<PathBuf, ToolError> {
        let relative: PathBuf = path_parts(path)?.iter().collect();
        self.resolve(path, &self.root.join(relative))
    }

    fn resolve(&self, path: &str, target: &Path) -> Result<PathBuf, ToolError> {
        let found = target.canonicalize().map_err(|error| path_error(path, &error))?;
        if !found.starts_with(&self.root) {
            return Err(ToolError::Failed(format!("`{path}` leads out of the workspace")));
        }
        Ok(found)
    }
}

/// Splits a relative path without `..` into its components.
fn path_parts(path: &str) -> Result<Vec<&std::ffi::OsStr>, ToolError> {
    let parts: Result<Vec<_>, _> = Path::new(path)
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(Ok(name)),
            Component::CurDir => None,
            Component::ParentDir => Some(Err(ToolError::Failed(format!(
                "`{path}` is refused: a path must not contain `..`; it is relative to the workspace"
            )))),
            Component::RootDir | Component::Prefix(_) => Some(Err(ToolError::Failed(format!(
                "`{path}` is refused: paths are relative to the workspace, such as `notes.txt`"
            )))),
        })
        .collect();
    match parts {
        Ok(parts) if parts.len() > MAX_DEPTH => Err(ToolError::Failed(format!(
            "the path has {} components; at most {MAX_DEPTH} are possible",
            parts.len()
        ))),
        parts => parts,
    }
}

/// Flags for files that may be replaced after the check: links are not followed, and pipes do not block.
fn open_flags() -> i32 {
    (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits()
}

/// Rejects anything but a regular file before it is opened, because opening can have side effects.
fn check_path(path: &str, target: &Path) -> Result<(), ToolError> {
    let metadata = target.symlink_metadata().map_err(|error| path_error(path, &error))?;
    check_metadata(path, &metadata)
}

fn check_file(path: &str, file: &File) -> Result<(), ToolError> {
    check_metadata(path, &file.metadata().map_err(|error| path_error(path, &error))?)
}

fn check_metadata(path: &str, metadata: &fs::Metadata) -> Result<(), ToolError> {
    if metadata.is_dir() {
        return Err(ToolError::Failed(format!("`{path}` is a folder")));
    }
    match metadata.is_file() {
        true => Ok(()),
        false => Err(ToolError::Failed(format!("`{path}` is no regular file"))),
    }
}

/// Converts an I/O error; the message does not reveal where the workspace is.
pub(super) fn path_error(path: &str, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => ToolError::Failed(format!("there is no `{path}`")),
        _ => ToolError::Failed(format!("`{path}`: {error}")),
    }
}
