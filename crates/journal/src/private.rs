//! Files and folders that only their owner can open, because prompts and answers may be confidential.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Returns options that create files for their owner only. The mode of an existing file does not change.
pub fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Creates a folder for its owner only.
///
/// # Errors
///
/// As [`std::fs::create_dir`].
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a folder and the missing folders above it, for their owner only.
///
/// # Errors
///
/// As [`std::fs::create_dir_all`].
pub fn create_private_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns whether users other than the owner have permissions on a file or folder. A missing one has no permissions.
pub fn is_open_to_others(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};

    fn create(path: &Path) {
        private_file_options().append(true).create(true).open(path).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_and_folders_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("a"), folder.path().join("a/b"));
        create_private_folders(&inner).unwrap();
        create_private_folders(&inner).unwrap();
        let file = inner.join("file");
        create(&file);
        assert_eq!([mode(&outer), mode(&inner), mode(&file)], [0o700, 0o700, 0o600]);
        assert!(create_private_folder(&inner).is_err());
    }

    #[test]
    fn wider_modes_are_found_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert!(!is_open_to_others(&file));
        create(&file);
        assert!(!is_open_to_others(&file));
        set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        create(&file);
        assert!(is_open_to_others(&file));
        assert_eq!(mode(&file), 0o640);
    }
}
