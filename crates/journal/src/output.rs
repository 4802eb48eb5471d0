//! Files that a user names, for example with `--jsonl FILE`.
//!
//! Such a path may be a symbolic link, a pipe or a device. Only a regular file is replaced; everything else is written
//! to as it is.

use crate::Error;
use crate::atomic::replace;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Path that stands for standard output.
pub const STANDARD_OUTPUT: &str = "-";

/// Links that are followed before a path counts as a loop, as on Linux.
const MAX_LINKS: usize = 40;

/// Writes a file that a user has named.
///
/// Symbolic links are followed. A regular file is replaced atomically and keeps its mode; pipes and devices are written
/// to directly; `-` is standard output. A closed pipe is not an error, because its reader has seen enough.
///
/// # Errors
///
/// When the file cannot be written. The error names `path`.
pub fn write_output(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Error> {
    let written = if path == Path::new(STANDARD_OUTPUT) {
        stream(std::io::stdout().lock(), write)
    } else {
        write_to(path, write)
    };
    match written {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Io { action: "write", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn write_to(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let target = follow_links(path)?;
    match fs::metadata(&target) {
        Ok(metadata) if metadata.is_file() => {
            replace_regular(&target, Some(metadata.permissions()), write)
        }
        // No truncation: a device has no length, and a pipe rejects it.
        Ok(_) => stream(OpenOptions::new().write(true).open(&target)?, write),
        Err(error) if error.kind() == ErrorKind::NotFound => replace_regular(&target, None, write),
        Err(error) => Err(error),
    }
}

fn replace_regular(
    target: &Path,
    permissions: Option<Permissions>,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let write_with_mode = |file: File| {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        stream(file, write)
    };
    replace(target, OpenOptions::new(), write_with_mode)
}

fn stream(
    destination: impl Write,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut buffered = BufWriter::new(destination);
    let written = write(&mut buffered).and_then(|()| buffered.flush());
    // After a failure, dropping the buffer would write its contents again.
    let _ = buffered.into_parts();
    written
}

/// Returns the path behind symbolic links, whether or not a file exists there.
///
/// # Errors
///
/// When the links form a loop.
pub fn follow_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            // A relative link starts at the folder of the link; an absolute one replaces the path.
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(std::io::Error::other("too many levels of symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    fn write_text(path: &Path, text: &str) -> Result<(), Error> {
        write_output(path, |writer| writer.write_all(text.as_bytes()))
    }

    #[test]
    fn link_is_followed_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        symlink("file", &link).unwrap();
        for text in ["new", "again"] {
            write_text(&link, text).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn loop_of_links_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("link", &link).unwrap();
        let error = write_text(&link, "x").unwrap_err();
        assert!(chain(&error).contains("symbolic links"), "{}", chain(&error));
        assert!(link.is_symlink());
    }

    #[test]
    fn mode_of_an_existing_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        write_text(&file, "new").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn pipe_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                let mut text = String::new();
                File::open(pipe).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
            })
        };
        write_text(&pipe, "rows").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), "rows");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn device_is_written_to() {
        let error = write_text(Path::new("/dev/full"), "x").unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
        write_text(Path::new("/dev/null"), "x").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn failed_write_keeps_the_old_contents() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        let failure = |writer: &mut dyn Write| {
            writer.write_all(b"half")?;
            Err(std::io::Error::other("no more rows"))
        };
        assert!(write_output(&file, failure).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    fn chain(error: &dyn std::error::Error) -> String {
        format!("{error}: {:?}", error.source().map(ToString::to_string))
    }
}
