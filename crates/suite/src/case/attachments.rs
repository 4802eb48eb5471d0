//! Files of a case: the field `attachments`.

mod media_type;

use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Name of the field.
pub(crate) const FIELD: &str = "attachments";

/// Maximum size of a file. Most providers accept requests of at most 20 to 50 MB, and base64 adds a third.
const MAX_BYTES: u64 = 20 * 1024 * 1024;

/// File that models receive with the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attachment {
    /// Path in the case, relative to the folder of the suite.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Media type, such as `image/png`.
    pub media_type: &'static str,
    /// Size when the case was read.
    pub bytes: u64,
}

impl Attachment {
    /// Reads the content of the file. Blocks.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or has become too large.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        File::open(&self.path)?.take(MAX_BYTES + 1).read_to_end(&mut content)?;
        match content.len() as u64 > MAX_BYTES {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, too_large())),
            false => Ok(content),
        }
    }

    /// Returns the hash of a content.
    pub fn digest_of(content: &[u8]) -> String {
        blake3::hash(content).to_hex().to_string()
    }

    /// Returns the hash of the file, without holding it in memory; the error of a file that cannot be read.
    pub(super) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let hashed = File::open(&self.path).and_then(|file| io::copy(&mut &file, &mut hasher));
        match hashed {
            Ok(_) => hasher.finalize().to_hex().to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn open(name: &str, folder: &Path) -> Result<Attachment, String> {
        let is_inner =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(name).components().all(is_inner) {
            return Err(format!(
                "case `{FIELD}` must stay within the folder of the suite: {name:?}"
            ));
        }
        let path = folder.join(name);
        let problem = |reason: &str| format!("attachment `{name}`: {reason}");
        let metadata = path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                problem("no such file; paths are relative to the suite file")
            }
            _ => problem(&error.to_string()),
        })?;
        if !metadata.is_file() {
            return Err(problem("not a regular file"));
        }
        // A link could send any file of the machine to a provider.
        let is_outside = match (path.canonicalize(), folder.join(".").canonicalize()) {
            (Ok(path), Ok(folder)) => !path.starts_with(folder),
            _ => true,
        };
        if is_outside {
            return Err(problem("a link leads out of the folder of the suite"));
        }
        if metadata.len() == 0 {
            return Err(problem("the file is empty"));
        }
        if metadata.len() > MAX_BYTES {
            let size = metadata.len().div_ceil(1024 * 1024);
            return Err(problem(&format!("{size} MiB; {}", too_large())));
        }
        let mut start = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(media_type::PREFIX_BYTES).read_to_end(&mut start))
            .map_err(|error| problem(&error.to_string()))?;
        let media_type = media_type::detect(&start, &path).ok_or_else(|| {
            problem(&format!("unknown type; the supported ones are {}", media_type::NAMES))
        })?;
        Ok(Attachment { name: name.to_owned(), path, media_type, bytes: metadata.len() })
    }
}

fn too_large() -> String {
    format!("files must not exceed {} MiB", MAX_BYTES / (1024 * 1024))
}

/// Opens the files of a case, and stores their paths as a list in its field. In CSV files, semicolons separate paths.
pub(super) fn read(row: &mut Map<String, Value>, folder: &Path) -> Result<Vec<Attachment>, String> {
    let names: Vec<String> = match row.get(FIELD) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(names)) => names
            .split(';')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        Some(Value::Array(names)) => {
            let texts = names.iter().map(|name| name.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(invalid)?
        }
        Some(_) => return Err(invalid()),
    };
    let attachments = names.iter().map(|name| Attachment::open(name, folder)).collect();
    row.insert(FIELD.to_owned(), names.into());
    attachments
}

fn invalid() -> String {
    format!("case `{FIELD}` must be a list of paths such as [\"receipt.png\"]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000";

    fn open(field: Value, files: &[(&str, &[u8])]) -> Result<Vec<Attachment>, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let mut row = Map::from_iter([(FIELD.to_owned(), field)]);
        read(&mut row, folder.path())
    }

    #[test]
    fn lists_and_semicolons_name_files() {
        let files: [(&str, &[u8]); 2] = [("a.png", PNG), ("b;c.pdf", b"%PDF-1.7")];
        let types = |field: Value| {
            let found = open(field, &files).unwrap();
            found.iter().map(|file| (file.media_type, file.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(types(json!(["a.png", "b;c.pdf"])), [("image/png", 12), ("application/pdf", 8)]);
        assert_eq!(types(json!(" a.png ; ./a.png;")), [("image/png", 12), ("image/png", 12)]);
        assert_eq!((types(json!("")), types(json!(null))), (vec![], vec![]));
    }

    #[test]
    fn links_must_stay_within_the_folder() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| folder.path().join(name);
        for file in [outside.path().join("secret.png"), path("own.png")] {
            std::fs::write(file, PNG).unwrap();
        }
        std::os::unix::fs::symlink(outside.path().join("secret.png"), path("link.png")).unwrap();
        std::os::unix::fs::symlink(outside.path(), path("folder")).unwrap();
        std::os::unix::fs::symlink("own.png", path("inner.png")).unwrap();
        let open = |name: &str| {
            read(&mut Map::from_iter([(FIELD.to_owned(), json!([name]))]), folder.path())
        };
        for name in ["link.png", "folder/secret.png"] {
            assert!(open(name).unwrap_err().contains("leads out of the folder"), "{name}");
        }
        assert!(open("inner.png").is_ok());
    }

    #[test]
    fn unusable_files_are_errors() {
        let large = vec![b'x'; MAX_BYTES as usize + 1];
        let files: [(&str, &[u8]); 3] = [("empty.png", b""), ("a.txt", b"text"), ("l.png", &large)];
        let table = [
            (json!(["gone.png"]), "`gone.png`: no such file"),
            (json!(["."]), "not a regular file"),
            (json!(["../a.png"]), "within the folder"),
            (json!(["/etc/passwd"]), "within the folder"),
            (json!(["empty.png"]), "the file is empty"),
            (json!(["a.txt"]), "unknown type; the supported ones are PNG"),
            (json!(["l.png"]), "21 MiB; files must not exceed 20 MiB"),
            (json!([1]), "must be a list of paths"),
            (json!({"a": 1}), "must be a list of paths"),
        ];
        for (field, expected) in table {
            let error = open(field.clone(), &files).unwrap_err();
            assert!(error.contains(expected), "{field}: {error}");
        }
    }
}
