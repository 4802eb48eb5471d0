//! Cases: what the targets are asked, read from files of any size.

use crate::ids::CaseIds;
use crate::problem::{Place, Problem};
use crate::template::fields;
use minijinja::Value as Fields;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its place among all cases, from 0.
    pub index: usize,
    /// Its id; its number when it has none of its own.
    pub id: String,
    /// Words to choose it by.
    pub tags: Vec<String>,
    /// All its fields, for templates.
    pub fields: Fields,
}

type Row = Map<String, Value>;
type Rows = Box<dyn Iterator<Item = Result<(Option<Place>, Row), Problem>> + Send>;

/// Where cases come from. Reading can start over, so that nothing needs to be held.
#[derive(Debug, Clone)]
pub enum CaseSource {
    /// One JSON object per line.
    JsonLines(PathBuf),
    /// A header and one case per record.
    Csv(PathBuf),
    /// Cases that came whole: from the suite itself, a JSON array or a TOML file.
    Held {
        /// The file they came from.
        path: PathBuf,
        /// The cases, with their places.
        rows: Arc<Vec<(Option<Place>, Row)>>,
    },
}

/// What a look at all cases found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Every id, in order.
    pub ids: Arc<CaseIds>,
    /// Every field that at least one case has.
    pub fields: BTreeSet<String>,
    /// Changes when any case changes.
    pub digest: String,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// More problems than this in one file help nobody.
const MOST_PROBLEMS: usize = 20;

impl CaseSource {
    /// Opens a case file by its ending.
    pub(crate) fn open(path: &Path) -> Result<CaseSource, Problem> {
        let whole = |message: String, hint: &str| Problem {
            code: None,
            message,
            path: path.to_owned(),
            place: None,
            hint: Some(hint.to_owned()),
        };
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        File::open(path)
            .and_then(|file| {
                if file.metadata()?.is_dir() {
                    Err(std::io::ErrorKind::IsADirectory.into())
                } else {
                    Ok(())
                }
            })
            .map_err(|error| {
                whole(
                    format!("cannot read the cases: {error}"),
                    "`file` is relative to the suite file",
                )
            })?;
        let held = |rows| CaseSource::Held { path: path.to_owned(), rows: Arc::new(rows) };
        match ending {
            "jsonl" | "ndjson" => Ok(CaseSource::JsonLines(path.to_owned())),
            "csv" => Ok(CaseSource::Csv(path.to_owned())),
            "json" => json_rows(path).map(held),
            "toml" => toml_rows(path).map(held),
            _ => Err(whole(
                format!("cannot tell the format of the cases from the ending `{ending}`"),
                "use .jsonl, .json, .csv or .toml",
            )),
        }
    }

    /// All cases, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Case, Problem>> + Send + use<> {
        let path = self.path().to_owned();
        self.rows().enumerate().map(move |(index, row)| {
            let (place, row) = row?;
            Case::from_row(index, row).map_err(|message| Problem {
                code: None,
                message,
                path: path.clone(),
                place,
                hint: None,
            })
        })
    }

    fn rows(&self) -> Rows {
        match self {
            CaseSource::JsonLines(path) => json_lines(path.clone()),
            CaseSource::Csv(path) => csv_records(path.clone()),
            CaseSource::Held { rows, .. } => {
                let rows = Arc::clone(rows);
                Box::new((0..rows.len()).map(move |index| Ok(rows[index].clone())))
            }
        }
    }

    /// The file that cases come from.
    pub fn path(&self) -> &Path {
        match self {
            CaseSource::JsonLines(path) | CaseSource::Csv(path) | CaseSource::Held { path, .. } => {
                path
            }
        }
    }

    /// Reads all cases once and keeps what must be known of them.
    pub(crate) fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let mut digest = blake3::Hasher::new();
        let mut found = Vec::new();
        let ids: CaseIds = self
            .iter()
            .map(|case| match case {
                Ok(case) => {
                    digest.update(case.fields.to_string().as_bytes()).update(b"\n");
                    note_fields(&case.fields, &mut survey.fields);
                    case.id
                }
                Err(problem) => {
                    found.push(problem);
                    // Keeps the numbers of the others right; no case has an empty id.
                    String::new()
                }
            })
            .collect();
        let repeated = ids.repeated().filter(|(first, _)| ids.get(*first) != Some(""));
        found.extend(repeated.map(|(first, again)| self.repeated(&ids, first, again)));
        found.sort_by_key(|problem| problem.place.as_ref().map(|place| place.line));
        let more = found.len().saturating_sub(MOST_PROBLEMS);
        found.truncate(MOST_PROBLEMS);
        if let (1.., Some(last)) = (more, found.last_mut()) {
            last.hint = Some(format!("{more} more problems in this file"));
        }
        Survey {
            ids: Arc::new(ids),
            digest: digest.finalize().to_hex().to_string(),
            problems: found,
            ..survey
        }
    }

    fn repeated(&self, ids: &CaseIds, first: usize, again: usize) -> Problem {
        Problem {
            code: None,
            message: format!("the case id `{}` is used twice", ids.get(again).unwrap_or_default()),
            path: self.path().to_owned(),
            place: self.rows().nth(again).and_then(|row| row.ok()?.0),
            hint: Some(format!("case number {} has it too; ids must be unique", first + 1)),
        }
    }
}

