//! `write_file`.

use super::confined::{Confined, Writing, wrong};
use super::{parse_arguments, run_blocking};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Most bytes that are written at once.
const MOST_WRITTEN: usize = 1024 * 1024;

/// Writes a text file of the workspace.
#[derive(Debug)]
pub struct WriteFile {
    definition: bakeoff_core::Tool,
    confined: Confined,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Overwrite,
    Append,
}

impl WriteFile {
    pub(super) const NAME: &str = "write_file";

    /// The tool for a folder.
    ///
    /// # Errors
    ///
    /// There is no such folder.
    pub fn new(folder: &Path) -> io::Result<WriteFile> {
        let definition = bakeoff_core::Tool {
            name: WriteFile::NAME.to_owned(),
            description: "Writes a text file of the workspace; it and its folders are made where \
                          they are missing."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "Relative to the workspace, such as `src/main.py`.",
                    },
                    "content": { "type": "string", "description": "The text." },
                    "mode": {
                        "type": "string",
                        "enum": ["overwrite", "append"],
                        "description": "Whether the text replaces what is there (`overwrite`, when \
                                        absent) or is added at its end.",
                    },
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            }),
        };
        Ok(WriteFile { definition, confined: Confined::new(folder)? })
    }
}

#[async_trait::async_trait]
impl Tool for WriteFile {
    fn definition(&self) -> &bakeoff_core::Tool {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { path, content, mode } = parse_arguments(arguments)?;
        if content.len() > MOST_WRITTEN {
            return Err(ToolError::Failed(format!(
                "{} bytes are too many, at most {MOST_WRITTEN} are written at once; nothing was \
                 written",
                content.len()
            )));
        }
        let how = match mode {
            Mode::Overwrite => Writing::Overwrite,
            Mode::Append => Writing::Append,
        };
        let confined = self.confined.clone();
        run_blocking(context.cancel, move || {
            let mut file = confined.create(&path, how)?;
            file.write_all(content.as_bytes()).map_err(|error| wrong(&path, &error))?;
            Ok(format!("{} bytes written to `{path}`", content.len()).into())
        })
        .await
    }
}
