//! Tests of writing and reading through the public API.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_journal::{Error, Journal, is_open, read};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn write(path: &Path, records: &[String]) -> Vec<u8> {
    let mut journal = Journal::create(path).unwrap();
    for record in records {
        journal.push(record).unwrap();
    }
    journal.finish().unwrap();
    fs::read(path).unwrap()
}

fn read_all(path: &Path) -> Result<Vec<String>, Error> {
    read(path)?.collect()
}

#[test]
fn existing_journal_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    write(&path, &["kept".to_owned()]);
    assert!(matches!(Journal::create(&path), Err(Error::Io { .. })));
    assert_eq!(read_all(&path).unwrap(), ["kept"]);
}

#[test]
fn journal_is_locked_while_open_and_unlocked_after_drop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    for _ in 0..50 {
        let mut journal = Journal::open(&path).unwrap();
        assert!(matches!(Journal::open(&path), Err(Error::Locked { .. })));
        assert!(matches!(Journal::reopen(&path), Err(Error::Locked { .. })));
        assert!(is_open(&path));
        journal.push(&"one").unwrap();
        journal.flush().unwrap();
    }
    assert_eq!(read_all(&path).unwrap().len(), 50);
    assert!(!is_open(&path) && !is_open(&folder.path().join("missing")));
    let mut journal = Journal::open(&path).unwrap();
    journal.push(&"never").unwrap();
    journal.clear().unwrap();
    assert!(matches!(Journal::open(&path), Err(Error::Locked { .. })), "clearing keeps the lock");
    journal.push(&"new").unwrap();
    journal.finish().unwrap();
    assert_eq!(read_all(&path).unwrap(), ["new"]);
}

#[test]
fn flushed_record_is_readable_while_the_journal_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    journal.push(&"one").unwrap();
    assert!(read_all(&path).unwrap().is_empty());
    journal.flush().unwrap();
    assert_eq!(read_all(&path).unwrap(), ["one"]);
}

#[test]
fn damaged_line_is_reported_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    fs::write(&path, "\"one\"\n\"tw\n\"three\"\n").unwrap();
    let error = read_all(&path).unwrap_err();
    assert!(error.to_string().contains("journal.jsonl:2: damaged line"), "{error}");
}

/// Record with a number, in which a changed digit leaves valid JSON.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Score {
    name: String,
    score: u32,
}

fn scores() -> Vec<Score> {
    (0..20).map(|n| Score { name: format!("case {n}"), score: 1000 + n }).collect()
}

fn write_scores(path: &Path) -> Vec<u8> {
    let mut journal = Journal::create(path).unwrap();
    scores().iter().for_each(|score| journal.push(score).unwrap());
    journal.finish().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn record_without_checksum_is_damaged_only_after_one_with_a_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    // An older version wrote the first line.
    fs::write(&path, "{\"name\": \"old\", \"score\": 1}\n").unwrap();
    let mut journal = Journal::reopen(&path).unwrap();
    journal.push(&scores()[0]).unwrap();
    journal.finish().unwrap();
    assert_eq!(read::<Score>(&path).unwrap().filter_map(Result::ok).count(), 2);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{{\"name\": \"new\", \"score\": 1}}\n")).unwrap();
    let error = read::<Score>(&path).unwrap().last().unwrap().unwrap_err();
    assert!(error.to_string().ends_with("journal.jsonl:3: damaged line: no checksum"), "{error}");
}

proptest! {
    /// No changed byte changes a record: it is read as written, or not at all.
    #[test]
    fn damage_is_found_and_other_records_are_read(at in any::<prop::sample::Index>(), byte: u8) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut bytes = write_scores(&path);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        fs::write(&path, &bytes).unwrap();
        let found: Vec<Score> = read(&path).unwrap().filter_map(Result::ok).collect();
        let known = scores();
        prop_assert!(found.len() + 2 >= known.len());
        prop_assert!(found.iter().all(|score| known.contains(score)), "{:?}", found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A cut at any byte loses only the torn record.
    #[test]
    fn torn_tail_loses_only_the_torn_record(lines in prop::collection::vec(".{0,20}", 0..6), share in 0.0..=1.0_f64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let bytes = write(&path, &lines);
        let cut = (bytes.len() as f64 * share) as usize;
        fs::write(&path, &bytes[..cut]).unwrap();
        let complete = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(read_all(&path).unwrap(), &lines[..complete]);
    }
}

#[test]
fn reopened_journal_continues_after_its_last_complete_line() {
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
fn second_writer_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let journal = Journal::create(&path).unwrap();
    let error = Journal::reopen(&path).unwrap_err();
    assert!(matches!(error, bakeoff_journal::Error::Locked { .. }), "{error}");
    journal.finish().unwrap();
    Journal::reopen(&path).unwrap().finish().unwrap();
}
