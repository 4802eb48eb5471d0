//! The files of a workspace after a program has run.

use bakeoff_core::WorkspaceFile;
use nix::fcntl::OFlag;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum number of files listed.
const MAX_FILES: usize = 10_000;

/// Maximum size of a file whose text is kept.
const MAX_TEXT_BYTES: u64 = 64 * 1024;

/// Maximum total size of texts kept.
const MAX_TOTAL_TEXT_BYTES: usize = 1024 * 1024;

/// Resolution of modification times. A file that changed within this time before the copy may have changed again
/// with the same time.
const TIME_RESOLUTION: Duration = Duration::from_secs(2);

/// Files of a workspace after a program has run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceFiles {
    /// Regular files by path, with `/` as separator. New and changed files include their text, unless they are too
    /// large or not UTF-8.
    pub files: BTreeMap<String, WorkspaceFile>,
    /// Number of files beyond the limit; these are the deepest ones.
    pub unlisted: u64,
}

/// Lists the files below the canonical path `root`, which was copied from `source` at the time `copied_at`.
pub(super) fn collect(root: &Path, source: Option<&Path>, copied_at: SystemTime) -> WorkspaceFiles {
    let mut listed = WorkspaceFiles::default();
    let mut budget = MAX_TOTAL_TEXT_BYTES;
    // Breadth first, so that deep files, such as installed packages, do not displace those at the top.
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(relative) = folders.pop_front() {
        let Ok(entries) = fs::read_dir(root.join(&relative)) else { continue };
        let mut entries: Vec<fs::DirEntry> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = relative.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push_back(name);
                continue;
            }
            let Some((path, metadata)) = regular_file(root, &entry.path()) else { continue };
            if listed.files.len() == MAX_FILES {
                listed.unlisted += 1;
                continue;
            }
            let original =
                source.and_then(|source| Some(source.join(path.strip_prefix(root).ok()?)));
            let text = if is_unchanged(&metadata, original.as_deref(), copied_at) {
                None
            } else {
                changed_text(&path, &metadata, original.as_deref())
                    .filter(|text| text.len() <= budget)
            };
            budget -= text.as_ref().map_or(0, String::len);
            let file = WorkspaceFile { bytes: metadata.len(), text };
            listed.files.insert(name.to_string_lossy().into_owned(), file);
        }
    }
    listed
}

/// Returns the regular file at a path, or the target of a link, if it lies within the workspace.
fn regular_file(root: &Path, path: &Path) -> Option<(PathBuf, Metadata)> {
    let path = path.canonicalize().ok().filter(|path| path.starts_with(root))?;
    let metadata = path.symlink_metadata().ok()?;
    metadata.is_file().then_some((path, metadata))
}

/// Returns whether size and modification time show that a file is as it was copied.
fn is_unchanged(now: &Metadata, original: Option<&Path>, copied_at: SystemTime) -> bool {
    let Some(original) = original.and_then(|path| path.symlink_metadata().ok()) else {
        return false;
    };
    let is_old = |time: SystemTime| time + TIME_RESOLUTION < copied_at;
    original.is_file()
        && original.len() == now.len()
        && match (original.modified(), now.modified()) {
            (Ok(then), Ok(today)) => then == today && is_old(then),
            _ => false,
        }
}

/// Returns the text of a file, unless it equals the original.
fn changed_text(path: &Path, metadata: &Metadata, original: Option<&Path>) -> Option<String> {
    if metadata.len() > MAX_TEXT_BYTES {
        return None;
    }
    let bytes = read_prefix(path)?;
    if bytes.len() as u64 > MAX_TEXT_BYTES
        || original.and_then(read_prefix).is_some_and(|old| old == bytes)
    {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// Reads the beginning of a regular file, one byte more than the limit.
fn read_prefix(path: &Path) -> Option<Vec<u8>> {
    // The file may have been replaced since: links are not followed, and pipes do not block.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