fn note_fields(fields: &Fields, known: &mut BTreeSet<String>) {
    for name in fields.try_iter().into_iter().flatten() {
        if let Some(name) = name.as_str()
            && !known.contains(name)
        {
            known.insert(name.to_owned());
        }
    }
}

impl Case {
    fn from_row(index: usize, mut row: Row) -> Result<Case, String> {
        let id = match row.get("id") {
            None => (index + 1).to_string(),
            Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(other) => {
                return Err(format!("a case's `id` must be text or a number, not {other}"));
            }
        };
        let tags = match row.get("tags") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(tags)) => tags
                .split(',')
                .map(str::trim)
                .filter(|tag| !tag.is_empty())
                .map(str::to_owned)
                .collect(),
            Some(Value::Array(tags)) => tags
                .iter()
                .map(|tag| tag.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or("a case's `tags` must be texts")?,
            Some(other) => {
                return Err(format!("a case's `tags` must be a list of texts, not {other}"));
            }
        };
        row.insert("id".to_owned(), id.clone().into());
        Ok(Case { index, id, tags, fields: fields(&row) })
    }
}

fn io_problem(path: &Path, error: &std::io::Error) -> Problem {
    let message = format!("cannot read the cases: {error}");
    Problem { code: None, message, path: path.to_owned(), place: None, hint: None }
}

fn line_problem(path: &Path, line: usize, text: &str, message: String) -> Problem {
    let place = Some(Place::line(line, text));
    Problem { code: None, message, path: path.to_owned(), place, hint: None }
}

fn json_lines(path: PathBuf) -> Rows {
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => return Box::new(std::iter::once(Err(io_problem(&path, &error)))),
    };
    let lines = BufReader::with_capacity(1 << 16, file).split(b'\n').enumerate();
    Box::new(lines.filter_map(move |(index, line)| {
        let number = index + 1;
        let bytes = match line {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(io_problem(&path, &error))),
        };
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text.trim_start_matches('\u{feff}').trim(),
            Err(_) => {
                let text = String::from_utf8_lossy(&bytes);
                return Some(Err(line_problem(&path, number, &text, "not UTF-8".to_owned())));
            }
        };
        if text.is_empty() {
            return None;
        }
        Some(match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(row)) => Ok((Some(Place::line(number, text)), row)),
            Ok(_) => {
                Err(line_problem(&path, number, text, "a case must be a JSON object".to_owned()))
            }
            Err(error) => Err(line_problem(&path, number, text, format!("not JSON: {error}"))),
        })
    }))
}

fn csv_records(path: PathBuf) -> Rows {
    let reader = csv::ReaderBuilder::new().from_path(&path);
    let problem = move |error: &csv::Error| {
        let line = error.position().map_or(1, |position| position.line() as usize);
        line_problem(&path, line, "", format!("not CSV: {error}"))
    };
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return Box::new(std::iter::once(Err(problem(&error)))),
    };
    let headers: Vec<String> = match reader.headers() {
        Ok(headers) => headers
            .iter()
            .map(|header| header.trim_start_matches('\u{feff}').trim().to_owned())
            .collect(),
        Err(error) => return Box::new(std::iter::once(Err(problem(&error)))),
    };
    Box::new(reader.into_records().map(move |record| {
        let record = record.map_err(|error| problem(&error))?;
        let line = record.position().map_or(1, |position| position.line() as usize);
        let values = record.iter().map(|value| Value::from(value));
        let text = record.iter().collect::<Vec<_>>().join(",");
        Ok((Some(Place::line(line, &text)), headers.iter().cloned().zip(values).collect()))
    }))
}

fn read_text(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| io_problem(path, &error))
}

fn json_rows(path: &Path) -> Result<Vec<(Option<Place>, Row)>, Problem> {
    let text = read_text(path)?;
    let problem = |line: usize, message: String| {
        line_problem(
            path,
            line,
            text.lines().nth(line.saturating_sub(1)).unwrap_or_default(),
            message,
        )
    };
    let rows: Vec<Value> = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| problem(error.line(), format!("not a JSON array of cases: {error}")))?;
    rows.into_iter()
        .enumerate()
        .map(|(index, row)| match row {
            Value::Object(row) => Ok((None, row)),
            _ => Err(problem(1, format!("case number {} must be a JSON object", index + 1))),
        })
        .collect()
}

