//! Workspaces: a folder per trial with a copy of a template, and the files in it after the trial.

mod copy;
mod files;

pub use files::WorkspaceFiles;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the folder with the files, within the private folder of a workspace.
const FILES: &str = "workspace";

/// Folder of one trial; removed when dropped, unless it is kept.
///
/// The files are in a folder of their own within a private folder, so that a program that looks beside or above
/// its working directory finds nothing.
#[derive(Debug)]
pub struct Workspace {
    /// Private folder.
    enclosure: PathBuf,
    /// Folder with the files.
    folder: PathBuf,
    /// Working directory of the program: the folder, or one within it.
    start: PathBuf,
    /// Canonical path of `start` before the program ran.
    canonical_start: PathBuf,
    /// Source of the files in `start`.
    source: Option<PathBuf>,
    copied_at: SystemTime,
}

/// Template of a workspace.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct WorkspaceTemplate<'a> {
    /// Folder to copy; `None` for an empty workspace.
    pub source: Option<&'a Path>,
    /// Working directory of the program within the folder; `None` for the folder itself.
    pub start: Option<&'a Path>,
    /// Folders that are not copied, at any depth of the source.
    pub excluded: &'a [&'a Path],
}

impl<'a> WorkspaceTemplate<'a> {
    /// Sets the folder to copy.
    #[must_use]
    pub fn source(mut self, source: &'a Path) -> WorkspaceTemplate<'a> {
        self.source = Some(source);
        self
    }

    /// Sets the working directory of the program within the folder.
    #[must_use]
    pub fn start(mut self, start: &'a Path) -> WorkspaceTemplate<'a> {
        self.start = Some(start);
        self
    }

    /// Sets folders that are not copied.
    #[must_use]
    pub fn excluded(mut self, excluded: &'a [&'a Path]) -> WorkspaceTemplate<'a> {
        self.excluded = excluded;
        self
    }
}

impl Workspace {
    /// Creates the private folder `enclosure`, which must not exist, with a copy of the template in it. Blocks.
    ///
    /// Links are copied as links; pipes, sockets and devices are skipped. Blocks are shared on file systems that
    /// support it.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written, or the working directory is missing or outside of the copy; the folder
    /// is removed.
    pub fn create(enclosure: &Path, template: WorkspaceTemplate<'_>) -> io::Result<Workspace> {
        let folder = enclosure.join(FILES);
        let within =
            |parent: &Path| template.start.map_or(parent.to_owned(), |start| parent.join(start));
        let mut workspace = Workspace {
            enclosure: enclosure.to_owned(),
            start: within(&folder),
            canonical_start: PathBuf::new(),
            source: template.source.map(within),
            copied_at: SystemTime::now(),
            folder,
        };
        fs::DirBuilder::new().mode(0o700).create(enclosure)?;
        match template.source {
            Some(source) => copy::copy(source, &workspace.folder, template.excluded)?,
            None => fs::create_dir(&workspace.folder)?,
        }
        if !workspace.start.is_dir() {
            let message = format!(
                "there is no folder {} in it",
                template.start.unwrap_or(Path::new("")).display()
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        workspace.canonical_start = workspace.start.canonicalize()?;
        if !workspace.canonical_start.starts_with(workspace.folder.canonicalize()?) {
            let message = format!(
                "{} leads out of the workspace",
                template.start.unwrap_or(Path::new("")).display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(workspace)
    }

    /// Returns the working directory of the program.
    pub fn start(&self) -> &Path {
        &self.start
    }

    /// Returns the current files below the working directory; none if the program has replaced the directory.
    /// Blocks.
    pub fn files(&self) -> WorkspaceFiles {
        if self.start.canonicalize().ok().as_ref() != Some(&self.canonical_start) {
            return WorkspaceFiles::default();
        }
        files::collect(&self.canonical_start, self.source.as_deref(), self.copied_at)
    }

    /// Moves the files to `target`, also on another file system, and replaces what is there. Blocks.
    ///
    /// # Errors
    ///
    /// The files cannot be moved; they are removed.
    pub fn keep(self, target: &Path) -> io::Result<()> {
        remove_folder(target)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::rename(&self.folder, target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                make_accessible(&self.folder);
                // The files are copied; the originals are removed when the workspace is dropped.
                copy::copy(&self.folder, target, &[]).inspect_err(|_| {
                    // The first error is the more useful one.
                    let _ = remove_folder(target);
                })
            }
            other => other,
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // On failure, it is removed later with the folder of all workspaces.
        let _ = remove_folder(&self.enclosure);
    }
}

/// Removes a folder and its contents, including read-only folders; does nothing if it does not exist. Blocks.
///
/// # Errors
///
/// The folder could not be removed completely.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    let ignore_missing = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    ignore_missing(fs::remove_dir_all(folder)).or_else(|_| {
        make_accessible(folder);
        ignore_missing(fs::remove_dir_all(folder))
    })
}

/// Makes all folders writable and all files readable for the owner: some package managers make their folders
/// read-only.
fn make_accessible(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let mode = metadata.permissions().mode();
        if metadata.is_dir() {
            make_accessible(&entry.path());
        } else if metadata.is_file() && mode & 0o400 == 0 {
            let _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode | 0o400));
        }
    }
}
