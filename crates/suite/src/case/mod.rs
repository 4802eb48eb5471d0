//! Cases, the inputs of the targets, read from files of any size.

pub(crate) mod attachments;
mod csv_columns;
mod files;
pub(crate) mod history;
mod own_rule;

pub use attachments::Attachment;
pub(crate) use files::CaseRow;
pub use own_rule::OwnRule;

use crate::problem::{Problem, SourcePosition};
use crate::template::fields;
use bakeoff_core::{CaseId, CaseIds, Message};
use files::{CaseFormat, RowReader};
use minijinja::Value as Fields;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Case: one input of the targets.
#[derive(Debug, Clone)]
pub struct Case {
    /// Index among all cases, from 0.
    pub index: usize,
    /// Id; the case number, from 1, if the case has none.
    pub id: CaseId,
    /// Tags for filters and checks.
    pub tags: Vec<String>,
    /// All fields, for templates.
    pub fields: Fields,
    /// Chat history that models receive before the prompt.
    pub history: Vec<Message>,
    /// Files that targets receive with the prompt.
    pub attachments: Vec<Attachment>,
    /// Number of trials and threshold of this case only.
    pub rule: OwnRule,
    /// Checks of this case only, not yet parsed.
    pub(crate) checks: Option<Arc<CaseChecks>>,
}

/// Checks defined in a case.
#[derive(Debug)]
pub(crate) struct CaseChecks {
    pub(crate) tables: Vec<Map<String, Value>>,
    /// Position of the case.
    pub(crate) position: Option<Box<SourcePosition>>,
}

/// Source of the cases. It can be read repeatedly, so cases need not stay in memory.
#[derive(Debug, Clone)]
pub struct CaseSource {
    path: PathBuf,
    /// Folder of the suite, which paths in cases are relative to.
    folder: PathBuf,
    format: CaseFormat,
}

/// Summary of all cases, collected in one pass.
#[derive(Debug, Default)]
pub struct Survey {
    /// All ids in order.
    pub ids: Arc<CaseIds>,
    /// All fields that at least one case has.
    pub fields: BTreeSet<String>,
    /// Indices and values of the cases with their own number of trials or threshold, ascending.
    pub own_rules: Vec<(usize, OwnRule)>,
    /// Media types of all attachments, with the first case that has one and its path.
    pub(crate) media: BTreeMap<&'static str, (CaseId, String)>,
    /// Fields of the first case.
    pub(crate) first: Option<Fields>,
    /// Byte offset of each case in its file.
    starts: Vec<u64>,
    /// Hash of the fields of each case.
    fingerprints: Arc<Vec<u64>>,
    /// Digest of all cases.
    pub digest: String,
    /// Problems of the cases.
    pub problems: Vec<Problem>,
}

/// Maximum number of reported problems per file.
const MAX_PROBLEMS: usize = 20;

impl CaseSource {
    /// Opens a case file in the format of its extension. `folder` is that of the suite.
    pub(crate) fn open(path: &Path, folder: &Path) -> Result<CaseSource, Problem> {
        let format = CaseFormat::open(path)?;
        Ok(CaseSource { path: path.to_owned(), folder: folder.to_owned(), format })
    }

    /// Creates a source from rows in memory, such as the inline cases of a suite.
    pub(crate) fn inline(path: &Path, folder: &Path, rows: Vec<CaseRow>) -> CaseSource {
        let format = CaseFormat::InMemory(Arc::new(rows));
        CaseSource { path: path.to_owned(), folder: folder.to_owned(), format }
    }

