//! The file with batch values: the fields that a reply gives once for all items of its request. It has
//! one line per request with such values, in the order of the packs.

use super::escalation::RowAnswer;
use super::resumed_output::ResumedOutput;
use crate::error::Error;
use crate::task::Task;
use serde_json::Value;
use std::path::Path;

/// Batch values of one request.
#[derive(Debug, Clone)]
pub(super) struct BatchValues {
    /// Path of the request within its pack.
    pub(super) path: String,
    pub(super) model: String,
    /// Indices of the rows in the request, from 0.
    pub(super) rows: Vec<u64>,
    pub(super) values: RowAnswer,
}

/// Writer of the file with batch values.
#[derive(Debug)]
pub(super) struct BatchFile {
    names: Vec<String>,
    pub(super) file: ResumedOutput,
}

impl BatchFile {
    /// Opens the file if the task has batch fields.
    pub(super) fn open(path: &Path, task: &Task) -> Result<Option<BatchFile>, Error> {
        if task.batch.is_empty() {
            return Ok(None);
        }
        let names = task.batch.iter().map(|field| field.name.clone()).collect();
        Ok(Some(BatchFile { names, file: ResumedOutput::open(path)? }))
    }

    /// Writes the batch values of a pack.
    pub(super) fn write(&mut self, pack: u64, mut batches: Vec<BatchValues>) -> Result<(), Error> {
        batches.sort_by(|one, other| one.path.cmp(&other.path));
        for batch in batches {
            self.file.write(self.line(pack, &batch).as_bytes())?;
        }
        Ok(())
    }

    fn line(&self, pack: u64, batch: &BatchValues) -> String {
        let values = self.names.iter().zip(&batch.values);
        let values = values
            .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()))
            .collect::<Vec<String>>();
        let rows = serde_json::json!(batch.rows);
        let model = Value::from(batch.model.as_str());
        let values = values.join(",");
        format!("{{\"pack\":{pack},\"rows\":{rows},\"model\":{model},\"batch\":{{{values}}}}}\n")
    }
}
