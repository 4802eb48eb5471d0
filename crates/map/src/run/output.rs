//! The output file, written row by row.

use super::escalation::RowAnswer;
use super::layout::OutputLayout;
use super::resumed_output::{ResumedOutput, io_error};
use crate::error::Error;
use crate::row::Row;
use std::path::{Path, PathBuf};

/// Writer of the output file.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    layout: OutputLayout,
    pub(super) file: ResumedOutput,
}

impl OutputFile {
    /// Opens the file and writes the header.
    pub(super) fn open(path: &Path, layout: OutputLayout) -> Result<OutputFile, Error> {
        let header = layout.header().map_err(|source| io_error("write", path, source))?;
        let mut file = ResumedOutput::open(path)?;
        file.write(&header)?;
        file.flush()?;
        Ok(OutputFile { path: path.to_owned(), layout, file })
    }

    /// Writes a row with its answer or the reason why it has none.
    pub(super) fn write(
        &mut self,
        row: &Row,
        answer: &Result<RowAnswer, String>,
    ) -> Result<(), Error> {
        let bytes = self.layout.row(row, answer);
        self.file.write(&bytes.map_err(|source| io_error("write", &self.path, source))?)
    }
}
