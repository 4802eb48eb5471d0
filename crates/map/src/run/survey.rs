//! The first look at the rows: how many there are, how large, and whether all can be read. Nothing
//! is asked before the last of them has been seen.

use crate::auto::Sizes;
use crate::error::Error;
use crate::pack::{Pack, PackLimits, Packer};
use crate::prompt;
use crate::row::Row;
use crate::rows::Rows;
use crate::task::{Format, Task};
use bakeoff_core::Usage;
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

/// A name for rows, by all that they hold.
#[derive(Debug, Default)]
pub(super) struct Digest(blake3::Hasher);

impl Digest {
    pub(super) fn add(&mut self, row: &Row) {
        self.0.update(&(row.fields.len() as u64).to_le_bytes());
        for text in row.fields.iter().flat_map(|(name, value)| [name.as_str(), value.get()]) {
            self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }

    pub(super) fn finish(&self) -> String {
        self.0.finalize().to_hex().chars().take(16).collect()
    }
}

impl Survey {
    pub(super) fn new(input: &Path, task: &Task) -> Result<Survey, Error> {
        let mut digest = Digest::default();
        let mut known: HashSet<String> = HashSet::new();
        let mut survey = Survey { rows: 0, digest: String::new(), columns: Vec::new(), tokens: 0 };
        let rows = Rows::open(input)?;
        let named = rows.columns().unwrap_or_default();
        known.extend(named.iter().cloned());
        survey.columns.extend(named.iter().cloned());
        for row in rows {
            let row = row?;
            digest.add(&row);
            for (name, _) in &row.fields {
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
        survey.digest = digest.finish();
        let shown = task.show.iter().flatten();
        let mut missing = shown.filter(|shown| !known.contains(&shown.field));
        match missing.next() {
            // Where there is nothing at all, nothing can be missing.
            Some(missing) if !known.is_empty() => Err(Error::NoSuchField(missing.field.clone())),
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

    /// What all rows are likely to use in so many requests.
    pub(super) fn usage(&self, limits: PackLimits, requests: u64) -> Usage {
        let input = limits.overhead.saturating_mul(requests).saturating_add(self.tokens);
        let output = limits.answer.saturating_mul(self.rows);
        Usage { input, output, ..Usage::default() }
    }
}

/// Tokens of a prompt without items, and of what a reply has besides answers.
pub(super) fn overhead(task: &Task, format: Format) -> u64 {
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

/// How many requests rows take, when every answer is good at once.
pub(super) fn requests(input: &Path, task: &Task, limits: PackLimits) -> Result<u64, Error> {
    let mut packer = Packer::new(limits);
    let mut requests = 0;
    let mut note = |pack: Option<Pack>| {
        requests += u64::from(pack.is_some_and(|pack| pack.refused.is_none()));
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
    Ok(requests)
}
