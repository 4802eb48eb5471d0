//! Formats of case files: JSON Lines, JSON, CSV and TOML.

use super::csv_columns::CsvColumns;
use crate::problem::{Problem, SourcePosition};
use bakeoff_core::CsvQuotes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fields of a case with their position.
#[derive(Debug, Clone)]
pub(crate) struct CaseRow {
    /// Byte offset of the row in its file; 0 for rows in memory.
    pub(crate) start: u64,
    pub(crate) position: Option<Box<SourcePosition>>,
    pub(crate) fields: Map<String, Value>,
}

pub(super) type RowIter = Box<dyn Iterator<Item = Result<CaseRow, Problem>> + Send>;

/// Maximum length of a line. Without it, a file without line breaks would be read into memory.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// Format of the cases.
#[derive(Debug, Clone)]
pub(super) enum CaseFormat {
    /// One JSON object per line.
    JsonLines,
    /// Header and one case per record.
    Csv,
    /// Cases in memory: from the suite file, a JSON array or a TOML file.
    InMemory(Arc<Vec<CaseRow>>),
}

impl CaseFormat {
    /// Determines the format by the file extension and reads JSON and TOML files into memory.
    pub(super) fn open(path: &Path) -> Result<CaseFormat, Problem> {
        let file_problem = |message: String, hint: &str| Problem {
            code: None,
            message,
            path: path.to_owned(),
            position: None,
            hint: Some(hint.to_owned()),
        };
        // Cases are read more than once, which excludes pipes and devices.
        let metadata = std::fs::metadata(path).map_err(|error| {
            let message = format!("cannot read the cases: {error}");
            file_problem(message, "`file` is relative to the suite file")
        })?;
        if !metadata.is_file() {
            let message = "cannot read the cases: not a regular file".to_owned();
            return Err(file_problem(message, "write the cases to a file first"));
        }
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension {
            "jsonl" | "ndjson" => Ok(CaseFormat::JsonLines),
            "csv" => Ok(CaseFormat::Csv),
            "json" => json_rows(path).map(|rows| CaseFormat::InMemory(Arc::new(rows))),
            "toml" => toml_rows(path).map(|rows| CaseFormat::InMemory(Arc::new(rows))),
            _ => Err(file_problem(
                format!("unknown case file extension `{extension}`"),
                "use .jsonl, .json, .csv or .toml",
            )),
        }
    }

    /// Returns all rows in file order.
    pub(super) fn rows(&self, path: &Path) -> RowIter {
        match self {
            CaseFormat::JsonLines => json_lines(path.to_owned()),
            CaseFormat::Csv => csv_records(path.to_owned()),
            CaseFormat::InMemory(rows) => {
                let rows = Arc::clone(rows);
                Box::new((0..rows.len()).map(move |index| Ok(rows[index].clone())))
            }
        }
    }
}

/// Random access to the rows of a file that was read once.
#[derive(Debug)]
pub(super) enum RowReader {
    /// Offsets of the rows and of the end of the file.
    JsonLines {
        file: File,
        starts: Vec<u64>,
    },
    /// Offsets as for JSON Lines, and the names of the columns.
    Csv {
        file: File,
        starts: Vec<u64>,
        columns: CsvColumns,
    },
    InMemory(Arc<Vec<CaseRow>>),
}

impl RowReader {
    /// Opens the file; `starts` are the offsets of the rows.
    pub(super) fn open(
        format: &CaseFormat,
        path: &Path,
        mut starts: Vec<u64>,
    ) -> Result<RowReader, Problem> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let open = || open().map_err(|error| io_problem(path, &error));
        Ok(match format {
            CaseFormat::InMemory(rows) => RowReader::InMemory(Arc::clone(rows)),
            CaseFormat::JsonLines => {
                let (file, length) = open()?;
                starts.push(length);
                RowReader::JsonLines { file, starts }
            }
            CaseFormat::Csv => {
                let (_, columns) = csv_reader(path)?;
                let (file, length) = open()?;
                starts.push(length);
                RowReader::Csv { file, starts, columns }
            }
        })
    }

    /// Returns the row with the number `number`, from 0; `None` if the file no longer has it.
    pub(super) fn row(&self, path: &Path, number: usize) -> Result<Option<CaseRow>, Problem> {
        match self {
            RowReader::InMemory(rows) => Ok(rows.get(number).cloned()),
            RowReader::JsonLines { file, starts } => {
                let bytes =
                    row_bytes(file, starts, number).map_err(|error| io_problem(path, &error))?;
                json_line(path, number + 1, 0, &bytes)
            }
            RowReader::Csv { file, starts, columns } => {
                let bytes =
                    row_bytes(file, starts, number).map_err(|error| io_problem(path, &error))?;
                let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&*bytes);
                let first = reader.into_records().next();
                first.map(|record| csv_row(path, columns, record)).transpose()
            }
        }
    }
}

