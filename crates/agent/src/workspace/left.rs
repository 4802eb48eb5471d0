//! What a program left in its workspace.

use bakeoff_core::LeftFile;
use nix::fcntl::OFlag;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Most files that are listed.
const MOST_FILES: usize = 10_000;

/// Most bytes of a file whose text is kept.
const MOST_TEXT: u64 = 64 * 1024;

/// Most bytes of text that are kept of all files together.
const MOST_TEXT_TOGETHER: usize = 1024 * 1024;

/// A file that was changed shortly before the copy may have been changed again at the same time, as
/// far as clocks of file systems can tell.
const CLOCK_GRAIN: Duration = Duration::from_secs(2);

/// What a program left in its workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Regular files by their paths, parts divided by `/`. With their texts where they are new or
    /// changed, and neither too large nor no text.
    pub files: BTreeMap<String, LeftFile>,
    /// Files that are there, too, and not listed: those that lie deepest.
    pub unlisted: u64,
}

/// Lists what lies below a folder, named without links, that was copied from another one at that
/// time.
pub(super) fn look(top: &Path, source: Option<&Path>, copied: SystemTime) -> Left {
    let mut left = Left::default();
    let mut room = MOST_TEXT_TOGETHER;
    // Level by level, so that what lies deep, such as installed packages, does not take the room of
    // what lies at the top.
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(relative) = folders.pop_front() {
        let Ok(entries) = fs::read_dir(top.join(&relative)) else { continue };
        let mut entries: Vec<fs::DirEntry> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = relative.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push_back(name);
                continue;
            }
            let Some((path, metadata)) = regular(top, &entry.path()) else { continue };
            if left.files.len() == MOST_FILES {
                left.unlisted += 1;
                continue;
            }
            let before = source.and_then(|source| Some(source.join(path.strip_prefix(top).ok()?)));
            let text = if is_unchanged(&metadata, before.as_deref(), copied) {
                None
            } else {
                text(&path, &metadata, before.as_deref()).filter(|text| text.len() <= room)
            };
            room -= text.as_ref().map_or(0, String::len);
            let file = LeftFile { bytes: metadata.len(), text };
            left.files.insert(name.to_string_lossy().into_owned(), file);
        }
    }
    left
}

/// The regular file at a path, or the one that a link there leads to, as long as it lies within the
/// workspace.
fn regular(top: &Path, path: &Path) -> Option<(PathBuf, Metadata)> {
    let path = path.canonicalize().ok().filter(|path| path.starts_with(top))?;
    let metadata = path.symlink_metadata().ok()?;
    metadata.is_file().then_some((path, metadata))
}

/// Whether size and time say that a file is as it was copied.
fn is_unchanged(now: &Metadata, before: Option<&Path>, copied: SystemTime) -> bool {
    let Some(before) = before.and_then(|before| before.symlink_metadata().ok()) else {
        return false;
    };
    let is_old = |time: SystemTime| time + CLOCK_GRAIN < copied;
    before.is_file()
        && before.len() == now.len()
        && match (before.modified(), now.modified()) {
            (Ok(then), Ok(today)) => then == today && is_old(then),
            _ => false,
        }
}

/// The text of a file, unless it is the same as before.
fn text(path: &Path, metadata: &Metadata, before: Option<&Path>) -> Option<String> {
    if metadata.len() > MOST_TEXT {
        return None;
    }
    let bytes = read(path)?;
    if bytes.len() as u64 > MOST_TEXT || before.and_then(read).is_some_and(|old| old == bytes) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// The beginning of a regular file: enough to see that it is too long.
fn read(path: &Path) -> Option<Vec<u8>> {
    // Whatever has been put in its place meanwhile is not followed and not waited for.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_TEXT + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
