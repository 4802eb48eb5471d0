//! Rows out: the fields of the input, the answers, and why there is none.

use super::ladder::Answer;
use crate::error::Error;
use crate::row::{Row, plain};
use crate::rows::RowFormat;
use crate::task::Task;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The field that says why a row has no answer.
pub(super) const ERROR: &str = "error";

/// How rows are written.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    format: RowFormat,
    /// Fields of the input, in the order of their first appearance.
    columns: Vec<String>,
    /// Fields of an answer.
    answers: Vec<String>,
    into: Option<String>,
}

impl Layout {
    /// # Errors
    ///
    /// When the name of the file says nothing, or an answer would hide a field of the input.
    pub(super) fn new(path: &Path, columns: Vec<String>, task: &Task) -> Result<Layout, Error> {
        let format = RowFormat::of(path).filter(|format| *format != RowFormat::JsonArray);
        let format = format.ok_or_else(|| Error::UnknownOutput(path.to_owned()))?;
        let answers: Vec<String> = task.output.iter().map(|field| field.name.clone()).collect();
        let is_own = |column: &&String| *column == ERROR || answers.contains(column);
        let taken = match &task.into {
            Some(into) => columns.iter().find(|column| *column == into),
            None => columns.iter().find(is_own),
        };
        match taken {
            Some(column) => Err(Error::Collision(column.clone())),
            None => Ok(Layout { format, columns, answers, into: task.into.clone() }),
        }
    }

    /// What stands before the first row.
    fn header(&self) -> Result<Vec<u8>, csv::Error> {
        if self.format != RowFormat::Csv {
            return Ok(Vec::new());
        }
        let prefix = self.into.as_ref().map(|into| format!("{into}.")).unwrap_or_default();
        let own = self.answers.iter().map(String::as_str).chain([ERROR]);
        let own = own.map(|name| format!("{prefix}{name}"));
        record(self.columns.iter().cloned().chain(own))
    }

    fn row(&self, row: &Row, answer: &Result<Answer, String>) -> Result<Vec<u8>, csv::Error> {
        match self.format {
            RowFormat::Csv => {
                let cell = |json: &str| if json == "null" { String::new() } else { plain(json) };
                let input =
                    self.columns.iter().map(|name| row.get(name).map_or(String::new(), cell));
                let own = (0..self.answers.len()).map(|place| match answer {
                    Ok(values) => {
                        values.get(place).map_or(String::new(), |value| cell(value.get()))
                    }
                    Err(_) => String::new(),
                });
                let error = answer.as_ref().err().cloned().unwrap_or_default();
                record(input.chain(own).chain([error]))
            }
            _ => Ok(self.json(row, answer).into_bytes()),
        }
    }

    fn json(&self, row: &Row, answer: &Result<Answer, String>) -> String {
        let mut line = String::from("{");
        let add = |line: &mut String, name: &str, value: &str| {
            if !line.ends_with('{') {
                line.push(',');
            }
            line.push_str(&Value::from(name).to_string());
            line.push(':');
            // One line per row, however it was written: within JSON, line ends are white space.
            match value.contains(['\n', '\r']) {
                true => line.push_str(&value.replace(['\n', '\r'], " ")),
                false => line.push_str(value),
            }
        };
        row.fields.iter().for_each(|(name, value)| add(&mut line, name, value.get()));
        let mut own = String::from("{");
        for (place, name) in self.answers.iter().enumerate() {
            let value = answer.as_ref().ok().and_then(|values| values.get(place));
            add(&mut own, name, value.map_or("null", |value| value.get()));
        }
        let error =
            answer.as_ref().err().map_or(Value::Null, |reason| Value::from(reason.as_str()));
        add(&mut own, ERROR, &error.to_string());
        match &self.into {
            Some(into) => add(&mut line, into, &format!("{own}}}")),
            None => {
                if line.len() > 1 {
                    line.push(',');
                }
                line.push_str(&own[1..]);
            }
        }
        line.push_str("}\n");
        line
    }
}

fn record(cells: impl Iterator<Item = String>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// The file that rows go to, one after the other.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    layout: Layout,
    file: BufWriter<File>,
}

impl Output {
    /// Opens the file and goes on behind its first rows; everything else is cut off.
    pub(super) fn open(path: &Path, layout: Layout, rows: u64) -> Result<Output, Error> {
        let error = |source| failed("write", path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(error)?;
        let header = layout.header().map_err(|source| error(source.into()))?;
        let end = end_of(&mut file, layout.format, rows, header.len() as u64).map_err(error)?;
        file.set_len(end).map_err(error)?;
        file.seek(SeekFrom::End(0)).map_err(error)?;
        let mut output = Output { path: path.to_owned(), layout, file: BufWriter::new(file) };
        if end == 0 {
            output.bytes(&header)?;
            output.flush()?;
        }
        Ok(output)
    }

    pub(super) fn write(
        &mut self,
        row: &Row,
        answer: &Result<Answer, String>,
    ) -> Result<(), Error> {
        let bytes = self.layout.row(row, answer);
        let bytes = bytes.map_err(|source| failed("write", &self.path, source.into()))?;
        self.bytes(&bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|source| failed("write", &self.path, source))
    }

    /// Hands everything to the operating system.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(|source| failed("write", &self.path, source))
    }

    /// Forces everything to disk.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.file.get_ref().sync_data().map_err(|source| failed("write", &self.path, source))
    }
}

pub(super) fn failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Output { action, path: path.to_owned(), source }
}

