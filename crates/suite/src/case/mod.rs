//! Cases: what the targets are asked, read from files of any size.

mod files;

pub(crate) use files::Row;

use crate::problem::{Problem, SourcePosition};
use crate::template::fields;
use bakeoff_core::{CaseId, CaseIds};
use files::{Access, Format};
use minijinja::Value as Fields;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its place among all cases, from 0.
    pub index: usize,
    /// Its id; its number when it has none of its own.
    pub id: CaseId,
    /// Words to choose it by.
    pub tags: Vec<String>,
    /// All its fields, for templates.
    pub fields: Fields,
    /// Checks of its own, as they were written.
    pub(crate) checks: Option<Arc<OwnChecks>>,
}

/// The checks that a case brings along.
#[derive(Debug)]
pub(crate) struct OwnChecks {
    pub(crate) tables: Vec<Map<String, Value>>,
    /// Where the case is.
    pub(crate) position: Option<Box<SourcePosition>>,
}

/// Where cases come from. Reading can start over, so that nothing needs to be held.
#[derive(Debug, Clone)]
pub struct CaseSource {
    path: PathBuf,
    format: Format,
}

/// What a look at all cases found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Every id, in order.
    pub ids: Arc<CaseIds>,
    /// Every field that at least one case has.
    pub fields: BTreeSet<String>,
    /// The fields of the first case.
    pub(crate) first: Option<Fields>,
    /// Where each case starts in its file.
    starts: Vec<u64>,
    /// What was in each case, in short.
    prints: Arc<Vec<u64>>,
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
        Ok(CaseSource { path: path.to_owned(), format: Format::open(path)? })
    }

    /// Cases that stand in the suite file itself.
    pub(crate) fn inline(path: &Path, rows: Vec<Row>) -> CaseSource {
        CaseSource { path: path.to_owned(), format: Format::Held(Arc::new(rows)) }
    }

    /// All cases, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Case, Problem>> + Send + use<> {
        let path = self.path.clone();
        self.format
            .rows(&self.path)
            .enumerate()
            .map(move |(index, row)| Case::from_row(&path, index, row?))
    }

    /// Cases in any order, once all were looked at.
    pub fn reader(&self, survey: &Survey) -> Result<CaseReader, Problem> {
        let access = Access::open(&self.format, &self.path, survey.starts.clone())?;
        let (ids, prints) = (Arc::clone(&survey.ids), Arc::clone(&survey.prints));
        Ok(CaseReader { path: self.path.clone(), access, ids, prints })
    }

    /// The digest that [`Survey::digest`] would have if there were only the first so many cases.
    pub fn digest_of(&self, first: usize) -> Option<String> {
        let mut digest = Digest::default();
        let cases: Vec<()> =
            self.iter().take(first).map(|case| digest.add(&case.ok()?)).collect::<Option<_>>()?;
        (cases.len() == first).then(|| digest.finish())
    }

    /// The file that cases come from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all cases once and keeps what must be known of them.
    pub(crate) fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let mut digest = Digest::default();
        let mut found = FewProblems::default();
        let (mut starts, mut prints) = (Vec::new(), Vec::new());
        let ids: CaseIds = self
            .format
            .rows(&self.path)
            .enumerate()
            .map(|(index, row)| {
                let row = row?;
                starts.push(row.start);
                Case::from_row(&self.path, index, row)
            })
            .map(|case| match case {
                Ok(case) => {
                    digest.add(&case);
                    prints.push(print(&case));
                    note_fields(&case.fields, &mut survey.fields);
                    survey.first.get_or_insert(case.fields);
                    case.id
                }
                Err(problem) => {
                    found.push(problem);
                    prints.push(0);
                    // Keeps the numbers of the others right; no case has an empty id.
                    CaseId::from("")
                }
            })
            .collect();
        self.note_repeated(&ids, &mut found);
        survey.problems = found.finish();
        survey.digest = digest.finish();
        Survey { ids: Arc::new(ids), starts, prints: Arc::new(prints), ..survey }
    }

    fn note_repeated(&self, ids: &CaseIds, found: &mut FewProblems) {
        let repeated = ids.repeated().filter(|(first, _)| ids.get(*first) != Some(""));
        let mut pairs: Vec<(usize, usize)> =
            repeated.map(|(first, again)| (again, first)).collect();
        if pairs.is_empty() {
            return;
        }
        // In the order of the file, which is read once more for their places.
        pairs.sort_unstable();
        let mut rows = self.format.rows(&self.path).enumerate();
        for (again, first) in pairs {
            if found.is_full() {
                found.push_unseen();
                continue;
            }
            let row = rows.find(|(index, _)| *index == again);
            found.push(Problem {
                code: None,
                message: format!(
                    "the case id `{}` is used twice",
                    ids.get(again).unwrap_or_default()
                ),
                path: self.path.clone(),
                position: row.and_then(|(_, row)| row.ok()?.position),
                hint: Some(format!("case number {} has it too; ids must be unique", first + 1)),
            });
        }
    }
}

