//! Temporary files of a benchmark.

use crate::Error;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of the next folder of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Temporary folder that is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Error> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bakeoff-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(|source| Error::Io {
            action: "create",
            path: path.clone(),
            source,
        })?;
        Ok(Scratch(path))
    }

    /// Returns the path of the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|source| Error::Io {
            action: "write",
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }

    /// Writes a suite with a number of cases and returns its folder.
    pub(crate) fn write_suite(
        &self,
        name: &str,
        cases: u32,
        base_url: &str,
        limits: &str,
    ) -> Result<PathBuf, Error> {
        let folder = self.0.join(name);
        let suite = format!(
            r#"
            [suite]
            name = "{name}"
            artifacts = "none"
            cache = "none"
            [models.echo]
            provider = "openai"
            model = "sim/echo"
            base_url = "{base_url}"
            limits = {{ {limits} }}
            [[target]]
            name = "echo"
            model = "echo"
            prompt = "Say the word {{{{ word }}}} and nothing else."
            [cases]
            file = "cases.jsonl"
            [[check]]
            kind = "contains"
            value = "{{{{ word }}}}"
            "#
        );
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("bakeoff.toml"), &suite)?;
            let mut file = std::io::BufWriter::new(fs::File::create(folder.join("cases.jsonl"))?);
            for number in 0..cases {
                writeln!(
                    file,
                    "{}",
                    json!({"id": format!("case-{number}"), "word": format!("w{number}")})
                )?;
            }
            file.flush()
        };
        write().map_err(|source| Error::Io { action: "write", path: folder.clone(), source })?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system's cleanup of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