/// How many whole rows a file holds; none when there is no file.
pub(super) fn whole_rows(path: &Path) -> Result<u64, Error> {
    let error = |source| failed("read", path, source);
    let file = match File::open(path) {
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        file => file.map_err(error)?,
    };
    let mut lines = Lines::new(file, RowFormat::of(path) == Some(RowFormat::Csv));
    let mut rows = 0;
    while lines.next().map_err(error)?.is_some() {
        rows += 1;
    }
    // The header is none.
    let header = u64::from(RowFormat::of(path) == Some(RowFormat::Csv));
    Ok(u64::saturating_sub(rows, header))
}

/// Where so many rows end.
fn end_of(file: &mut File, format: RowFormat, rows: u64, header: u64) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let is_csv = format == RowFormat::Csv;
    let mut lines = Lines::new(file.try_clone()?, is_csv);
    let wanted = if is_csv { rows + 1 } else { rows };
    let mut end = 0;
    for _ in 0..wanted {
        match lines.next()? {
            Some(length) => end += length,
            None => break,
        }
    }
    // A file without its header has no rows either.
    Ok(if is_csv && end < header { 0 } else { end })
}

/// The lengths of whole lines; of CSV, a line goes on within quotes.
struct Lines {
    file: BufReader<File>,
    is_csv: bool,
    buffer: Vec<u8>,
}

impl Lines {
    fn new(file: File, is_csv: bool) -> Lines {
        Lines { file: BufReader::with_capacity(1 << 16, file), is_csv, buffer: Vec::new() }
    }

    fn next(&mut self) -> std::io::Result<Option<u64>> {
        self.buffer.clear();
        loop {
            let before = self.buffer.len();
            let read = self.file.read_until(b'\n', &mut self.buffer)?;
            if read == 0 || self.buffer.last() != Some(&b'\n') {
                return Ok(None);
            }
            // A quote within quotes is doubled, so an odd number of them is an open one.
            let quotes = self.buffer.iter().filter(|byte| **byte == b'"').count();
            if !self.is_csv || quotes % 2 == 0 {
                return Ok(Some(self.buffer.len() as u64));
            }
            debug_assert!(self.buffer.len() > before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Field, FieldType};
    use serde_json::value::RawValue;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn task(into: Option<&str>) -> Task {
        let fields =
            vec![Field::new("label", FieldType::String), Field::new("n", FieldType::Number)];
        Task { into: into.map(str::to_owned), ..Task::new("x", fields) }
    }

    fn written(name: &str, into: Option<&str>) -> (tempfile::TempDir, PathBuf, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let layout = Layout::new(&path, columns, &task(into)).unwrap();
        let mut output = Output::open(&path, layout, 0).unwrap();
        let row = |fields: &[(&str, &str)]| Row {
            index: 0,
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), raw(value))).collect(),
        };
        let good = Ok(vec![raw("\"x, \\\"y\\\"\\nz\""), raw("1.50")]);
        output.write(&row(&[("b", "[1,\n2]"), ("a", "1.0")]), &good).unwrap();
        output.write(&row(&[("a", "null")]), &Err("too \"bad\"".to_owned())).unwrap();
        output.write(&row(&[]), &good).unwrap();
        output.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        (folder, path, text)
    }

    #[test]
    fn rows_have_their_fields_their_answers_and_their_reasons() {
        insta::assert_snapshot!(written("o.jsonl", None).2, @r#"
        {"b":[1, 2],"a":1.0,"label":"x, \"y\"\nz","n":1.50,"error":null}
        {"a":null,"label":null,"n":null,"error":"too \"bad\""}
        {"label":"x, \"y\"\nz","n":1.50,"error":null}
        "#);
        insta::assert_snapshot!(written("o.jsonl", Some("answer")).2, @r#"
        {"b":[1, 2],"a":1.0,"answer":{"label":"x, \"y\"\nz","n":1.50,"error":null}}
        {"a":null,"answer":{"label":null,"n":null,"error":"too \"bad\""}}
        {"answer":{"label":"x, \"y\"\nz","n":1.50,"error":null}}
        "#);
        insta::assert_snapshot!(written("o.csv", Some("answer")).2, @r#"
        a,b,answer.label,answer.n,answer.error
        1.0,"[1,
        2]","x, ""y""
        z",1.50,
        ,,,,"too ""bad"""
        ,,"x, ""y""
        z",1.50,
        "#);
    }

    #[test]
    fn a_file_that_was_cut_anywhere_goes_on_where_it_should() {
        for name in ["o.jsonl", "o.csv"] {
            let (_folder, path, whole) = written(name, None);
            assert_eq!(whole_rows(&path).unwrap(), 3, "{name}");
            for cut in 0..=whole.len() {
                std::fs::write(&path, &whole.as_bytes()[..cut]).unwrap();
                let rows = whole_rows(&path).unwrap();
                assert!(rows <= 3 && (cut < whole.len() || rows == 3), "{name} {cut}");
                let columns = vec!["a".to_owned(), "b".to_owned()];
                let layout = Layout::new(&path, columns, &task(None)).unwrap();
                Output::open(&path, layout, rows).unwrap().finish().unwrap();
                let left = std::fs::read_to_string(&path).unwrap();
                assert!(whole.starts_with(&left), "{name} {cut}");
                assert_eq!(whole_rows(&path).unwrap(), rows, "{name} {cut}");
            }
        }
    }

    #[test]
    fn answers_hide_nothing() {
        let new = |column: &str, into| {
            let layout = Layout::new(Path::new("o.csv"), vec![column.to_owned()], &task(into));
            layout.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(new("label", None).unwrap_err(), "the rows already have a field `label`");
        assert!(new("error", None).is_err() && new("answer", Some("answer")).is_err());
        assert!(new("label", Some("answer")).is_ok());
        let array = Layout::new(Path::new("o.json"), Vec::new(), &task(None)).unwrap_err();
        assert_eq!(array.to_string(), "o.json is neither .jsonl, .ndjson nor .csv");
    }
}
