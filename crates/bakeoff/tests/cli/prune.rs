//! `bakeoff prune`: deletes old runs, and nothing else.

use crate::support::{CommandOutput, TestDir};
use bakeoff_journal::Journal;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const SUITE: &str = "[[target]]\nname = \"one\"\nmodel = \"sim/echo\"\nprompt = \"hi\"\n[[cases.inline]]\nid = \"a\"\n\
     [[check]]\nkind = \"contains\"\nvalue = \"hi\"\n";

/// Sets the time of the last change of a run to 40 days ago.
fn make_old(run: &Path) {
    let time = SystemTime::now() - Duration::from_secs(40 * 24 * 3600);
    for name in ["run.json", "journal.jsonl", "summary.json"] {
        if let Ok(file) = File::options().append(true).open(run.join(name)) {
            file.set_modified(time).unwrap();
        }
    }
}

fn copy(run: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["run.json", "journal.jsonl", "summary.json"] {
        fs::copy(run.join(name), to.join(name)).unwrap();
    }
    make_old(to);
}

/// Returns a directory with an old and a new run, and the path of the old one.
fn old_and_new() -> (TestDir, PathBuf) {
    let dir = TestDir::with_suite(SUITE);
    assert_eq!(dir.run(&["run"]).code, 0);
    let old = dir.run_folder();
    make_old(&old);
    assert_eq!(dir.run(&["run"]).code, 0);
    (dir, old)
}

fn prune(dir: &TestDir, more: &[&str]) -> CommandOutput {
    dir.run(&[&["prune", "--older-than", "30d"], more].concat())
}

#[test]
fn only_old_runs_are_deleted() {
    let (dir, old) = old_and_new();
    let runs = dir.path().join("runs");
    // Folders that are no runs, a renamed copy and a link are not deleted.
    let notes = runs.join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("run.json"), "{}").unwrap();
    make_old(&notes);
    copy(&old, &runs.join("copy"));
    std::os::unix::fs::symlink(dir.path().join("runs/copy"), runs.join("link")).unwrap();

    let planned = prune(&dir, &["--dry-run"]);
    assert!(
        planned.stdout.starts_with("would delete 1 run (0.0 MB) and 0 responses"),
        "{}",
        planned.transcript()
    );
    let name = old.file_name().unwrap().to_str().unwrap();
    assert!(planned.stderr.contains(name) && old.exists(), "{}", planned.stderr);

    let unconfirmed = prune(&dir, &[]);
    assert_eq!(unconfirmed.code, 2, "{}", unconfirmed.transcript());
    assert!(unconfirmed.stderr.contains("hint: `--yes` skips") && old.exists());

    let before = fs::read_dir(&runs).unwrap().count();
    let deleted = prune(&dir, &["--yes", "--json"]).done();
    assert_eq!(
        (&deleted["runs"].as_array().unwrap().len(), &deleted["dry_run"]),
        (&1, &false.into())
    );
    assert!(
        !old.exists() && notes.exists() && runs.join("copy").exists() && runs.join("link").exists()
    );
    assert_eq!(fs::read_dir(&runs).unwrap().count(), before - 1);
    // Nothing is left to delete.
    let again = prune(&dir, &[]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (0, "deleted 0 runs (0.0 MB) and 0 responses of the cache\n")
    );
}

#[test]
fn running_run_is_not_deleted() {
    let (dir, old) = old_and_new();
    let journal = Journal::reopen(&old.join("journal.jsonl")).unwrap();
    make_old(&old);
    assert_eq!(prune(&dir, &["--yes"]).code, 0);
    assert!(old.exists());
    drop(journal);
    make_old(&old);
    assert_eq!(prune(&dir, &["--yes"]).code, 0);
    assert!(!old.exists());
}

#[test]
fn age_is_a_number_of_days() {
    let (dir, _) = old_and_new();
    let deleted = dir.run(&["prune", "--older-than", "0d", "--yes", "--json"]).done();
    assert_eq!(deleted["runs"].as_array().unwrap().len(), 2);
    let age = dir.run(&["prune", "--older-than", "30", "--yes"]);
    assert!(age.stderr.contains("`30` is not a number of days such as 30d"), "{}", age.stderr);
}
