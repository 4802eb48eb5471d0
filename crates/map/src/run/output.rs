//! The file that rows go to, one after the other.

use super::continued::{Continued, failed};
use super::ladder::Answer;
use super::layout::Layout;
use crate::error::Error;
use crate::row::Row;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    layout: Layout,
    pub(super) file: Continued,
}

impl Output {
    /// Opens the file before its first row.
    pub(super) fn open(path: &Path, layout: Layout) -> Result<Output, Error> {
        let header = layout.header().map_err(|source| failed("write", path, source))?;
        let mut file = Continued::open(path)?;
        file.write(&header)?;
        file.flush()?;
        Ok(Output { path: path.to_owned(), layout, file })
    }

    pub(super) fn write(
        &mut self,
        row: &Row,
        answer: &Result<Answer, String>,
    ) -> Result<(), Error> {
        let bytes = self.layout.row(row, answer);
        self.file.write(&bytes.map_err(|source| failed("write", &self.path, source))?)
    }
}
