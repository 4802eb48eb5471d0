//! A folder of its own for one trial: a copy of what the case starts from, and afterwards what the
//! program left in it.

mod copy;
mod left;

pub use left::Left;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder for one trial; removed when dropped, unless it is kept.
#[derive(Debug)]
pub struct Workspace {
    folder: PathBuf,
    /// Where the program runs: the folder, or one within it.
    start: PathBuf,
    /// The same without links, as it was before the program ran.
    top: PathBuf,
    /// What was copied, as far as the program starts there.
    source: Option<PathBuf>,
    copied: SystemTime,
    is_kept: bool,
}

/// What a workspace is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Template<'a> {
    /// The folder that is copied; an empty one when absent.
    pub source: Option<&'a Path>,
    /// Where in it the program runs; at its top when absent.
    pub start: Option<&'a Path>,
    /// Folders that are not copied, wherever they lie in the source.
    pub without: &'a [&'a Path],
}

impl Workspace {
    /// Makes the folder, which must not exist, with a copy of the template. Blocks.
    ///
    /// Links stay links and are not followed; pipes, sockets and devices are left out. File systems
    /// that can share blocks between files do so.
    ///
    /// # Errors
    ///
    /// Something cannot be read or written, or the program would not start within the copy; nothing
    /// is left then.
    pub fn create(folder: &Path, template: Template<'_>) -> io::Result<Workspace> {
        let within =
            |parent: &Path| template.start.map_or(parent.to_owned(), |start| parent.join(start));
        let mut workspace = Workspace {
            folder: folder.to_owned(),
            start: within(folder),
            top: PathBuf::new(),
            source: template.source.map(within),
            copied: SystemTime::now(),
            is_kept: false,
        };
        match template.source {
            Some(source) => copy::copy(source, folder, template.without)?,
            None => fs::create_dir(folder)?,
        }
        if !workspace.start.is_dir() {
            let message = format!(
                "there is no folder {} in it",
                template.start.unwrap_or(Path::new("")).display()
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        workspace.top = workspace.start.canonicalize()?;
        if !workspace.top.starts_with(folder.canonicalize()?) {
            let message = format!(
                "{} leads out of the workspace",
                template.start.unwrap_or(Path::new("")).display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(workspace)
    }

    /// Where the program runs.
    pub fn start(&self) -> &Path {
        &self.start
    }

    /// What is there now, below the folder where the program ran; nothing when the program has put
    /// something else in its place. Blocks.
    pub fn left(&self) -> Left {
        if self.start.canonicalize().ok().as_ref() != Some(&self.top) {
            return Left::default();
        }
        left::look(&self.top, self.source.as_deref(), self.copied)
    }

    /// Moves it to a place where it stays, in place of what is there. Blocks.
    ///
    /// # Errors
    ///
    /// It cannot be moved; it is removed then.
    pub fn keep(mut self, place: &Path) -> io::Result<()> {
        remove(place)?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::rename(&self.folder, place)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed now is removed with the folder of all of them.
            let _ = remove(&self.folder);
        }
    }
}

/// Removes a folder with all that is in it, even where its owner may not write; that there is none
/// is fine. Blocks.
///
/// # Errors
///
/// Something is still there.
pub fn remove(folder: &Path) -> io::Result<()> {
    let removed = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    removed(fs::remove_dir_all(folder)).or_else(|_| {
        unlock(folder);
        removed(fs::remove_dir_all(folder))
    })
}

/// Lets the owner change every folder: some package managers make theirs read-only.
fn unlock(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}
