//! The folder in which the programs of a run work, outside of the project.

use bakeoff_agent::remove_folder;
use bakeoff_core::{TargetName, TrialKey};
use bakeoff_suite::{Suite, TargetKind};
use nix::unistd::Uid;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Default parent of work folders. Unlike `/tmp`, it is rarely in memory.
const DEFAULT_PARENT: &str = "/var/tmp";

/// Beginning of the names of work folders.
const PREFIX: &str = "bakeoff-";

/// Random letters at the end of the names.
const RANDOM_LETTERS: usize = 16;

/// Mode of a work folder: its user can enter it, but a program that searches it cannot list the other trials.
const MODE: u32 = 0o300;

/// Age from which a folder that no process uses is removed.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Folder in which the programs of a run work. It is outside of the project, so that a program that searches
/// the folders above its own finds no file of the user.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    /// The folder, locked while this process uses it; absent before it is created.
    lock: Mutex<Option<File>>,
}

impl WorkFolder {
    /// Chooses a folder in `parent`, without creating it.
    pub(crate) fn new(parent: Option<&Path>) -> WorkFolder {
        let letters = || char::from(rand::random_range(b'a'..=b'z'));
        let random: String = (0..RANDOM_LETTERS).map(|_| letters()).collect();
        WorkFolder::at(absolute_parent(parent).join(format!("{PREFIX}{random}")))
    }

    /// Removes the folder of a process that was killed, and chooses the same path again if possible: answers of
    /// models with tools can be reused only if the paths in the outputs of their tools are the same.
    pub(crate) fn replace(left: Option<&Path>, parent: Option<&Path>) -> WorkFolder {
        match left {
            Some(path) if remove_left(path) && path.parent() == Some(&absolute_parent(parent)) => {
                WorkFolder::at(path.to_owned())
            }
            _ => WorkFolder::new(parent),
        }
    }

    fn at(path: PathBuf) -> WorkFolder {
        WorkFolder { path, lock: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder, unless it exists already, and removes abandoned ones next to it.
    pub(crate) fn create(&self) -> io::Result<()> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Ok(());
        }
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent)?;
            remove_abandoned(parent);
        }
        DirBuilder::new().mode(0o700).create(&self.path)?;
        let folder = File::open(&self.path)?;
        // Without locks, the folder is never removed by another process.
        let _ = folder.try_lock();
        fs::set_permissions(&self.path, Permissions::from_mode(MODE))?;
        *lock = Some(folder);
        Ok(())
    }

    /// Removes the folder and what is in it, if this process has created it.
    pub(crate) fn remove(&self) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        if lock.is_some() {
            // What cannot be removed now is removed as abandoned later.
            let _ = remove_folder(&self.path);
        }
    }

    /// Returns the private folder of a trial. It is the same in each execution of the trial.
    pub(crate) fn trial(&self, key: &TrialKey) -> PathBuf {
        self.private(&format!("{}\0{}\0{}", key.target, key.case, key.trial))
    }

    /// Returns the private folder of a target's persistent workers.
    pub(crate) fn worker(&self, target: &TargetName) -> PathBuf {
        self.private(target.as_str())
    }

    /// Returns a folder whose name is as random as that of this folder.
    fn private(&self, user: &str) -> PathBuf {
        let seed = self.path.file_name().unwrap_or_default().to_string_lossy();
        let hash = blake3::hash(format!("{seed}\0{user}").as_bytes());
        self.path.join(&hash.to_hex()[..16])
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns whether trials of a suite work in folders.
pub(crate) fn needs_folders(suite: &Suite) -> bool {
    suite.targets.iter().any(|target| match &target.kind {
        TargetKind::Program(_) => true,
        TargetKind::Model(model) => model.agent.is_some(),
        TargetKind::Chain(_) | TargetKind::Service(_) => false,
    })
}

fn absolute_parent(parent: Option<&Path>) -> PathBuf {
    let parent = parent.unwrap_or(Path::new(DEFAULT_PARENT));
    std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
}

/// Removes a work folder that no process uses. Returns whether the path is free.
fn remove_left(path: &Path) -> bool {
    match path.symlink_metadata() {
        Err(error) => error.kind() == io::ErrorKind::NotFound && has_our_name(path),
        Ok(metadata) => is_ours(path, &metadata) && lock_left(path) && remove_folder(path).is_ok(),
    }
}

/// Removes the folders of killed runs that were never resumed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_abandoned = path.symlink_metadata().is_ok_and(|metadata| {
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
            is_ours(&path, &metadata) && age.is_some_and(|age| age > ABANDONED_AFTER)
        });
        if is_abandoned && lock_left(&path) {
            // The next run tries again.
            let _ = remove_folder(&path);
        }
    }
}

