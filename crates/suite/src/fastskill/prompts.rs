//! Reading of the prompts of a FastSkill project, a CSV file.

use super::INVALID_CSV;
use super::checks::ProjectChecks;
use crate::case::CaseRow;
use crate::problem::{Problem, Problems, SourcePosition};
use crate::tree::SourceText;
use bakeoff_core::CsvQuotes;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const NOT_FOUND: &str = "EVAL_PROMPTS_NOT_FOUND";

/// Required columns.
const REQUIRED: [&str; 3] = ["id", "prompt", "should_trigger"];

/// Columns that are ignored because Bakeoff gives these fields another meaning.
const RESERVED: [&str; 6] =
    ["attachments", "checks", "messages", "threshold", "trials", "workspace"];

/// Cases and the path of their file.
pub(super) struct Prompts {
    pub(super) path: PathBuf,
    pub(super) rows: Vec<CaseRow>,
}

/// Reads the file; `None` if it is unreadable or empty.
pub(super) fn read(
    folder: &Path,
    file: SourceText<'_>,
    checks: &ProjectChecks,
    problems: &mut Problems<'_>,
) -> Option<Prompts> {
    let path = folder.join(file.value);
    let text = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("{}: cannot read the prompts: {error}", file.value);
            let problem = problems.at(file.span, message);
            problem.code = Some(NOT_FOUND);
            problem.hint = Some("`prompts` is relative to the project file".to_owned());
            return None;
        }
    };
    let (rows, found) = read_rows(&text, checks);
    let is_empty = rows.is_empty() && found.is_empty();
    problems.extend(found.into_iter().map(|(position, message, hint)| Problem {
        code: Some(INVALID_CSV),
        message,
        path: path.clone(),
        position: position.map(Box::new),
        hint,
    }));
    if is_empty {
        // A run without trials would pass.
        let problem = problems.at(file.span, format!("{}: no prompts", file.value));
        problem.code = Some(INVALID_CSV);
        return None;
    }
    Some(Prompts { path, rows })
}

/// Position, message and hint of a problem.
type PromptProblem = (Option<SourcePosition>, String, Option<String>);

fn read_rows(text: &[u8], checks: &ProjectChecks) -> (Vec<CaseRow>, Vec<PromptProblem>) {
    let mut problems: Vec<PromptProblem> = Vec::new();
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut quotes = CsvQuotes::default();
    quotes.track(text);
    if let Some(line) = quotes.unclosed_line() {
        let position = Some(SourcePosition::line(line as usize, ""));
        return (Vec::new(), vec![(position, "unclosed quote".to_owned(), None)]);
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let headers: Vec<String> = match reader.headers() {
        Ok(headers) => headers.iter().map(|name| name.trim().to_owned()).collect(),
        Err(error) => return (Vec::new(), vec![(None, format!("not CSV: {error}"), None)]),
    };
    let shown = headers.join(",");
    for name in REQUIRED.iter().filter(|name| !headers.iter().any(|header| header == *name)) {
        let hint = "required columns: id, prompt, should_trigger; optional: tags, workspace_subdir";
        let position = Some(SourcePosition::line(1, &shown));
        problems.push((position, format!("missing column `{name}`"), Some(hint.to_owned())));
    }
    if !problems.is_empty() {
        return (Vec::new(), problems);
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(1, |position| position.line() as usize);
                problems.push((
                    Some(SourcePosition::line(line, "")),
                    format!("not CSV: {error}"),
                    None,
                ));
                continue;
            }
        };
        let line = record.position().map_or(1, |position| position.line() as usize);
        let position = SourcePosition::line(line, &record.iter().collect::<Vec<_>>().join(","));
        match case_fields(&headers, &record, checks) {
            Ok(fields) => {
                rows.push(CaseRow { start: 0, position: Some(Box::new(position)), fields })
            }
            Err((message, hint)) => problems.push((Some(position), message, hint)),
        }
    }
    (rows, problems)
}

/// Returns the case fields of a record.
fn case_fields(
    headers: &[String],
    record: &csv::StringRecord,
    checks: &ProjectChecks,
) -> Result<Map<String, Value>, (String, Option<String>)> {
    if record.len() > headers.len() {
        let message = format!("{} fields, but {} columns", record.len(), headers.len());
        return Err((message, Some("a field with a comma needs quotation marks".to_owned())));
    }
    let of = |name: &str| {
        let column = headers.iter().position(|header| header == name)?;
        record.get(column)
    };
    if let Some(name) = REQUIRED.iter().find(|name| of(name).is_none()) {
        return Err((format!("record without field `{name}`"), None));
    }
    let should_trigger =
        match of("should_trigger").unwrap_or_default().trim().to_lowercase().as_str() {
            "true" | "1" => true,
            "false" | "0" | "" => false,
            other => {
                let message = format!("`should_trigger` cannot be {other:?}");
                return Err((message, Some("write `true` or `false`".to_owned())));
            }
        };
    let others = headers.iter().zip(record).filter(|(name, _)| !RESERVED.contains(&name.as_str()));
    let mut fields: Map<String, Value> =
        others.map(|(name, value)| (name.clone(), value.into())).collect();
    fields.insert("id".to_owned(), of("id").unwrap_or_default().trim().into());
    fields.insert("should_trigger".to_owned(), should_trigger.into());
    fields.insert("checks".to_owned(), checks.of_case(should_trigger));
    Ok(fields)
}
