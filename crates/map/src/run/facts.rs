//! What replies say about all items of a request together: a file beside the output, a line for
//! each request that said something, in the order of the packs.

use super::ladder::Answer;
use super::output::failed;
use crate::error::Error;
use crate::task::Task;
use serde::Deserialize;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

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
    path: PathBuf,
    names: Vec<String>,
    file: BufWriter<File>,
}

#[derive(Deserialize)]
struct Numbered {
    pack: u64,
}

impl Facts {
    /// The file for a task that asks for such facts, without what it says about later packs.
    pub(super) fn open(path: &Path, task: &Task, first_open: u64) -> Result<Option<Facts>, Error> {
        if task.batch.is_empty() {
            return Ok(None);
        }
        let error = |source| failed("write", path, source);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(error)?;
        let end = end_before(&file, first_open).map_err(error)?;
        file.set_len(end).map_err(error)?;
        file.seek(SeekFrom::End(0)).map_err(error)?;
        let names = task.batch.iter().map(|field| field.name.clone()).collect();
        Ok(Some(Facts { path: path.to_owned(), names, file: BufWriter::new(file) }))
    }

    /// Writes what was said about a pack.
    pub(super) fn write(&mut self, pack: u64, mut facts: Vec<Fact>) -> Result<(), Error> {
        facts.sort_by(|one, other| one.path.cmp(&other.path));
        for fact in facts {
            let line = self.line(pack, &fact);
            let written = self.file.write_all(line.as_bytes());
            written.map_err(|source| failed("write", &self.path, source))?;
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

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(|source| failed("write", &self.path, source))
    }
}

/// Where the lines about earlier packs end.
fn end_before(file: &File, first_open: u64) -> std::io::Result<u64> {
    let mut reader = BufReader::new(file.try_clone()?);
    reader.seek(SeekFrom::Start(0))?;
    let (mut end, mut line) = (0, Vec::new());
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        let numbered = serde_json::from_slice::<Numbered>(&line);
        match numbered {
            Ok(Numbered { pack }) if pack < first_open && line.ends_with(b"\n") => {
                end += line.len() as u64;
            }
            _ => return Ok(end),
        }
    }
}