/// Returns whether a process of this user created the folder as a work folder.
fn is_ours(path: &Path, metadata: &Metadata) -> bool {
    has_our_name(path)
        && metadata.is_dir()
        && metadata.uid() == Uid::effective().as_raw()
        && metadata.permissions().mode() & 0o777 & !0o700 == 0
}

fn has_our_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
    name.is_some_and(|random| {
        random.len() == RANDOM_LETTERS && random.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// Returns whether no process uses a work folder. The lock ends with the process that took it.
fn lock_left(path: &Path) -> bool {
    let set_mode = |mode| fs::set_permissions(path, Permissions::from_mode(mode));
    let is_free = set_mode(0o700)
        .and_then(|()| File::open(path))
        .is_ok_and(|folder| folder.try_lock().is_ok());
    if !is_free {
        // On failure, the folder can be listed by its user.
        let _ = set_mode(MODE);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(trial: u32) -> TrialKey {
        TrialKey { target: "t".into(), case: "c".into(), trial }
    }

    #[test]
    fn left_folder_is_removed_and_its_path_used_again() {
        let parent = tempfile::tempdir().unwrap();
        let killed = WorkFolder::new(Some(parent.path()));
        let (path, trial) = (killed.path().to_owned(), killed.trial(&key(1)));
        fs::create_dir_all(trial.join("workspace")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(MODE)).unwrap();
        let resumed = WorkFolder::replace(Some(&path), Some(parent.path()));
        assert!(!path.exists());
        assert_eq!((resumed.path(), resumed.trial(&key(1))), (path.as_path(), trial));
        let elsewhere = tempfile::tempdir().unwrap();
        let moved = WorkFolder::replace(Some(&path), Some(elsewhere.path()));
        assert_eq!(moved.path().parent(), Some(elsewhere.path()));
    }

    #[test]
    fn only_unused_work_folders_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = WorkFolder::new(Some(parent.path()));
        used.create().unwrap();
        let other = parent.path().join("bakeoff-results");
        fs::create_dir(&other).unwrap();
        let link = parent.path().join("bakeoff-aaaaaaaaaaaaaaaa");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let shared = parent.path().join("bakeoff-bbbbbbbbbbbbbbbb");
        DirBuilder::new().mode(0o755).create(&shared).unwrap();
        for path in [used.path(), &other, &link, &shared, &parent.path().join("gone")] {
            let folder = WorkFolder::replace(Some(path), Some(parent.path()));
            assert_ne!(folder.path(), path);
            assert!(path.ends_with("gone") || path.symlink_metadata().is_ok(), "{path:?}");
        }
        let mode = used.path().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, MODE);
    }

    #[test]
    fn abandoned_folders_are_removed_after_a_day() {
        let parent = tempfile::tempdir().unwrap();
        let used = WorkFolder::new(Some(parent.path()));
        used.create().unwrap();
        let [old, new] = ["bakeoff-aaaaaaaaaaaaaaaa", "bakeoff-bbbbbbbbbbbbbbbb"]
            .map(|name| parent.path().join(name));
        for folder in [&old, &new] {
            DirBuilder::new().mode(0o700).create(folder).unwrap();
        }
        for folder in [used.path(), &old] {
            fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
            let time = std::time::SystemTime::now() - 2 * ABANDONED_AFTER;
            File::open(folder).unwrap().set_modified(time).unwrap();
        }
        let next = WorkFolder::new(Some(parent.path()));
        next.create().unwrap();
        assert!(used.path().exists() && next.path().exists() && new.exists() && !old.exists());
    }
}