    /// Returns all cases in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Case, Problem>> + Send + use<> {
        let (path, folder) = (self.path.clone(), self.folder.clone());
        self.format
            .rows(&self.path)
            .enumerate()
            .map(move |(index, row)| Case::from_row(&path, &folder, index, row?))
    }

    /// Returns a reader with random access, based on the survey of the same source.
    pub fn reader(&self, survey: &Survey) -> Result<CaseReader, Problem> {
        let access = RowReader::open(&self.format, &self.path, survey.starts.clone())?;
        let (ids, fingerprints) = (Arc::clone(&survey.ids), Arc::clone(&survey.fingerprints));
        let (path, folder) = (self.path.clone(), self.folder.clone());
        Ok(CaseReader { path, folder, access, ids, fingerprints })
    }

    /// Returns the [`Survey::digest`] of the first `first` cases; `None` if there are fewer.
    pub fn digest_of(&self, first: usize) -> Option<String> {
        let mut digest = CaseDigest::default();
        let mut count = 0;
        for case in self.iter().take(first) {
            digest.add(&content(&case.ok()?));
            count += 1;
        }
        (count == first).then(|| digest.finish())
    }

    /// Returns the path of the file with the cases.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all cases once and collects their summary.
    pub(crate) fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let mut digest = CaseDigest::default();
        let mut found = ProblemBuffer::default();
        let (mut starts, mut fingerprints) = (Vec::new(), Vec::new());
        let ids: CaseIds = self
            .format
            .rows(&self.path)
            .enumerate()
            .map(|(index, row)| {
                let row = row?;
                starts.push(row.start);
                Case::from_row(&self.path, &self.folder, index, row)
            })
            .map(|case| match case {
                Ok(case) => {
                    let content = content(&case);
                    digest.add(&content);
                    fingerprints.push(fingerprint(&content));
                    for file in case.attachments {
                        let first = || (case.id.clone(), file.name);
                        survey.media.entry(file.media_type).or_insert_with(first);
                    }
                    collect_fields(&case.fields, &mut survey.fields);
                    if !case.rule.is_empty() {
                        survey.own_rules.push((case.index, case.rule));
                    }
                    survey.first.get_or_insert(case.fields);
                    case.id
                }
                Err(problem) => {
                    found.push(problem);
                    fingerprints.push(0);
                    // Keeps the indices of the other cases correct; no case has an empty id.
                    CaseId::from("")
                }
            })
            .collect();
        self.report_duplicates(&ids, &mut found);
        survey.problems = found.finish();
        survey.digest = digest.finish();
        Survey { ids: Arc::new(ids), starts, fingerprints: Arc::new(fingerprints), ..survey }
    }

    fn report_duplicates(&self, ids: &CaseIds, found: &mut ProblemBuffer) {
        let duplicates = ids.repeated().filter(|(first, _)| ids.get(*first) != Some(""));
        let mut pairs: Vec<(usize, usize)> =
            duplicates.map(|(first, again)| (again, first)).collect();
        if pairs.is_empty() {
            return;
        }
        // File order, because the file is read once more for the positions.
        pairs.sort_unstable();
        let mut rows = self.format.rows(&self.path).enumerate();
        for (again, first) in pairs {
            if found.is_full() {
                found.omit();
                continue;
            }
            let row = rows.find(|(index, _)| *index == again);
            found.push(Problem {
                code: None,
                message: format!("duplicate case id `{}`", ids.get(again).unwrap_or_default()),
                path: self.path.clone(),
                position: row.and_then(|(_, row)| row.ok()?.position),
                hint: Some(format!("case {} has the same id; ids must be unique", first + 1)),
            });
        }
    }
}

/// Random access to cases, which do not stay in memory.
#[derive(Debug)]
pub struct CaseReader {
    path: PathBuf,
    folder: PathBuf,
    access: RowReader,
    ids: Arc<CaseIds>,
    fingerprints: Arc<Vec<u64>>,
}

impl CaseReader {
    /// Returns the case with this index; fails if the case has changed since the survey.
    pub fn case(&self, index: usize) -> Result<Case, Problem> {
        let changed = || Problem {
            code: None,
            message: format!("case {} has changed since the run started", index + 1),
            path: self.path.clone(),
            position: None,
            hint: Some("do not change the case file during a run".to_owned()),
        };
        let row = self.access.row(&self.path, index).map_err(|_| changed())?.ok_or_else(changed)?;
        let case = Case::from_row(&self.path, &self.folder, index, row)?;
        let is_same = self.ids.get(index) == Some(case.id.as_str())
            && self.fingerprints.get(index) == Some(&fingerprint(&content(&case)));
        if is_same { Ok(case) } else { Err(changed()) }
    }
}

/// Returns the fields of a case and the hashes of its files as text.
fn content(case: &Case) -> String {
    let mut content = case.fields.to_string();
    for file in &case.attachments {
        content.push('\n');
        content.push_str(&file.digest());
    }
    content
}