fn row_bytes(file: &File, starts: &[u64], number: usize) -> std::io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let (Some(start), Some(end)) = (starts.get(number), starts.get(number + 1)) else {
        return Ok(Vec::new());
    };
    let mut bytes = vec![0; end.saturating_sub(*start).min(MAX_LINE_BYTES) as usize];
    file.read_exact_at(&mut bytes, *start)?;
    Ok(bytes)
}

fn io_problem(path: &Path, error: &std::io::Error) -> Problem {
    let message = format!("cannot read the cases: {error}");
    Problem { code: None, message, path: path.to_owned(), position: None, hint: None }
}

fn line_problem(path: &Path, line: usize, text: &str, message: String) -> Problem {
    let position = Some(Box::new(SourcePosition::line(line, text)));
    Problem { code: None, message, path: path.to_owned(), position, hint: None }
}

/// Creates a problem for invalid JSON on a line, with its column.
fn json_problem(path: &Path, line: usize, text: &str, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    // The error counts lines within this line.
    let message = message.split(" at line ").next().unwrap_or_default();
    let mut problem = line_problem(path, line, text, format!("not JSON: {message}"));
    if let Some(position) = &mut problem.position {
        let start = error.column().saturating_sub(1);
        // The excerpt has only the beginning of a long line.
        if let Some(before) = text.get(..start) {
            position.column = before.chars().count() + 1;
            position.span = start.min(position.excerpt.len())..position.excerpt.len();
        }
    }
    problem
}

/// Line of a file.
struct FileLine {
    /// Line number, from 1.
    number: usize,
    /// Byte offset of the line.
    start: u64,
    bytes: std::io::Result<Vec<u8>>,
}

/// Returns the lines of a file up to the first error.
fn lines(file: File) -> impl Iterator<Item = FileLine> {
    let mut reader = Some(BufReader::with_capacity(1 << 16, file));
    let mut end = 0;
    (1..).map_while(move |number| {
        let mut line = Vec::new();
        let read = reader.as_mut()?.take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let start = end;
        end += line.len() as u64;
        let bytes = match read {
            Ok(0) => return None,
            Ok(length) if length as u64 == MAX_LINE_BYTES => {
                Err(std::io::Error::other(format!("line {number} is too long")))
            }
            Ok(_) => Ok(line),
            Err(error) => Err(error),
        };
        if bytes.is_err() {
            reader = None;
        }
        Some(FileLine { number, start, bytes })
    })
}

fn json_lines(path: PathBuf) -> RowIter {
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => return Box::new(std::iter::once(Err(io_problem(&path, &error)))),
    };
    Box::new(lines(file).filter_map(move |line| match line.bytes {
        Ok(bytes) => json_line(&path, line.number, line.start, &bytes).transpose(),
        Err(error) => Some(Err(io_problem(&path, &error))),
    }))
}

/// Parses the case on a line; `None` for a blank line.
fn json_line(
    path: &Path,
    number: usize,
    start: u64,
    bytes: &[u8],
) -> Result<Option<CaseRow>, Problem> {
    let problem = |text: &str, message: &str| line_problem(path, number, text, message.to_owned());
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(problem(&String::from_utf8_lossy(bytes), "not UTF-8"));
    };
    let text = text.trim_start_matches('\u{feff}').trim_end();
    if text.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => Ok(Some(CaseRow {
            start,
            position: Some(Box::new(SourcePosition::line(number, text))),
            fields,
        })),
        Ok(_) => Err(problem(text, "a case must be a JSON object")),
        Err(error) => Err(json_problem(path, number, text, &error)),
    }
}

fn csv_records(path: PathBuf) -> RowIter {
    let (reader, columns) = match csv_reader(&path) {
        Ok(opened) => opened,
        Err(problem) => return Box::new(std::iter::once(Err(problem))),
    };
    Box::new(reader.into_records().map(move |record| csv_row(&path, &columns, record)))
}

