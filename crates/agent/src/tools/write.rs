//! The tool `write_file`.

use super::confined::{ConfinedFolder, WriteMode, path_error};
use super::{parse_arguments, run_blocking};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Maximum number of bytes written by one call.
const MAX_WRITE_BYTES: usize = 1024 * 1024;

/// Tool that writes a text file of the workspace.
#[derive(Debug)]
pub struct WriteFile {
    definition: bakeoff_core::ToolDefinition,
    folder: ConfinedFolder,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    mode: WriteMode,
}

impl WriteFile {
    pub(super) const NAME: &str = "write_file";

    /// Creates the tool for a folder.
    ///
    /// # Errors
    ///
    /// The folder does not exist.
    pub fn new(folder: &Path) -> io::Result<WriteFile> {
        let definition = bakeoff_core::ToolDefinition {
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
        Ok(WriteFile { definition, folder: ConfinedFolder::new(folder)? })
    }
}

#[async_trait::async_trait]
impl Tool for WriteFile {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { path, content, mode } = parse_arguments(arguments)?;
        if content.len() > MAX_WRITE_BYTES {
            return Err(ToolError::Failed(format!(
                "{} bytes are too many, at most {MAX_WRITE_BYTES} are written at once; nothing was \
                 written",
                content.len()
            )));
        }
        let root = self.folder.clone();
        run_blocking(context.cancel, move || {
            let mut file = root.create(&path, mode)?;
            file.write_all(content.as_bytes()).map_err(|error| path_error(&path, &error))?;
            Ok(format!("{} bytes written to `{path}`", content.len()).into())
        })
        .await
    }
}
