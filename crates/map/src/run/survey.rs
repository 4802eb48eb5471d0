//! The first look at the rows: how many there are, how large, and whether all can be read. Nothing
//! is asked before the last of them has been seen.

use super::output::failed;
use crate::auto::Sizes;
use crate::error::Error;
use crate::pack::{PackLimits, Packer};
use crate::prompt;
use crate::row::Row;
use crate::rows::Rows;
use crate::task::{Format, Task};
use std::collections::HashSet;
use std::path::Path;

/// An id as long as most are, for measuring.
const SOME_ID: &str = "k3v9qp";

/// What is known of the rows.
#[derive(Debug, Clone)]
pub(super) struct Survey {
    pub(super) rows: u64,
    /// A name for all that they hold.
    pub(super) digest: String,
    /// Their fields, in the order of first appearance.
    pub(super) columns: Vec<String>,
    /// Tokens of all items together, with no item counted as more than a request may have.
    tokens: u64,
}

/// Tokens of a row's item.
pub(super) fn tokens(task: &Task, row: &Row) -> u64 {
    prompt::tokens(&prompt::item(task, row, SOME_ID)) + 1
}

impl Survey {
    pub(super) fn new(input: &Path, task: &Task) -> Result<Survey, Error> {
        let mut hasher = blake3::Hasher::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut survey = Survey { rows: 0, digest: String::new(), columns: Vec::new(), tokens: 0 };
        for row in Rows::open(input)? {
            let row = row?;
            hasher.update(&(row.fields.len() as u64).to_le_bytes());
            for (name, value) in &row.fields {
                for text in [name.as_str(), value.get()] {
                    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
                }
                if !known.contains(name) {
                    known.insert(name.clone());
                    survey.columns.push(name.clone());
                }
            }
            survey.rows += 1;
            // One that goes alone anyway says nothing about how many of the others go together.
            let tokens = tokens(task, &row).min(task.max_tokens_per_request);
            survey.tokens = survey.tokens.saturating_add(tokens);
        }
        survey.digest = hasher.finalize().to_hex().chars().take(16).collect();
        let shown = task.show.iter().flatten();
        let mut missing = shown.filter(|shown| !known.contains(&shown.field));
        match missing.next() {
            Some(missing) if survey.rows > 0 => Err(Error::NoSuchField(missing.field.clone())),
            _ => Ok(survey),
        }
    }

    /// How large things are, on average.
    pub(super) fn sizes(&self, task: &Task, format: Format) -> Sizes {
        let rows = self.rows.max(1) as f64;
        Sizes {
            overhead: overhead(task, format) as f64,
            item: self.tokens as f64 / rows,
            answer: task.output_tokens_per_item() as f64,
            budget: task.max_tokens_per_request as f64,
        }
    }
}

/// Tokens of a prompt without items, and of what a reply has besides answers.
fn overhead(task: &Task, format: Format) -> u64 {
    let batch: u64 = task.batch.iter().map(crate::task::Field::tokens).sum();
    let system = task.system.as_deref().map_or(0, prompt::tokens);
    prompt::tokens(&prompt::head(task, format)) + system + batch
}

/// What a request may hold.
pub(super) fn pack_limits(task: &Task, format: Format, items: u32, tpm: Option<u64>) -> PackLimits {
    let ceilings = [task.context_tokens, tpm];
    PackLimits {
        items,
        budget: task
            .max_tokens_per_request
            .min(ceilings.into_iter().flatten().min().unwrap_or(u64::MAX)),
        ceiling: ceilings.into_iter().flatten().min(),
        reply: task.max_tokens,
        overhead: overhead(task, format),
        answer: task.output_tokens_per_item(),
    }
}

/// How rows fall into packs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Packed {
    /// Packs that are sent.
    pub(super) requests: u64,
    /// The first pack that is not wholly among the rows that are done.
    pub(super) first_open: u64,
    /// The rows before it.
    pub(super) rows_before: u64,
}

/// Counts packs, and finds out where to go on after so many rows.
pub(super) fn count(
    input: &Path,
    task: &Task,
    limits: PackLimits,
    done: u64,
) -> Result<Packed, Error> {
    let mut packed = Packed::default();
    let mut packer = Packer::new(limits);
    let mut note = |pack: Option<crate::pack::Pack>| {
        let Some(pack) = pack else { return };
        packed.requests += u64::from(pack.refused.is_none());
        let end = pack.rows.last().map_or(0, |row| row.index + 1);
        if end <= done {
            packed.first_open = pack.number + 1;
            packed.rows_before = end;
        }
    };
    for row in Rows::open(input)? {
        let row = row?;
        let tokens = tokens(task, &row);
        note(packer.push(Row { index: row.index, fields: Vec::new() }, tokens));
        note(packer.ready());
    }
    while let Some(pack) = packer.finish() {
        note(Some(pack));
    }
    Ok(packed)
}

/// Forgets an earlier job.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("remove", path, source))
        }
        _ => Ok(()),
    }
}
