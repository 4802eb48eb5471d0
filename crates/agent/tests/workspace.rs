//! Copies to work in, and what is left in them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{Left, Template, Workspace, remove};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder `source` with files in it.
    fn new(files: &[(&str, &str)]) -> Place {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("source").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn workspace(&self) -> Workspace {
        let source = self.path("source");
        let template = Template { source: Some(&source), ..Template::default() };
        Workspace::create(&self.path("work"), template).unwrap()
    }
}

/// Each file with its text, or `-`.
fn shown(left: &Left) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
    left.files.iter().map(|(name, file)| format!("{name}: {}", text(&file.text))).collect()
}

#[test]
fn a_copy_has_everything_and_the_original_stays_as_it_is() {
    let place = Place::new(&[("a.txt", "a"), ("sub/run.sh", "echo"), ("sub/deep/b", "b")]);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("source/sub/run.sh"), executable).unwrap();
    let workspace = place.workspace();
    fs::write(workspace.start().join("a.txt"), "changed").unwrap();
    assert_eq!(fs::read_to_string(place.path("source/a.txt")).unwrap(), "a");
    assert_eq!(fs::read_to_string(workspace.start().join("sub/deep/b")).unwrap(), "b");
    let mode = fs::metadata(workspace.start().join("sub/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    drop(workspace);
    assert!(!place.path("work").exists());
}

#[test]
fn texts_are_kept_of_what_is_new_or_changed() {
    let place = Place::new(&[("same.txt", "same"), ("longer.txt", "a"), ("equal.txt", "abc")]);
    let workspace = place.workspace();
    for (name, text) in [("longer.txt", "ab"), ("equal.txt", "abd"), ("new/file.txt", "new")] {
        fs::create_dir_all(workspace.start().join("new")).unwrap();
        fs::write(workspace.start().join(name), text).unwrap();
    }
    // A change within the same tick of the file system's clock cannot be told by the time.
    let time = fs::metadata(place.path("source/equal.txt")).unwrap().modified().unwrap();
    let changed =
        fs::File::options().write(true).open(workspace.start().join("equal.txt")).unwrap();
    changed.set_modified(time).unwrap();
    fs::write(workspace.start().join("binary"), b"\xff\xfe").unwrap();
    fs::write(workspace.start().join("large"), "x".repeat(64 * 1024 + 1)).unwrap();
    fs::write(workspace.start().join("most"), "y".repeat(64 * 1024)).unwrap();
    let mut left = workspace.left();
    assert_eq!(left.files.remove("most").unwrap().text.unwrap().len(), 64 * 1024);
    let expected = [
        "binary: -",
        "equal.txt: abd",
        "large: -",
        "longer.txt: ab",
        "new/file.txt: new",
        "same.txt: -",
    ];
    assert_eq!(shown(&left), expected);
    assert_eq!((left.files["large"].bytes, left.unlisted), (64 * 1024 + 1, 0));
}

#[test]
fn all_texts_together_have_a_bound_and_what_lies_at_the_top_comes_first() {
    let place = Place::new(&[]);
    let workspace = Workspace::create(&place.path("work"), Template::default()).unwrap();
    fs::create_dir(workspace.start().join("a")).unwrap();
    for number in 0..20 {
        fs::write(workspace.start().join(format!("a/{number}")), "x".repeat(60_000)).unwrap();
    }
    fs::write(workspace.start().join("z.txt"), "answer").unwrap();
    let left = workspace.left();
    let kept: usize =
        left.files.values().filter_map(|file| file.text.as_ref()).map(String::len).sum();
    assert_eq!(left.files["z.txt"].text.as_deref(), Some("answer"));
    assert!(kept <= 1024 * 1024 && kept > 900_000, "{kept}");
}

#[test]
fn a_list_has_a_bound_and_says_what_it_leaves_out() {
    let place = Place::new(&[]);
    let workspace = Workspace::create(&place.path("work"), Template::default()).unwrap();
    fs::create_dir(workspace.start().join("deep")).unwrap();
    for number in 0..10_005 {
        fs::write(workspace.start().join(format!("deep/{number}")), "").unwrap();
    }
    fs::write(workspace.start().join("top"), "").unwrap();
    let left = workspace.left();
    assert_eq!((left.files.len(), left.unlisted), (10_000, 6));
    assert!(left.files.contains_key("top"));
}

#[test]
fn links_stay_links_and_lead_nowhere_else() {
    let place = Place::new(&[("real.txt", "inside")]);
    fs::write(place.path("secret.txt"), "outside").unwrap();
    symlink("real.txt", place.path("source/inner")).unwrap();
    symlink(place.path("secret.txt"), place.path("source/outer")).unwrap();
    symlink(place.path("."), place.path("source/folder")).unwrap();
    symlink("loop", place.path("source/loop")).unwrap();
    let workspace = place.workspace();
    let link = |name: &str| fs::read_link(workspace.start().join(name)).unwrap();
    assert_eq!(link("inner"), Path::new("real.txt"));
    assert_eq!(link("outer"), place.path("secret.txt"));
    // A program may make links of its own, to folders too.
    symlink("/etc", workspace.start().join("etc")).unwrap();
    assert_eq!(shown(&workspace.left()), ["inner: -", "real.txt: -"]);
    fs::write(workspace.start().join("real.txt"), "written").unwrap();
    assert_eq!(shown(&workspace.left()), ["inner: written", "real.txt: written"]);
    drop(workspace);
    assert_eq!(fs::read_to_string(place.path("secret.txt")).unwrap(), "outside");
}

#[test]
fn another_folder_in_its_place_is_not_looked_at() {
    let place = Place::new(&[("a", "a")]);
    fs::create_dir(place.path("secrets")).unwrap();
    fs::write(place.path("secrets/key"), "secret").unwrap();
    let workspace = place.workspace();
    fs::remove_dir_all(workspace.start()).unwrap();
    symlink(place.path("secrets"), workspace.start()).unwrap();
    assert_eq!(workspace.left(), Left::default());
    drop(workspace);
    assert!(!place.path("work").exists() && place.path("secrets/key").exists());
}

#[test]
fn pipes_are_neither_copied_nor_read() {
    let place = Place::new(&[("a", "a")]);
    let make = |path: PathBuf| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    make(place.path("source/pipe"));
    let workspace = place.workspace();
    make(workspace.start().join("another"));
    assert_eq!(shown(&workspace.left()), ["a: -"]);
}

#[test]
fn folders_can_be_left_out() {
    let place = Place::new(&[("a", "a"), ("runs/one/journal", "x"), ("sub/runs/b", "b")]);
    let (source, runs) = (place.path("source"), place.path("source/sub/../runs"));
    let template = Template { source: Some(&source), without: &[&runs], ..Template::default() };
    let inside = place.path("source/runs/one/work");
    let workspace = Workspace::create(&inside, template).unwrap();
    let names: Vec<String> = workspace.left().files.into_keys().collect();
    assert_eq!(names, ["a", "sub/runs/b"]);
}

#[test]
fn a_program_can_start_further_down() {
    let place = Place::new(&[("a", "a"), ("sub/b", "b")]);
    let source = place.path("source");
    let template =
        Template { source: Some(&source), start: Some(Path::new("sub")), ..Template::default() };
    let workspace = Workspace::create(&place.path("work"), template).unwrap();
    assert!(workspace.start().ends_with("work/sub") && place.path("work/a").exists());
    assert_eq!(shown(&workspace.left()), ["b: -"]);
    let gone = Template { start: Some(Path::new("gone")), ..template };
    let error = Workspace::create(&place.path("other"), gone).unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    assert!(!place.path("other").exists());
}

#[test]
fn what_is_kept_takes_the_place_of_what_was_there() {
    let place = Place::new(&[("a", "a")]);
    fs::create_dir_all(place.path("trial/workspace/old")).unwrap();
    place.workspace().keep(&place.path("trial/workspace")).unwrap();
    assert!(
        place.path("trial/workspace/a").exists() && !place.path("trial/workspace/old").exists()
    );
    assert!(!place.path("work").exists());
}

#[test]
fn folders_that_may_not_be_written_are_removed_all_the_same() {
    let place = Place::new(&[("locked/file", "x")]);
    let workspace = place.workspace();
    let locked = workspace.start().join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    drop(workspace);
    assert!(!place.path("work").exists());
    assert!(remove(&place.path("never-was")).is_ok());
}

#[test]
fn a_program_never_starts_outside_its_own_copy() {
    let place = Place::new(&[("a.txt", "a"), ("sub/b.txt", "b")]);
    let source = place.path("source");
    symlink(source.join("sub"), source.join("original")).unwrap();
    symlink("../..", source.join("above")).unwrap();
    symlink("sub", source.join("within")).unwrap();
    fs::create_dir_all(place.path("work-elsewhere")).unwrap();
    symlink("../work-elsewhere", source.join("beside")).unwrap();
    for start in ["original", "above", "beside", "original/../sub", "..", "/"] {
        let start = Path::new(start);
        let template = Template { source: Some(&source), start: Some(start), without: &[] };
        let error = Workspace::create(&place.path("work"), template).unwrap_err();
        assert!(error.to_string().contains("leads out of the workspace"), "{start:?}: {error}");
        assert!(!place.path("work").exists());
    }
    let start = Some(Path::new("within"));
    let template = Template { source: Some(&source), start, without: &[] };
    let workspace = Workspace::create(&place.path("work"), template).unwrap();
    fs::write(workspace.start().join("new.txt"), "new").unwrap();
    assert_eq!(shown(&workspace.left()), ["b.txt: -", "new.txt: new"]);
    assert!(!source.join("sub/new.txt").exists());
}