/// Returns a hash of the content of a case.
fn fingerprint(content: &str) -> u64 {
    let hash = blake3::hash(content.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Digest of a sequence of cases.
#[derive(Default)]
struct CaseDigest(blake3::Hasher);

impl CaseDigest {
    fn add(&mut self, content: &str) {
        self.0.update(content.as_bytes()).update(b"\n");
    }

    fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// First problems of a file and the number of omitted ones.
#[derive(Debug, Default)]
pub(crate) struct ProblemBuffer {
    first: Vec<Problem>,
    omitted: usize,
}

impl ProblemBuffer {
    fn is_full(&self) -> bool {
        self.first.len() >= MAX_PROBLEMS
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        if self.is_full() { self.omit() } else { self.first.push(problem) }
    }

    fn omit(&mut self) {
        self.omitted += 1;
    }

    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.first.sort_by_key(|problem| problem.position.as_ref().map(|position| position.line));
        if let (1.., Some(last)) = (self.omitted, self.first.last_mut()) {
            last.hint = Some(format!("and {} more problems in this file", self.omitted));
        }
        self.first
    }
}

fn collect_fields(fields: &Fields, known: &mut BTreeSet<String>) {
    for name in fields.try_iter().into_iter().flatten() {
        if let Some(name) = name.as_str()
            && !known.contains(name)
        {
            known.insert(name.to_owned());
        }
    }
}

impl Case {
    fn from_row(path: &Path, folder: &Path, index: usize, row: CaseRow) -> Result<Case, Problem> {
        let CaseRow { position, fields, .. } = row;
        match Case::from_fields(folder, index, fields) {
            Ok((case, tables)) if tables.is_empty() => Ok(case),
            Ok((case, tables)) => {
                Ok(Case { checks: Some(Arc::new(CaseChecks { tables, position })), ..case })
            }
            Err(message) => {
                Err(Problem { code: None, message, path: path.to_owned(), position, hint: None })
            }
        }
    }

    /// Returns the case and the tables of its checks.
    fn from_fields(
        folder: &Path,
        index: usize,
        mut row: Map<String, Value>,
    ) -> Result<(Case, Vec<Map<String, Value>>), String> {
        let id = match row.get("id") {
            None => (index + 1).to_string(),
            Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(Value::String(_)) => return Err("case `id` must not be empty".to_owned()),
            Some(other) => {
                return Err(format!("case `id` must be a string or a number, not {other}"));
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
                .ok_or("case `tags` must be strings")?,
            Some(other) => {
                return Err(format!("case `tags` must be a list of strings, not {other}"));
            }
        };
        row.insert("id".to_owned(), id.clone().into());
        let checks = case_checks(row.get("checks"))?;
        let history = history::read(row.get(history::FIELD))?;
        let rule = OwnRule::read(&row)?;
        let attachments = attachments::read(&mut row, folder)?;
        let (id, fields) = (id.into(), fields(&row));
        let case = Case { index, id, tags, fields, history, attachments, rule, checks: None };
        Ok((case, checks))
    }
}

fn case_checks(field: Option<&Value>) -> Result<Vec<Map<String, Value>>, String> {
    const MESSAGE: &str =
        "case `checks` must be a list of tables such as {\"kind\": \"contains\", \"value\": \"x\"}";
    match field {
        None | Some(Value::Null) => Ok(Vec::new()),
        // Empty cell of a CSV file.
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(Value::Array(tables)) => {
            let tables = tables.iter().map(|table| table.as_object().cloned());
            tables.collect::<Option<_>>().ok_or_else(|| MESSAGE.to_owned())
        }
        Some(_) => Err(MESSAGE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn ids(name: &str, text: &str) -> Vec<String> {
        let (_folder, path) = write_file(name, text);
        let survey = CaseSource::open(&path, Path::new("")).unwrap().survey();
        assert_eq!(survey.problems, [], "{name}");
        assert!(survey.fields.contains("q"), "{name}: {:?}", survey.fields);
        survey.ids.iter().map(str::to_owned).collect()
    }

    #[test]
    fn all_formats_give_the_same_cases() {
        let expected = ["one", "2"];
        let json = r#"{"id": "one", "q": "a"}"#;
        assert_eq!(ids("a.jsonl", &format!("\u{feff}{json}\r\n\n{{\"q\": \"b\"}}")), expected);
        assert_eq!(ids("a.json", &format!("[{json}, {{\"id\": 2, \"q\": \"b\"}}]")), expected);
        assert_eq!(ids("a.csv", "\u{feff}id,q\none,\"a\nb\"\n2,b\n"), expected);
        assert_eq!(ids("a.toml", "[[case]]\nid = 'one'\nq = 'a'\n[[case]]\nq = 'b'\n"), expected);
    }

    #[test]
    fn tags_are_a_list_or_a_comma_separated_string() {
        let (_folder, path) =
            write_file("a.jsonl", "{\"tags\": [\"x\", \"y\"]}\n{\"tags\": \"x, z\"}\n");
        let source = CaseSource::open(&path, Path::new("")).unwrap();
        let tags: Vec<Vec<String>> = source.iter().map(|case| case.unwrap().tags).collect();
        assert_eq!(tags, [["x", "y"], ["x", "z"]]);
    }

    #[test]
    fn problems_have_line_numbers() {
        let text = "{\"id\": \"a\"}\nnot json\n[1]\n{\"id\": \"a\"}\n{\"id\": {}}\n";
        let (_folder, path) = write_file("a.jsonl", text);
        let survey = CaseSource::open(&path, Path::new("")).unwrap().survey();
        let lines: Vec<usize> = survey
            .problems
            .iter()
            .filter_map(|problem| Some(problem.position.as_ref()?.line))
            .collect();
        assert_eq!(lines, [2, 3, 4, 5], "{:?}", survey.problems);
    }

    #[test]
    fn reader_returns_cases_in_any_order() {
        let texts = [
            ("a.jsonl", "\u{feff}{\"id\": \"one\"}\r\n\n{\"id\": \"two\"}\n  \n{\"q\": \"é\"}"),
            ("a.csv", "\u{feff}id,q\none,\"a\nb\"\n\ntwo,b\n3,\n"),
            ("a.json", "[{\"id\": \"one\"}, {\"id\": \"two\"}, {}]"),
        ];
        for (name, text) in texts {
            let (_folder, path) = write_file(name, text);
            let source = CaseSource::open(&path, Path::new("")).unwrap();
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
    fn reader_detects_changed_cases() {
        let (_folder, path) = write_file("a.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n");
        let source = CaseSource::open(&path, Path::new("")).unwrap();
        let reader = source.reader(&source.survey()).unwrap();
        // Same length and ids, different whitespace.
        std::fs::write(&path, "{\"id\": \"a\"}\n{\"id\":\"b\"} \n").unwrap();
        assert!(reader.case(1).is_ok(), "whitespace is not a change");
        let other = "{\"id\": \"a\"}\n{\"id\": \"b\", \"q\": 1}\n";
        let longer = CaseSource::open(&path, Path::new("")).unwrap();
        let reader_of_longer = longer.reader(&longer.survey()).unwrap();
        std::fs::write(&path, other).unwrap();
        assert!(reader_of_longer.case(1).is_err());
        std::fs::write(&path, "{\"id\": \"b\"}\n").unwrap();
        for index in [0, 1] {
            let problem = reader.case(index).unwrap_err();
            assert!(problem.message.contains("changed since the run started"), "{problem}");
        }
    }

    #[test]
    fn digest_of_first_cases_equals_digest_of_shorter_file() {
        let (_folder, path) = write_file("a.jsonl", "{\"q\": 1}\n{\"q\": 2}\n");
        let (_other, one) = write_file("a.jsonl", "{\"q\": 1}\n");
        let digest = CaseSource::open(&one, Path::new("")).unwrap().survey().digest;
        let source = CaseSource::open(&path, Path::new("")).unwrap();
        assert_eq!(source.digest_of(1), Some(digest));
        assert_eq!(source.digest_of(2), Some(source.survey().digest));
        assert_eq!(source.digest_of(3), None);
    }

    #[test]
    fn digest_depends_on_content_only() {
        let digest = |text: &str| {
            let (_folder, path) = write_file("a.jsonl", text);
            CaseSource::open(&path, Path::new("")).unwrap().survey().digest
        };
        assert_eq!(digest("{\"q\": 1}\n"), digest("{\"q\":1}"));
        assert_ne!(digest("{\"q\": 1}\n"), digest("{\"q\": 2}\n"));
    }

    #[test]
    fn digest_and_reader_depend_on_the_content_of_attachments() {
        let (folder, path) = write_file("a.jsonl", "{\"attachments\": [\"a.png\"]}\n");
        let write = |content: &str| std::fs::write(folder.path().join("a.png"), content).unwrap();
        let source = CaseSource::open(&path, folder.path()).unwrap();
        write("one");
        let survey = source.survey();
        assert_eq!(survey.media["image/png"], (CaseId::from("1"), "a.png".to_owned()));
        let reader = source.reader(&survey).unwrap();
        assert_eq!(reader.case(0).unwrap().attachments[0].bytes, 3);
        write("two");
        assert!(reader.case(0).unwrap_err().message.contains("changed since the run started"));
        assert_ne!(source.survey().digest, survey.digest);
        assert_eq!(source.digest_of(1), Some(source.survey().digest));
    }

    #[test]
    fn unreadable_files_are_problems() {
        let (_folder, path) = write_file("a.jsonl", "");
        std::fs::write(&path, b"{\"a\": \"\xff\"}\n").unwrap();
        assert_eq!(CaseSource::open(&path, Path::new("")).unwrap().survey().problems.len(), 1);
        let (_folder, path) = write_file("a.csv", "a,b\n1,2\n3\n");
        assert!(
            CaseSource::open(&path, Path::new("")).unwrap().survey().problems[0]
                .message
                .contains("not CSV")
        );
        let (_folder, path) = write_file("a.json", "{\"a\": 1}");
        assert!(CaseSource::open(&path, Path::new("")).unwrap_err().message.contains("JSON array"));
        let (_folder, path) = write_file("a.txt", "");
        assert!(
            CaseSource::open(&path, Path::new("")).unwrap_err().message.contains("extension `txt`")
        );
        assert!(CaseSource::open(Path::new("gone.jsonl"), Path::new("")).is_err());
    }
}
