//! Workspaces: copies of templates and the files in them afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{Workspace, WorkspaceFiles, WorkspaceTemplate, remove_folder};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    /// Creates a folder `source` with these files.
    fn new(files: &[(&str, &str)]) -> TestFolder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("source").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        TestFolder { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn workspace(&self) -> Workspace {
        let source = self.path("source");
        let template = WorkspaceTemplate::default().source(&source);
        Workspace::create(&self.path("work"), template).unwrap()
    }
}

/// Formats each file with its text, or `-`.
fn format_files(listed: &WorkspaceFiles) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
    listed.files.iter().map(|(name, file)| format!("{name}: {}", text(&file.text))).collect()
}

#[test]
fn copy_is_complete_and_the_source_unchanged() {
    let folder = TestFolder::new(&[("a.txt", "a"), ("sub/run.sh", "echo"), ("sub/deep/b", "b")]);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path("source/sub/run.sh"), executable).unwrap();
    let workspace = folder.workspace();
    fs::write(workspace.start().join("a.txt"), "changed").unwrap();
    assert_eq!(fs::read_to_string(folder.path("source/a.txt")).unwrap(), "a");
    assert_eq!(fs::read_to_string(workspace.start().join("sub/deep/b")).unwrap(), "b");
    let mode = fs::metadata(workspace.start().join("sub/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    drop(workspace);
    assert!(!folder.path("work").exists());
}

#[test]
fn new_and_changed_files_include_their_text() {
    let folder =
        TestFolder::new(&[("same.txt", "same"), ("longer.txt", "a"), ("equal.txt", "abc")]);
    let workspace = folder.workspace();
    for (name, text) in [("longer.txt", "ab"), ("equal.txt", "abd"), ("new/file.txt", "new")] {
        fs::create_dir_all(workspace.start().join("new")).unwrap();
        fs::write(workspace.start().join(name), text).unwrap();
    }
    // A change within the resolution of the file system does not change the modification time.
    let time = fs::metadata(folder.path("source/equal.txt")).unwrap().modified().unwrap();
    let changed =
        fs::File::options().write(true).open(workspace.start().join("equal.txt")).unwrap();
    changed.set_modified(time).unwrap();
    fs::write(workspace.start().join("binary"), b"\xff\xfe").unwrap();
    fs::write(workspace.start().join("large"), "x".repeat(64 * 1024 + 1)).unwrap();
    fs::write(workspace.start().join("limit"), "y".repeat(64 * 1024)).unwrap();
    let mut listed = workspace.files();
    assert_eq!(listed.files.remove("limit").unwrap().text.unwrap().len(), 64 * 1024);
    let expected = [
        "binary: -",
        "equal.txt: abd",
        "large: -",
        "longer.txt: ab",
        "new/file.txt: new",
        "same.txt: -",
    ];
    assert_eq!(format_files(&listed), expected);
    assert_eq!((listed.files["large"].bytes, listed.unlisted), (64 * 1024 + 1, 0));
}

#[test]
fn total_text_is_limited_and_top_level_files_come_first() {
    let folder = TestFolder::new(&[]);
    let workspace = Workspace::create(&folder.path("work"), WorkspaceTemplate::default()).unwrap();
    fs::create_dir(workspace.start().join("a")).unwrap();
    for number in 0..20 {
        fs::write(workspace.start().join(format!("a/{number}")), "x".repeat(60_000)).unwrap();
    }
    fs::write(workspace.start().join("z.txt"), "answer").unwrap();
    let listed = workspace.files();
    let kept: usize =
        listed.files.values().filter_map(|file| file.text.as_ref()).map(String::len).sum();
    assert_eq!(listed.files["z.txt"].text.as_deref(), Some("answer"));
    assert!(kept <= 1024 * 1024 && kept > 900_000, "{kept}");
}

#[test]
fn number_of_files_is_limited_and_the_rest_counted() {
    let folder = TestFolder::new(&[]);
    let workspace = Workspace::create(&folder.path("work"), WorkspaceTemplate::default()).unwrap();
    fs::create_dir(workspace.start().join("deep")).unwrap();
    for number in 0..10_005 {
        fs::write(workspace.start().join(format!("deep/{number}")), "").unwrap();
    }
    fs::write(workspace.start().join("top"), "").unwrap();
    let listed = workspace.files();
    assert_eq!((listed.files.len(), listed.unlisted), (10_000, 6));
    assert!(listed.files.contains_key("top"));
}

#[test]
fn links_are_copied_as_links_and_followed_within_the_workspace_only() {
    let folder = TestFolder::new(&[("real.txt", "inside")]);
    fs::write(folder.path("secret.txt"), "outside").unwrap();
    symlink("real.txt", folder.path("source/inner")).unwrap();
    symlink(folder.path("secret.txt"), folder.path("source/outer")).unwrap();
    symlink(folder.path("."), folder.path("source/folder")).unwrap();
    symlink("loop", folder.path("source/loop")).unwrap();
    let workspace = folder.workspace();
    let link = |name: &str| fs::read_link(workspace.start().join(name)).unwrap();
    assert_eq!(link("inner"), Path::new("real.txt"));
    assert_eq!(link("outer"), folder.path("secret.txt"));
    // Programs can create links, also to folders.
    symlink("/etc", workspace.start().join("etc")).unwrap();
    assert_eq!(format_files(&workspace.files()), ["inner: -", "real.txt: -"]);
    fs::write(workspace.start().join("real.txt"), "written").unwrap();
    assert_eq!(format_files(&workspace.files()), ["inner: written", "real.txt: written"]);
    drop(workspace);
    assert_eq!(fs::read_to_string(folder.path("secret.txt")).unwrap(), "outside");
}

#[test]
fn replaced_workspace_is_not_read() {
    let folder = TestFolder::new(&[("a", "a")]);
    fs::create_dir(folder.path("secrets")).unwrap();
    fs::write(folder.path("secrets/key"), "secret").unwrap();
    let workspace = folder.workspace();
    fs::remove_dir_all(workspace.start()).unwrap();
    symlink(folder.path("secrets"), workspace.start()).unwrap();
    assert_eq!(workspace.files(), WorkspaceFiles::default());
    drop(workspace);
    assert!(!folder.path("work").exists() && folder.path("secrets/key").exists());
}

#[test]
fn pipes_are_neither_copied_nor_read() {
    let folder = TestFolder::new(&[("a", "a")]);
    let make = |path: PathBuf| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    make(folder.path("source/pipe"));
    let workspace = folder.workspace();
    make(workspace.start().join("another"));
    assert_eq!(format_files(&workspace.files()), ["a: -"]);
}

#[test]
fn folders_can_be_excluded() {
    let folder = TestFolder::new(&[("a", "a"), ("runs/one/journal", "x"), ("sub/runs/b", "b")]);
    let (source, runs) = (folder.path("source"), folder.path("source/sub/../runs"));
    let excluded: [&Path; 1] = [&runs];
    let template = WorkspaceTemplate::default().source(&source).excluded(&excluded);
    let inside = folder.path("source/runs/one/work");
    let workspace = Workspace::create(&inside, template).unwrap();
    let names: Vec<String> = workspace.files().files.into_keys().collect();
    assert_eq!(names, ["a", "sub/runs/b"]);
}

#[test]
fn program_can_start_in_a_subfolder() {
    let folder = TestFolder::new(&[("a", "a"), ("sub/b", "b")]);
    let source = folder.path("source");
    let template = WorkspaceTemplate::default().source(&source).start(Path::new("sub"));
    let workspace = Workspace::create(&folder.path("work"), template).unwrap();
    assert!(workspace.start().ends_with("work/workspace/sub"));
    assert!(folder.path("work/workspace/a").exists());
    assert_eq!(format_files(&workspace.files()), ["b: -"]);
    let missing = template.start(Path::new("missing"));
    let error = Workspace::create(&folder.path("other"), missing).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    assert!(!folder.path("other").exists());
}

#[test]
fn kept_workspace_replaces_an_existing_folder() {
    let folder = TestFolder::new(&[("a", "a")]);
    fs::create_dir_all(folder.path("trial/workspace/old")).unwrap();
    folder.workspace().keep(&folder.path("trial/workspace")).unwrap();
    assert!(
        folder.path("trial/workspace/a").exists() && !folder.path("trial/workspace/old").exists()
    );
    assert!(!folder.path("work").exists());
}

#[test]
fn workspace_is_alone_in_a_private_folder() {
    let folder = TestFolder::new(&[("a", "a")]);
    let workspace = folder.workspace();
    let above = workspace.start().parent().unwrap();
    assert_eq!(fs::metadata(above).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(above).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn workspace_is_kept_on_another_file_system() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    let folder = TestFolder::new(&[("sub/run.sh", "echo"), ("locked/a", "a"), ("secret", "b")]);
    let (source, path) = (folder.path("source"), memory.path().join("work"));
    let template = WorkspaceTemplate::default().source(&source);
    let workspace = Workspace::create(&path, template).unwrap();
    let set_mode = |name: &str, mode| {
        fs::set_permissions(workspace.start().join(name), fs::Permissions::from_mode(mode))
            .unwrap();
    };
    for (name, mode) in [("sub/run.sh", 0o755), ("locked", 0o500), ("secret", 0)] {
        set_mode(name, mode);
    }
    symlink("sub/run.sh", workspace.start().join("link")).unwrap();
    workspace.keep(&folder.path("trial/workspace")).unwrap();
    let kept = |name: &str| folder.path("trial/workspace").join(name);
    assert_eq!(fs::read_to_string(kept("link")).unwrap(), "echo");
    assert_eq!(fs::read_to_string(kept("locked/a")).unwrap(), "a");
    assert_eq!(fs::read_to_string(kept("secret")).unwrap(), "b");
    let mode = fs::metadata(kept("sub/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(!path.exists());
}

#[test]
fn read_only_folders_are_removed() {
    let folder = TestFolder::new(&[("locked/file", "x")]);
    let workspace = folder.workspace();
    let locked = workspace.start().join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    drop(workspace);
    assert!(!folder.path("work").exists());
    assert!(remove_folder(&folder.path("missing")).is_ok());
}

#[test]
fn program_cannot_start_outside_of_its_workspace() {
    let folder = TestFolder::new(&[("a.txt", "a"), ("sub/b.txt", "b")]);
    let source = folder.path("source");
    symlink(source.join("sub"), source.join("original")).unwrap();
    symlink("../..", source.join("above")).unwrap();
    symlink("sub", source.join("within")).unwrap();
    fs::create_dir_all(folder.path("work-elsewhere")).unwrap();
    symlink("../../work-elsewhere", source.join("beside")).unwrap();
    for start in ["original", "above", "beside", "original/../sub", "..", "/"] {
        let start = Path::new(start);
        let template = WorkspaceTemplate::default().source(&source).start(start);
        let error = Workspace::create(&folder.path("work"), template).unwrap_err();
        assert!(error.to_string().contains("leads out of the workspace"), "{start:?}: {error}");
        assert!(!folder.path("work").exists());
    }
    let template = WorkspaceTemplate::default().source(&source).start(Path::new("within"));
    let workspace = Workspace::create(&folder.path("work"), template).unwrap();
    fs::write(workspace.start().join("new.txt"), "new").unwrap();
    assert_eq!(format_files(&workspace.files()), ["b.txt: -", "new.txt: new"]);
    assert!(!source.join("sub/new.txt").exists());
}