fn csv_reader(path: &Path) -> Result<(csv::Reader<File>, CsvColumns), Problem> {
    let problem = |error: csv::Error| csv_problem(path, &error);
    let file = File::open(path).map_err(|error| io_problem(path, &error))?;
    if let Some(line) = unclosed_quote(file).map_err(|error| io_problem(path, &error))? {
        return Err(line_problem(path, line, "", "unclosed quote".to_owned()));
    }
    let mut reader = csv::ReaderBuilder::new().from_path(path).map_err(problem)?;
    let headers = reader.headers().map_err(problem)?;
    let name = |header: &str| header.trim_start_matches('\u{feff}').trim().to_owned();
    let headers: Vec<String> = headers.iter().map(name).collect();
    let is_duplicate = |(number, name): (usize, &String)| headers[..number].contains(name);
    if let Some(name) =
        headers.iter().enumerate().find(|column| is_duplicate(*column)).map(|(_, n)| n)
    {
        let line = headers.join(",");
        return Err(line_problem(path, 1, &line, format!("duplicate column `{name}`")));
    }
    let columns = CsvColumns::read(&headers).map_err(|error| {
        let problem = line_problem(path, 1, &headers.join(","), error.message);
        Problem { hint: error.hint, ..problem }
    })?;
    Ok((reader, columns))
}

/// Returns the line of a quote that is not closed: the parser would take the rest of the file for one cell.
fn unclosed_quote(mut file: File) -> std::io::Result<Option<usize>> {
    let mut quotes = CsvQuotes::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => quotes.track(&buffer[..length]),
        }
    }
    Ok(quotes.unclosed_line().map(|line| line as usize))
}

fn csv_problem(path: &Path, error: &csv::Error) -> Problem {
    let line = error.position().map_or(1, |position| position.line() as usize);
    line_problem(path, line, "", format!("not CSV: {error}"))
}

fn csv_row(
    path: &Path,
    columns: &CsvColumns,
    record: csv::Result<csv::StringRecord>,
) -> Result<CaseRow, Problem> {
    let record = record.map_err(|error| csv_problem(path, &error))?;
    let position = record.position();
    let line = position.map_or(1, |position| position.line() as usize);
    let start = position.map_or(0, csv::Position::byte);
    let text = record.iter().collect::<Vec<_>>().join(",");
    let fields =
        columns.fields(&record).map_err(|message| line_problem(path, line, &text, message))?;
    Ok(CaseRow { start, position: Some(Box::new(SourcePosition::line(line, &text))), fields })
}

fn read_text(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| io_problem(path, &error))
}

fn json_rows(path: &Path) -> Result<Vec<CaseRow>, Problem> {
    let text = read_text(path)?;
    let rows: Vec<&RawValue> =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
            let message = format!("not a JSON array of cases: {error}");
            line_problem(path, error.line(), line, message)
        })?;
    rows.into_iter()
        .map(|row| {
            // Each row is a slice of the text, so its address gives its offset.
            let start = (row.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            let position =
                Some(Box::new(SourcePosition::of(&text, start..start + row.get().len())));
            match serde_json::from_str(row.get()) {
                Ok(Value::Object(fields)) => Ok(CaseRow { start: 0, position, fields }),
                _ => Err(Problem {
                    code: None,
                    message: "a case must be a JSON object".to_owned(),
                    path: path.to_owned(),
                    position,
                    hint: None,
                }),
            }
        })
        .collect()
}

fn toml_rows(path: &Path) -> Result<Vec<CaseRow>, Problem> {
    let text = read_text(path)?;
    let problem = |span: std::ops::Range<usize>, message: String| Problem {
        code: None,
        message,
        path: path.to_owned(),
        position: Some(Box::new(SourcePosition::of(&text, span))),
        hint: Some("write each case as a [[case]] table".to_owned()),
    };
    let table = toml::de::DeTable::parse(&text)
        .map_err(|error| problem(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    for (key, value) in table.get_ref() {
        if key.get_ref() != "case" {
            return Err(problem(key.span(), format!("unknown key `{}`", key.get_ref())));
        }
        let is_list = |value: &toml::de::DeValue<'_>| {
            value.as_array().is_some_and(|items| items.iter().all(|item| item.get_ref().is_table()))
        };
        if !is_list(value.get_ref()) {
            return Err(problem(value.span(), "`case` must be a list of tables".to_owned()));
        }
    }
    let node = crate::tree::Node::new(table.get_ref(), table.span());
    Ok(node
        .tables("case")
        .into_iter()
        .map(|case| CaseRow {
            start: 0,
            position: Some(Box::new(SourcePosition::of(&text, case.span.clone()))),
            fields: case.to_json(),
        })
        .collect())
}
