//! Paths that stay in a folder.
//!
//! Whatever a model writes is looked at part by part, and links are followed only to see where they
//! lead. A program that runs at the same time could still exchange a folder for a link in between;
//! but who can run programs needs no tool to read files.

use crate::dialogue::ToolError;
use nix::fcntl::OFlag;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// A folder that paths are relative to and do not leave.
#[derive(Debug, Clone)]
pub(super) struct Confined {
    /// Without links.
    top: PathBuf,
}

/// What is done with a file that is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Overwrite,
    Append,
}

impl Confined {
    pub(super) fn new(folder: &Path) -> io::Result<Confined> {
        let top = folder.canonicalize()?;
        if !top.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Confined { top })
    }

    /// The path from the top, for people.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.top).unwrap_or(path).display().to_string()
    }

    /// A folder that is there.
    pub(super) fn folder(&self, path: &str) -> Result<PathBuf, ToolError> {
        let found = self.existing(path)?;
        if !found.is_dir() {
            return Err(ToolError::Failed(format!("`{path}` is no folder")));
        }
        Ok(found)
    }

    /// A regular file that is there, opened. Pipes and devices would be waited for, or worse.
    pub(super) fn open(&self, path: &str) -> Result<File, ToolError> {
        let found = self.existing(path)?;
        look_at(path, &found)?;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags())
            .open(&found)
            .map_err(|error| wrong(path, &error))?;
        is_regular(path, &file)?;
        Ok(file)
    }

    /// A regular file to write to, opened; it and the folders on the way are made where they are
    /// missing.
    pub(super) fn create(&self, path: &str, how: Writing) -> Result<File, ToolError> {
        let parts = parts(path)?;
        let Some((name, folders)) = parts.split_last() else {
            return Err(ToolError::Failed(format!("`{path}` is no path of a file")));
        };
        let mut folder = self.top.clone();
        for part in folders {
            folder = self.step(path, &folder.join(part))?;
        }
        let mut target = folder.join(name);
        match target.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                // A link to nothing would have the file made where it leads.
                target = self.inner(path, &target)?;
                look_at(path, &target)?;
            }
            Ok(_) => look_at(path, &target)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(wrong(path, &error)),
        }
        let file = OpenOptions::new()
            .write(true)
            .append(how == Writing::Append)
            .create(true)
            .truncate(false)
            .custom_flags(flags())
            .open(&target)
            .map_err(|error| wrong(path, &error))?;
        // Only what is known to be a file is emptied.
        is_regular(path, &file)?;
        if how == Writing::Overwrite {
            file.set_len(0).map_err(|error| wrong(path, &error))?;
        }
        Ok(file)
    }

    /// A folder on the way, made when it is missing.
    fn step(&self, path: &str, folder: &Path) -> Result<PathBuf, ToolError> {
        match folder.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(folder.to_owned()),
            Ok(metadata) if metadata.is_symlink() => {
                let found = self.inner(path, folder)?;
                if !found.is_dir() {
                    return Err(ToolError::Failed(format!(
                        "`{}` is no folder",
                        self.shown(folder)
                    )));
                }
                Ok(found)
            }
            Ok(_) => Err(ToolError::Failed(format!("`{}` is no folder", self.shown(folder)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    Err(wrong(path, &error))
                }
                // Another call may have made it meanwhile; it is looked at once more.
                _ => self.inner(path, folder),
            },
            Err(error) => Err(wrong(path, &error)),
        }
    }

    /// What is there, without links.
    fn existing(&self, path: &str) -> Result<PathBuf, ToolError> {
        let inner: PathBuf = parts(path)?.iter().collect();
        self.inner(path, &self.top.join(inner))
    }

    fn inner(&self, path: &str, place: &Path) -> Result<PathBuf, ToolError> {
        let found = place.canonicalize().map_err(|error| wrong(path, &error))?;
        if !found.starts_with(&self.top) {
            return Err(ToolError::Failed(format!("`{path}` leads out of the workspace")));
        }
        Ok(found)
    }
}

/// The parts of a path that does not say itself that it leads out.
fn parts(path: &str) -> Result<Vec<&std::ffi::OsStr>, ToolError> {
    Path::new(path)
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
        .collect()
}

/// Whatever is put in the file's place meanwhile is neither followed nor waited for.
fn flags() -> i32 {
    (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits()
}

/// Refuses what is no regular file, before it is opened: opening alone may do something.
fn look_at(path: &str, place: &Path) -> Result<(), ToolError> {
    let metadata = place.symlink_metadata().map_err(|error| wrong(path, &error))?;
    regular(path, &metadata)
}

fn is_regular(path: &str, file: &File) -> Result<(), ToolError> {
    regular(path, &file.metadata().map_err(|error| wrong(path, &error))?)
}

fn regular(path: &str, metadata: &fs::Metadata) -> Result<(), ToolError> {
    if metadata.is_dir() {
        return Err(ToolError::Failed(format!("`{path}` is a folder")));
    }
    match metadata.is_file() {
        true => Ok(()),
        false => Err(ToolError::Failed(format!("`{path}` is no regular file"))),
    }
}

/// What went wrong with a path; where the workspace lies is nobody's business.
pub(super) fn wrong(path: &str, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => ToolError::Failed(format!("there is no `{path}`")),
        _ => ToolError::Failed(format!("`{path}`: {error}")),
    }
}
