//! Writing and reading back, through the public door.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_journal::{Error, Journal, read};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn written(path: &Path, entries: &[String]) -> Vec<u8> {
    let mut journal = Journal::create(path).unwrap();
    for entry in entries {
        journal.push(entry).unwrap();
    }
    journal.finish().unwrap();
    fs::read(path).unwrap()
}

fn entries(path: &Path) -> Result<Vec<String>, Error> {
    read(path)?.collect()
}

#[test]
fn an_existing_journal_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    written(&path, &["kept".to_owned()]);
    assert!(matches!(Journal::create(&path), Err(Error::Io { .. })));
    assert_eq!(entries(&path).unwrap(), ["kept"]);
}

#[test]
fn whoever_comes_first_has_it_and_whoever_comes_next_finds_it_unlocked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    for _ in 0..50 {
        let mut journal = Journal::open(&path).unwrap();
        assert!(matches!(Journal::open(&path), Err(Error::Locked { .. })));
        assert!(matches!(Journal::reopen(&path), Err(Error::Locked { .. })));
        journal.push(&"one").unwrap();
        journal.flush().unwrap();
    }
    assert_eq!(entries(&path).unwrap().len(), 50);
    let mut journal = Journal::open(&path).unwrap();
    journal.push(&"never").unwrap();
    journal.clear().unwrap();
    assert!(matches!(Journal::open(&path), Err(Error::Locked { .. })), "it stays locked");
    journal.push(&"anew").unwrap();
    journal.finish().unwrap();
    assert_eq!(entries(&path).unwrap(), ["anew"]);
}

#[test]
fn a_flushed_entry_can_be_read_while_the_journal_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    journal.push(&"one").unwrap();
    assert!(entries(&path).unwrap().is_empty());
    journal.flush().unwrap();
    assert_eq!(entries(&path).unwrap(), ["one"]);
}

#[test]
fn a_damaged_line_in_the_middle_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    fs::write(&path, "\"one\"\n\"tw\n\"three\"\n").unwrap();
    let error = entries(&path).unwrap_err();
    assert!(error.to_string().contains("journal.jsonl:2: damaged line"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the moment of death, the entries that were whole are read and the torn one is not.
    #[test]
    fn a_torn_tail_loses_only_itself(lines in prop::collection::vec(".{0,20}", 0..6), share in 0.0..=1.0_f64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let bytes = written(&path, &lines);
        let cut = (bytes.len() as f64 * share) as usize;
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(entries(&path).unwrap(), &lines[..whole]);
    }
}

#[test]
fn a_journal_goes_on_after_its_last_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let long = "x".repeat(200_000);
    for torn in ["", "{\"torn\": 1", long.as_str()] {
        std::fs::write(&path, format!("1\n2\n{torn}")).unwrap();
        let mut journal = Journal::reopen(&path).unwrap();
        journal.push(&3).unwrap();
        journal.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    }
    std::fs::write(&path, "torn").unwrap();
    Journal::reopen(&path).unwrap().finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn two_cannot_write_one_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let journal = Journal::create(&path).unwrap();
    let refused = Journal::reopen(&path).unwrap_err();
    assert!(matches!(refused, bakeoff_journal::Error::Locked { .. }), "{refused}");
    journal.finish().unwrap();
    Journal::reopen(&path).unwrap().finish().unwrap();
}