fn toml_rows(path: &Path) -> Result<Vec<(Option<Place>, Row)>, Problem> {
    let text = read_text(path)?;
    let problem = |span: std::ops::Range<usize>, message: String| Problem {
        code: None,
        message,
        path: path.to_owned(),
        place: Some(Place::of(&text, span)),
        hint: Some("write each case as a [[case]] table".to_owned()),
    };
    let table = toml::de::DeTable::parse(&text)
        .map_err(|error| problem(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    if let Some((key, _)) = table.get_ref().iter().find(|(key, _)| key.get_ref() != "case") {
        return Err(problem(key.span(), format!("unknown key `{}`", key.get_ref())));
    }
    let node = crate::suite::tree::Node::new(table.get_ref(), table.span());
    Ok(node
        .tables("case")
        .into_iter()
        .map(|case| (Some(Place::of(&text, case.span.clone())), case.to_json()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn ids(name: &str, text: &str) -> Vec<String> {
        let (_folder, path) = written(name, text);
        let survey = CaseSource::open(&path).unwrap().survey();
        assert_eq!(survey.problems, [], "{name}");
        assert!(survey.fields.contains("q"), "{name}: {:?}", survey.fields);
        survey.ids.iter().map(str::to_owned).collect()
    }

    #[test]
    fn every_format_gives_the_same_cases() {
        let expected = ["one", "2"];
        let json = r#"{"id": "one", "q": "a"}"#;
        assert_eq!(ids("a.jsonl", &format!("\u{feff}{json}\r\n\n{{\"q\": \"b\"}}")), expected);
        assert_eq!(ids("a.json", &format!("[{json}, {{\"id\": 2, \"q\": \"b\"}}]")), expected);
        assert_eq!(ids("a.csv", "\u{feff}id,q\none,\"a\nb\"\n2,b\n"), expected);
        assert_eq!(ids("a.toml", "[[case]]\nid = 'one'\nq = 'a'\n[[case]]\nq = 'b'\n"), expected);
    }

    #[test]
    fn tags_are_a_list_or_a_text_with_commas() {
        let (_folder, path) =
            written("a.jsonl", "{\"tags\": [\"x\", \"y\"]}\n{\"tags\": \"x, z\"}\n");
        let source = CaseSource::open(&path).unwrap();
        let tags: Vec<Vec<String>> = source.iter().map(|case| case.unwrap().tags).collect();
        assert_eq!(tags, [["x", "y"], ["x", "z"]]);
    }

    #[test]
    fn problems_name_their_lines() {
        let text = "{\"id\": \"a\"}\nnot json\n[1]\n{\"id\": \"a\"}\n{\"id\": {}}\n";
        let (_folder, path) = written("a.jsonl", text);
        let survey = CaseSource::open(&path).unwrap().survey();
        let lines: Vec<usize> = survey
            .problems
            .iter()
            .filter_map(|problem| Some(problem.place.as_ref()?.line))
            .collect();
        assert_eq!(lines, [2, 3, 4, 5], "{:?}", survey.problems);
    }

    #[test]
    fn a_digest_follows_the_contents() {
        let digest = |text: &str| {
            let (_folder, path) = written("a.jsonl", text);
            CaseSource::open(&path).unwrap().survey().digest
        };
        assert_eq!(digest("{\"q\": 1}\n"), digest("{\"q\":1}"));
        assert_ne!(digest("{\"q\": 1}\n"), digest("{\"q\": 2}\n"));
    }

    #[test]
    fn what_cannot_be_read_is_a_problem_and_no_panic() {
        let (_folder, path) = written("a.jsonl", "");
        std::fs::write(&path, b"{\"a\": \"\xff\"}\n").unwrap();
        assert_eq!(CaseSource::open(&path).unwrap().survey().problems.len(), 1);
        let (_folder, path) = written("a.csv", "a,b\n1,2\n3\n");
        assert!(CaseSource::open(&path).unwrap().survey().problems[0].message.contains("not CSV"));
        let (_folder, path) = written("a.json", "{\"a\": 1}");
        assert!(CaseSource::open(&path).unwrap_err().message.contains("JSON array"));
        let (_folder, path) = written("a.txt", "");
        assert!(CaseSource::open(&path).unwrap_err().message.contains("ending `txt`"));
        assert!(CaseSource::open(Path::new("gone.jsonl")).is_err());
    }
}
