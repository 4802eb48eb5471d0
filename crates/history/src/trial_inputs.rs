//! Inputs of stored trials: fields of the cases (`cases.jsonl`) and prompts.

use crate::{Error, PastRun};
use bakeoff_core::{CaseIds, TrialKey};
use bakeoff_eval::CASES_FILE;
use bakeoff_suite::Template;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// Input of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TrialInput {
    /// The prompt; for a chain, that of its first step.
    pub prompt: Option<String>,
    /// Fields of the case.
    pub case: Option<Map<String, Value>>,
}

/// Inputs of the trials of a run. Cases stay on disk, so that runs of any size can be exported.
#[derive(Debug)]
pub struct TrialInputs {
    path: PathBuf,
    file: BufReader<File>,
    cases: Arc<CaseIds>,
    /// Offsets of the cases in the file; `None` for those that are not in it.
    offsets: Vec<Option<u64>>,
    /// Prompts by target.
    prompts: HashMap<String, Template>,
    /// Names of all fields of the cases, in the order of their first use.
    fields: Vec<String>,
}

impl PastRun {
    /// Opens the inputs of the trials; `None` if they are not stored, as in runs of older versions.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn inputs(&self) -> Result<Option<TrialInputs>, Error> {
        let path = self.path.join(CASES_FILE);
        let file = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path, source }),
        };
        let suite = &self.file.suite;
        let prompt = |target: &Value| {
            let name = target["name"].as_str()?.to_owned();
            Some((name, Template::stored(target["prompt"].as_str()?)?))
        };
        let cases = Arc::clone(&suite.cases.chosen);
        let mut inputs = TrialInputs {
            path,
            file,
            offsets: vec![None; cases.len()],
            cases,
            prompts: suite.targets.iter().filter_map(prompt).collect(),
            fields: Vec::new(),
        };
        match inputs.scan() {
            Ok(()) => Ok(Some(inputs)),
            Err(source) => Err(Error::Read { path: inputs.path, source }),
        }
    }
}

impl TrialInputs {
    /// Returns the names of all fields of the cases, in the order of their first use.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Reads the input of a trial. Parts that are not stored are absent.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn read(&mut self, key: &TrialKey) -> Result<TrialInput, Error> {
        let offset = self.cases.position(key.case.as_str()).and_then(|at| self.offsets[at]);
        let Some(offset) = offset else { return Ok(TrialInput::default()) };
        let mut line = Vec::new();
        let read = self.file.seek(SeekFrom::Start(offset));
        read.and_then(|_| self.file.read_until(b'\n', &mut line))
            .map_err(|source| Error::Read { path: self.path.clone(), source })?;
        let Some(case) = parse(&line) else { return Ok(TrialInput::default()) };
        let prompt = self.prompts.get(key.target.as_str());
        let prompt = prompt.and_then(|prompt| prompt.render_row(&case).ok());
        Ok(TrialInput { prompt, case: Some(case) })
    }

    /// Reads the file once to find the offsets of the cases and their fields. Damaged lines are skipped.
    fn scan(&mut self) -> io::Result<()> {
        let mut known = HashSet::new();
        let (mut line, mut offset) = (Vec::new(), 0);
        loop {
            line.clear();
            let bytes = self.file.read_until(b'\n', &mut line)?;
            if bytes == 0 {
                return Ok(());
            }
            if let Some(case) = parse(&line) {
                let id = case.get("id").and_then(Value::as_str);
                if let Some(position) = id.and_then(|id| self.cases.position(id)) {
                    self.offsets[position] = Some(offset);
                }
                for name in case.keys() {
                    if !known.contains(name) {
                        known.insert(name.clone());
                        self.fields.push(name.clone());
                    }
                }
            }
            offset += bytes as u64;
        }
    }
}

fn parse(line: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(line).ok()
}
