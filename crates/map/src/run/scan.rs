//! First scan of the input: number and size of the rows, and their validity. No request is sent before
//! it is complete.

use crate::error::Error;
use crate::pack::{Pack, PackLimits, Packer};
use crate::pack_size::TokenSizes;
use crate::prompt;
use crate::row::Row;
use crate::rows::Rows;
use crate::task::{ReplyFormat, Task};
use bakeoff_core::{Usage, estimate_tokens};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::path::Path;

/// An id of the usual length, for size estimates.
const SAMPLE_ID: &str = "k3v9qp";

/// Result of scanning the input.
#[derive(Debug, Clone)]
pub(super) struct InputScan {
    pub(super) rows: u64,
    /// Digest of all rows.
    pub(super) digest: String,
    /// Fields of the rows, in the order of their first appearance.
    pub(super) columns: Vec<String>,
    /// Tokens of all items. An item larger than a request counts as one request.
    tokens: u64,
}

/// Returns the estimated tokens of a row's item.
pub(super) fn item_tokens(task: &Task, row: &Row) -> u64 {
    estimate_tokens(&prompt::item_line(task, row, SAMPLE_ID)) + 1
}

/// Digest of rows, from all their fields.
#[derive(Debug, Default)]
pub(super) struct RowDigest(blake3::Hasher);

impl RowDigest {
    /// Adds a row.
    pub(super) fn add(&mut self, row: &Row) {
        self.0.update(&(row.fields.len() as u64).to_le_bytes());
        for text in row.fields.iter().flat_map(|(name, value)| [name.as_str(), value.get()]) {
            self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }

    /// Returns the digest of the rows added so far.
    pub(super) fn finish(&self) -> String {
        self.0.finalize().to_hex().chars().take(16).collect()
    }
}

impl InputScan {
    /// Reads all rows of a file.
    pub(super) fn new(input: &Path, task: &Task) -> Result<InputScan, Error> {
        let rows = Rows::open(input)?;
        let header = rows.columns().unwrap_or_default().to_vec();
        InputScan::of_rows(rows.map(|row| row.map_err(Error::from)), &header, task)
    }

    /// Scans rows. `header` has the fields that are known before the first row.
    pub(super) fn of_rows<R: Borrow<Row>>(
        rows: impl Iterator<Item = Result<R, Error>>,
        header: &[String],
        task: &Task,
    ) -> Result<InputScan, Error> {
        let mut digest = RowDigest::default();
        let mut known: HashSet<String> = HashSet::new();
        let mut scan = InputScan { rows: 0, digest: String::new(), columns: Vec::new(), tokens: 0 };
        known.extend(header.iter().cloned());
        scan.columns.extend(header.iter().cloned());
        for row in rows {
            let row = row?;
            let row = row.borrow();
            digest.add(row);
            for (name, _) in &row.fields {
                if !known.contains(name) {
                    known.insert(name.clone());
                    scan.columns.push(name.clone());
                }
            }
            scan.rows += 1;
            // An item that needs its own request must not distort the average of the others.
            let tokens = item_tokens(task, row).min(task.max_tokens_per_request);
            scan.tokens = scan.tokens.saturating_add(tokens);
        }
        scan.digest = digest.finish();
        let shown = task.show.iter().flatten();
        let mut missing = shown.filter(|shown| !known.contains(&shown.field));
        match missing.next() {
            // An input without any field is empty, so no field is missing from its rows.
            Some(missing) if !known.is_empty() => Err(Error::NoSuchField(missing.field.clone())),
            _ => Ok(scan),
        }
    }

    /// Returns the average sizes of prompts and answers.
    pub(super) fn token_sizes(&self, task: &Task, format: ReplyFormat) -> TokenSizes {
        let rows = self.rows.max(1) as f64;
        TokenSizes {
            overhead: overhead_tokens(task, format) as f64,
            item: self.tokens as f64 / rows,
            answer: task.output_tokens_per_item() as f64,
            budget: task.max_tokens_per_request as f64,
        }
    }

    /// Returns the likely usage of all rows in this number of requests.
    pub(super) fn expected_usage(&self, limits: PackLimits, requests: u64) -> Usage {
        let input = limits.overhead.saturating_mul(requests).saturating_add(self.tokens);
        let output = limits.answer.saturating_mul(self.rows);
        Usage { input, output, ..Usage::default() }
    }
}

/// Returns the tokens of a prompt without items and of the parts of a reply that are not answers.
pub(super) fn overhead_tokens(task: &Task, format: ReplyFormat) -> u64 {
    let batch: u64 = task.batch.iter().map(crate::task::Field::estimate_tokens).sum();
    let system = task.system.as_deref().map_or(0, estimate_tokens);
    estimate_tokens(&prompt::preamble(task, format)) + system + batch
}

/// Returns the limits of a pack.
pub(super) fn pack_limits(
    task: &Task,
    format: ReplyFormat,
    items: u32,
    tpm: Option<u64>,
) -> PackLimits {
    let ceiling = [task.context_tokens, tpm].into_iter().flatten().min();
    PackLimits {
        items,
        budget: task.max_tokens_per_request.min(ceiling.unwrap_or(u64::MAX)),
        ceiling,
        reply: task.max_tokens,
        overhead: overhead_tokens(task, format),
        answer: task.output_tokens_per_item(),
    }
}

/// Returns the number of requests for all rows if every first answer is valid.
pub(super) fn count_requests(input: &Path, task: &Task, limits: PackLimits) -> Result<u64, Error> {
    let mut packer = Packer::new(limits);
    let mut requests = 0;
    let mut count = |pack: Option<Pack>| {
        requests += u64::from(pack.is_some_and(|pack| pack.rejection.is_none()));
    };
    for row in Rows::open(input)? {
        let row = row?;
        let tokens = item_tokens(task, &row);
        count(packer.push(Row { index: row.index, fields: Vec::new() }, tokens));
        count(packer.take_oversized());
    }
    while let Some(pack) = packer.finish() {
        count(Some(pack));
    }
    Ok(requests)
}
