//! What replies say about all items of a request together: a file beside the output, a line for
//! each request that said something, in the order of the packs.

use super::continued::Continued;
use super::ladder::Answer;
use crate::error::Error;
use crate::task::Task;
use serde_json::Value;
use std::path::Path;

/// What one request said.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    /// The request's name within its pack.
    pub(super) path: String,
    pub(super) model: String,
    /// Numbers of the rows that it was about, from 0.
    pub(super) rows: Vec<u64>,
    pub(super) values: Answer,
}

#[derive(Debug)]
pub(super) struct Facts {
    names: Vec<String>,
    pub(super) file: Continued,
}

impl Facts {
    /// The file for a task that asks for such facts.
    pub(super) fn open(path: &Path, task: &Task) -> Result<Option<Facts>, Error> {
        if task.batch.is_empty() {
            return Ok(None);
        }
        let names = task.batch.iter().map(|field| field.name.clone()).collect();
        Ok(Some(Facts { names, file: Continued::open(path)? }))
    }

    /// Writes what was said about a pack.
    pub(super) fn write(&mut self, pack: u64, mut facts: Vec<Fact>) -> Result<(), Error> {
        facts.sort_by(|one, other| one.path.cmp(&other.path));
        for fact in facts {
            self.file.write(self.line(pack, &fact).as_bytes())?;
        }
        Ok(())
    }

    fn line(&self, pack: u64, fact: &Fact) -> String {
        let values = self.names.iter().zip(&fact.values);
        let values = values
            .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()))
            .collect::<Vec<String>>();
        let rows = serde_json::json!(fact.rows);
        let model = Value::from(fact.model.as_str());
        let values = values.join(",");
        format!("{{\"pack\":{pack},\"rows\":{rows},\"model\":{model},\"batch\":{{{values}}}}}\n")
    }
}
