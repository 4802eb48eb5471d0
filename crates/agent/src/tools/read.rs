//! The tool `read_file`.

use super::confined::{ConfinedFolder, path_error};
use super::{parse_arguments, run_blocking, truncate};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of bytes read of a file.
const MAX_READ_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum number of bytes returned by one call.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Tool that returns a text file of the workspace, or some of its lines.
#[derive(Debug)]
pub struct ReadFile {
    definition: bakeoff_core::ToolDefinition,
    folder: ConfinedFolder,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    // Some models write integers as 1.0, which the schema allows.
    #[serde(default)]
    offset: Option<f64>,
    #[serde(default)]
    limit: Option<f64>,
}

impl ReadFile {
    pub(super) const NAME: &str = "read_file";

    /// Creates the tool for a folder.
    ///
    /// # Errors
    ///
    /// The folder does not exist.
    pub fn new(folder: &Path) -> io::Result<ReadFile> {
        let definition = bakeoff_core::ToolDefinition {
            name: ReadFile::NAME.to_owned(),
            description: format!(
                "Shows a text file of the workspace, at most {} KiB at once.",
                MAX_OUTPUT_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "Relative to the workspace, such as `src/main.py`.",
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The first line to show; 1 when absent.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Most lines to show; all that fit when absent.",
                    },
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        };
        Ok(ReadFile { definition, folder: ConfinedFolder::new(folder)? })
    }
}

#[async_trait::async_trait]
impl Tool for ReadFile {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let root = self.folder.clone();
        run_blocking(context.cancel, move || {
            let file = root.open(&arguments.path)?;
            let (text, unread) = read_text(&arguments.path, file)?;
            Ok(select_lines(&text, unread, &arguments).into())
        })
        .await
    }
}

/// Returns the text of a file and the number of bytes that were not read.
fn read_text(path: &str, file: File) -> Result<(String, u64), ToolError> {
    let size = file.metadata().map_err(|error| path_error(path, &error))?.len();
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes).map_err(|error| path_error(path, &error))?;
    let unread = size.saturating_sub(bytes.len() as u64);
    let text = String::from_utf8(bytes).or_else(|error| {
        let invalid = error.utf8_error();
        match invalid.error_len() {
            // The read limit split the last character.
            None if unread > 0 => {
                let mut bytes = error.into_bytes();
                bytes.truncate(invalid.valid_up_to());
                String::from_utf8(bytes).map_err(|_| ())
            }
            _ => Err(()),
        }
    });
    let text = text.map_err(|()| {
        ToolError::Failed(format!("`{path}` is no text: its {size} bytes are not UTF-8"))
    })?;
    Ok((text, unread))
}

/// Returns the requested lines within the output limit, with a note about omitted ones.
fn select_lines(text: &str, unread: u64, arguments: &Arguments) -> String {
    // The casts saturate.
    let first = arguments.offset.map_or(1, |offset| offset as usize).max(1);
    let max_lines = arguments.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut shown = String::new();
    let (mut lines, mut last, mut is_truncated) = (0, first - 1, false);
    for (at, line) in text.split_inclusive('\n').enumerate() {
        lines = at + 1;
        if lines < first || lines - first >= max_lines || is_truncated {
            continue;
        }
        let remaining = MAX_OUTPUT_BYTES - shown.len();
        // A first line that exceeds the limit is truncated.
        if line.len() > remaining && !shown.is_empty() {
            is_truncated = true;
            continue;
        }
        is_truncated = line.len() > remaining;
        shown.push_str(truncate(line, remaining));
        last = lines;
    }
    let mut notes = Vec::new();
    if first > lines && first > 1 {
        notes.push(format!("the file has {lines} lines"));
    } else if last < lines || first > 1 {
        notes.push(format!("these are lines {first} to {last} of {lines}"));
    }
    if is_truncated && last == first {
        notes.push("the line is longer than what is shown".to_owned());
    }
    if unread > 0 {
        notes.push(format!("the last {unread} bytes of the file were not looked at"));
    }
    match (text.is_empty(), notes.is_empty()) {
        (true, _) => "[the file is empty]".to_owned(),
        (_, true) => shown,
        _ => {
            let newline = if shown.is_empty() || shown.ends_with('\n') { "" } else { "\n" };
            format!("{shown}{newline}[{}]", notes.join("; "))
        }
    }
}
