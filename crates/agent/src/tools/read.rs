//! `read_file`.

use super::confined::{Confined, wrong};
use super::{parse_arguments, run_blocking, truncate};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a file that are looked at.
const MOST_READ: u64 = 8 * 1024 * 1024;

/// Most bytes that are shown at once.
const MOST_SHOWN: usize = 64 * 1024;

/// Shows a text file of the workspace, or some of its lines.
#[derive(Debug)]
pub struct ReadFile {
    definition: bakeoff_core::Tool,
    confined: Confined,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    // Some models write whole numbers as 1.0, which the schema allows.
    #[serde(default)]
    offset: Option<f64>,
    #[serde(default)]
    limit: Option<f64>,
}

impl ReadFile {
    pub(super) const NAME: &str = "read_file";

    /// The tool for a folder.
    ///
    /// # Errors
    ///
    /// There is no such folder.
    pub fn new(folder: &Path) -> io::Result<ReadFile> {
        let definition = bakeoff_core::Tool {
            name: ReadFile::NAME.to_owned(),
            description: format!(
                "Shows a text file of the workspace, at most {} KiB at once.",
                MOST_SHOWN / 1024
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
        Ok(ReadFile { definition, confined: Confined::new(folder)? })
    }
}

#[async_trait::async_trait]
impl Tool for ReadFile {
    fn definition(&self) -> &bakeoff_core::Tool {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let confined = self.confined.clone();
        run_blocking(context.cancel, move || {
            let file = confined.open(&arguments.path)?;
            let (text, unread) = text(&arguments.path, file)?;
            Ok(show(&text, unread, &arguments).into())
        })
        .await
    }
}

/// The text of a file, and how many bytes of it were not looked at.
fn text(path: &str, file: File) -> Result<(String, u64), ToolError> {
    let size = file.metadata().map_err(|error| wrong(path, &error))?.len();
    let mut bytes = Vec::new();
    file.take(MOST_READ).read_to_end(&mut bytes).map_err(|error| wrong(path, &error))?;
    let unread = size.saturating_sub(bytes.len() as u64);
    let text = String::from_utf8(bytes).or_else(|error| {
        let cut = error.utf8_error();
        match cut.error_len() {
            // The last character was cut in two.
            None if unread > 0 => {
                let mut bytes = error.into_bytes();
                bytes.truncate(cut.valid_up_to());
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

/// The lines that are wanted, as far as there is room, and what was left out.
fn show(text: &str, unread: u64, arguments: &Arguments) -> String {
    // Numbers beyond all files become the largest that there are.
    let first = arguments.offset.map_or(1, |offset| offset as usize).max(1);
    let wanted = arguments.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut shown = String::new();
    let (mut lines, mut last, mut is_cut) = (0, first - 1, false);
    for (at, line) in text.split_inclusive('\n').enumerate() {
        lines = at + 1;
        if lines < first || lines - first >= wanted || is_cut {
            continue;
        }
        let room = MOST_SHOWN - shown.len();
        // A line that is longer than all the room is shown as far as it goes.
        if line.len() > room && !shown.is_empty() {
            is_cut = true;
            continue;
        }
        is_cut = line.len() > room;
        shown.push_str(truncate(line, room));
        last = lines;
    }
    let mut notes = Vec::new();
    if first > lines && first > 1 {
        notes.push(format!("the file has {lines} lines"));
    } else if last < lines || first > 1 {
        notes.push(format!("these are lines {first} to {last} of {lines}"));
    }
    if is_cut && last == first {
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
