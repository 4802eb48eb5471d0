//! Checksums of records: the last field of each record that is a JSON object.
//!
//! They reveal damage that leaves a line valid JSON, such as a changed digit.

/// Text before the checksum.
const START: &[u8] = b",\"checksum\":\"";

/// Text after it.
const END: &[u8] = b"\"}";

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 8;

/// Adds a checksum to a record, if it is an object with at least one field.
pub(crate) fn add(record: &mut Vec<u8>, start: usize) {
    let body = &record[start..];
    if body.len() > 2 && body.starts_with(b"{") {
        let digits = digits(body);
        record.pop();
        record.extend_from_slice(START);
        record.extend_from_slice(&digits);
        record.extend_from_slice(END);
    }
}

/// What the checksum of a record shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// The record has no checksum.
    Absent,
    /// The record is as it was written.
    Valid,
    /// The record has changed since it was written.
    Invalid,
}

/// Checks a record and removes its checksum.
pub(crate) fn take(record: &mut Vec<u8>) -> Check {
    let Some(body) = record.len().checked_sub(START.len() + DIGITS + END.len()) else {
        return Check::Absent;
    };
    let (before, after) = record[body..].split_at(START.len());
    if before != START || !after.ends_with(END) {
        return Check::Absent;
    }
    let stored = after[..DIGITS].to_owned();
    record.truncate(body);
    record.push(b'}');
    if stored == digits(record) { Check::Valid } else { Check::Invalid }
}

fn digits(record: &[u8]) -> [u8; DIGITS] {
    let mut digits = [0; DIGITS];
    digits.copy_from_slice(&blake3::hash(record).to_hex().as_bytes()[..DIGITS]);
    digits
}
