//! The file `.env` next to a suite: variables that the environment lacks, usually API keys.

mod parser;

use crate::problem::{Problem, SourcePosition};
use bakeoff_core::Redactor;
use bakeoff_llm::Environment;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// Name of the file.
const FILE_NAME: &str = ".env";

/// Code of the warning about variables without effect.
const VARIABLE_IGNORED: &str = "EVAL_VARIABLE_IGNORED";

/// Variables that are read from the environment only: connections are shared by all suites of a process, and
/// commands without a suite use the cache too.
const ENVIRONMENT_ONLY: [&str; 12] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "BAKEOFF_CACHE_DIR",
    "BAKEOFF_WORK_DIR",
];

/// Maximum size of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a regular file of limited size. Opening a pipe would wait for a writer.
fn read_limited(path: &Path) -> std::io::Result<Vec<u8>> {
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge)),
        false => Ok(bytes),
    }
}

/// Variables of the file `.env` that the environment does not have.
#[derive(Clone, Default)]
pub struct EnvFile {
    variables: BTreeMap<String, String>,
}

impl EnvFile {
    /// Reads the file of a folder. A missing file has no variables; neither has a folder of that name, which some
    /// tools use for their packages.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or a line is malformed. The problem does not contain the line, which may be a
    /// secret.
    pub(crate) fn read(folder: &Path, environment: Environment<'_>) -> Result<EnvFile, Problem> {
        let path = folder.join(FILE_NAME);
        let problem = |message: String, hint: &str, position: Option<SourcePosition>| Problem {
            code: None,
            message,
            path: path.clone(),
            position: position.map(Box::new),
            hint: Some(hint.to_owned()),
        };
        let bytes = match read_limited(&path) {
            Ok(bytes) => bytes,
            Err(_) if path.is_dir() || !path.exists() => return Ok(EnvFile::default()),
            Err(error) => {
                let message = format!("cannot read the variables: {error}");
                let hint = "the file must be readable, regular and at most 1 MiB";
                return Err(problem(message, hint, None));
            }
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let position = SourcePosition::of_invalid_utf8(error.as_bytes());
            problem("not UTF-8".to_owned(), "save the file as UTF-8", Some(position))
        })?;
        let mut variables = parser::parse(&text).map_err(|error| {
            let at = SourcePosition::of(&text, error.at..error.at);
            let position = SourcePosition { excerpt: String::new(), span: 0..0, ..at };
            problem(error.message.to_owned(), error.hint, Some(position))
        })?;
        variables.retain(|name, _| environment(name).is_none());
        Ok(EnvFile { variables })
    }

    /// Returns a variable of the file.
    pub fn get(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// Returns all variables, for the environment of programs.
    pub fn variables(&self) -> impl Iterator<Item = (String, OsString)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.into()))
    }

    /// Adds all values to a redactor: programs may print them.
    pub fn add_secrets(&self, redactor: &mut Redactor) {
        self.variables.values().for_each(|value| redactor.add(value));
    }

    /// Returns a warning for each variable that only programs receive.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let ignored = ENVIRONMENT_ONLY.iter().filter(|name| self.variables.contains_key(**name));
        ignored.map(|name| {
            let message = format!(
                "Bakeoff does not use {name} of the file {FILE_NAME}; set it in the environment"
            );
            (VARIABLE_IGNORED, message)
        })
    }
}

/// Shows the names only: values are secrets.
impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(text: impl AsRef<[u8]>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        folder
    }

    #[test]
    fn environment_has_precedence() {
        let folder = folder("KEY=from-the-file\nOTHER=other\nEMPTY=full\n");
        let environment = |name: &str| match name {
            "KEY" => Some("from-the-environment".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let file = EnvFile::read(folder.path(), &environment).unwrap();
        assert_eq!((file.get("KEY"), file.get("EMPTY")), (None, None));
        assert_eq!(file.get("OTHER").as_deref(), Some("other"));
        assert_eq!(format!("{file:?}"), r#"{"OTHER"}"#);
    }

    #[test]
    fn missing_file_and_folder_of_that_name_have_no_variables() {
        let parent = tempfile::tempdir().unwrap();
        assert_eq!(EnvFile::read(parent.path(), &|_| None).unwrap().variables().count(), 0);
        std::fs::create_dir(parent.path().join(FILE_NAME)).unwrap();
        assert_eq!(EnvFile::read(parent.path(), &|_| None).unwrap().variables().count(), 0);
    }

    #[test]
    fn pipes_and_large_files_are_rejected() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(FILE_NAME);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let problem = EnvFile::read(parent.path(), &|_| None).unwrap_err();
        assert!(problem.message.contains("not a regular file"), "{}", problem.message);
        let large = folder(vec![b'#'; MAX_BYTES as usize + 1]);
        let problem = EnvFile::read(large.path(), &|_| None).unwrap_err();
        assert!(problem.message.contains("too large"), "{}", problem.message);
    }

    #[test]
    fn problem_has_a_position_but_not_the_line() {
        let table = [
            ("A=1\n\nsk-secret-0123456789\n", (3, 1), "no `=` after the name"),
            ("A='sk-secret", (1, 3), "quotation mark is not closed"),
        ];
        for (text, (line, column), message) in table {
            let problem = EnvFile::read(folder(text).path(), &|_| None).unwrap_err();
            let position = problem.position.as_ref().unwrap();
            assert_eq!((position.line, position.column), (line, column), "{text}");
            assert_eq!(problem.message, message);
            assert!(!format!("{problem:?}").contains("secret"), "{problem:?}");
        }
        let problem = EnvFile::read(folder(b"A=1\nB=\xff").path(), &|_| None).unwrap_err();
        assert_eq!(problem.message, "not UTF-8");
        assert_eq!(problem.position.unwrap().line, 2);
    }
}