/// Cases in any order. Nothing of them is held.
#[derive(Debug)]
pub struct CaseReader {
    path: PathBuf,
    access: Access,
    ids: Arc<CaseIds>,
    prints: Arc<Vec<u64>>,
}

impl CaseReader {
    /// The case with that number, from 0, as long as its file has not changed.
    pub fn case(&self, index: usize) -> Result<Case, Problem> {
        let changed = || Problem {
            code: None,
            message: format!("case number {} is no longer the one it was", index + 1),
            path: self.path.clone(),
            position: None,
            hint: Some("a run needs its case file until its end".to_owned()),
        };
        let row = self.access.row(&self.path, index).map_err(|_| changed())?.ok_or_else(changed)?;
        let case = Case::from_row(&self.path, index, row)?;
        let is_same = self.ids.get(index) == Some(case.id.as_str())
            && self.prints.get(index) == Some(&print(&case));
        if is_same { Ok(case) } else { Err(changed()) }
    }
}

/// What is in a case, in short.
fn print(case: &Case) -> u64 {
    let hash = blake3::hash(case.fields.to_string().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Changes when any case changes.
#[derive(Default)]
struct Digest(blake3::Hasher);

impl Digest {
    fn add(&mut self, case: &Case) -> Option<()> {
        self.0.update(case.fields.to_string().as_bytes()).update(b"\n");
        Some(())
    }

    fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// The first problems of a file, and how many more there are.
#[derive(Debug, Default)]
pub(crate) struct FewProblems {
    first: Vec<Problem>,
    more: usize,
}

impl FewProblems {
    fn is_full(&self) -> bool {
        self.first.len() >= MOST_PROBLEMS
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        if self.is_full() { self.push_unseen() } else { self.first.push(problem) }
    }

    fn push_unseen(&mut self) {
        self.more += 1;
    }

    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.first.sort_by_key(|problem| problem.position.as_ref().map(|position| position.line));
        if let (1.., Some(last)) = (self.more, self.first.last_mut()) {
            last.hint = Some(format!("and {} more problems in this file", self.more));
        }
        self.first
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
    fn from_row(path: &Path, index: usize, row: Row) -> Result<Case, Problem> {
        let Row { position, fields, .. } = row;
        match Case::from_fields(index, fields) {
            Ok((case, tables)) if tables.is_empty() => Ok(case),
            Ok((case, tables)) => {
                Ok(Case { checks: Some(Arc::new(OwnChecks { tables, position })), ..case })
            }
            Err(message) => {
                Err(Problem { code: None, message, path: path.to_owned(), position, hint: None })
            }
        }
    }

    /// The case, and the tables of its own checks.
    fn from_fields(
        index: usize,
        mut row: Map<String, Value>,
    ) -> Result<(Case, Vec<Map<String, Value>>), String> {
        let id = match row.get("id") {
            None => (index + 1).to_string(),
            Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(Value::String(_)) => return Err("a case's `id` must not be empty".to_owned()),
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
        let checks = own_checks(row.get("checks"))?;
        Ok((Case { index, id: id.into(), tags, fields: fields(&row), checks: None }, checks))
    }
}

fn own_checks(field: Option<&Value>) -> Result<Vec<Map<String, Value>>, String> {
    const WRONG: &str = "a case's `checks` must be a list of tables such as {\"kind\": \"contains\", \"value\": \"x\"}";
    match field {
        None | Some(Value::Null) => Ok(Vec::new()),
        // An empty cell of a CSV file.
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(Value::Array(tables)) => {
            let tables = tables.iter().map(|table| table.as_object().cloned());
            tables.collect::<Option<_>>().ok_or_else(|| WRONG.to_owned())
        }
        Some(_) => Err(WRONG.to_owned()),
    }
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
            .filter_map(|problem| Some(problem.position.as_ref()?.line))
            .collect();
        assert_eq!(lines, [2, 3, 4, 5], "{:?}", survey.problems);
    }

    #[test]
    fn cases_are_read_in_any_order() {
        let texts = [
            ("a.jsonl", "\u{feff}{\"id\": \"one\"}\r\n\n{\"id\": \"two\"}\n  \n{\"q\": \"é\"}"),
            ("a.csv", "\u{feff}id,q\none,\"a\nb\"\n\ntwo,b\n3,\n"),
            ("a.json", "[{\"id\": \"one\"}, {\"id\": \"two\"}, {}]"),
        ];
        for (name, text) in texts {
            let (_folder, path) = written(name, text);
            let source = CaseSource::open(&path).unwrap();
            let survey = source.survey();
            let reader = source.reader(&survey).unwrap();
            let ordered: Vec<Case> = source.iter().map(Result::unwrap).collect();
            for index in [2, 0, 1, 2] {
                let case = reader.case(index).unwrap();
                assert_eq!(case.id, ordered[index].id, "{name}");
                assert_eq!(case.fields, ordered[index].fields, "{name}");
            }
            assert!(reader.case(3).is_err(), "{name}");
        }
    }

    #[test]
    fn cases_that_change_under_the_run_are_noticed() {
        let (_folder, path) = written("a.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n");
        let source = CaseSource::open(&path).unwrap();
        let reader = source.reader(&source.survey()).unwrap();
        // The same length, the same ids, another question.
        std::fs::write(&path, "{\"id\": \"a\"}\n{\"id\":\"b\"} \n").unwrap();
        assert!(reader.case(1).is_ok(), "spaces are no change");
        let other = "{\"id\": \"a\"}\n{\"id\": \"b\", \"q\": 1}\n";
        let longer = CaseSource::open(&path).unwrap();
        let reader_of_longer = longer.reader(&longer.survey()).unwrap();
        std::fs::write(&path, other).unwrap();
        assert!(reader_of_longer.case(1).is_err());
        std::fs::write(&path, "{\"id\": \"b\"}\n").unwrap();
        for index in [0, 1] {
            let problem = reader.case(index).unwrap_err();
            assert!(problem.message.contains("no longer the one"), "{problem}");
        }
    }

    #[test]
    fn the_first_cases_have_the_digest_of_a_file_with_them_alone() {
        let (_folder, path) = written("a.jsonl", "{\"q\": 1}\n{\"q\": 2}\n");
        let (_other, one) = written("a.jsonl", "{\"q\": 1}\n");
        let digest = CaseSource::open(&one).unwrap().survey().digest;
        let source = CaseSource::open(&path).unwrap();
        assert_eq!(source.digest_of(1), Some(digest));
        assert_eq!(source.digest_of(2), Some(source.survey().digest));
        assert_eq!(source.digest_of(3), None);
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
