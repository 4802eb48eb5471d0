//! The tool `list_files`.

use super::confined::ConfinedFolder;
use super::{parse_arguments, run_blocking};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

/// Maximum number of entries in the output.
const MAX_LISTED: usize = 1_000;

/// Maximum number of entries visited.
const MAX_VISITED: usize = 100_000;

/// Tool that lists the files of the workspace.
#[derive(Debug)]
pub struct ListFiles {
    definition: bakeoff_core::ToolDefinition,
    folder: ConfinedFolder,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
}

impl ListFiles {
    pub(super) const NAME: &str = "list_files";

    /// Creates the tool for a folder.
    ///
    /// # Errors
    ///
    /// The folder does not exist.
    pub fn new(folder: &Path) -> io::Result<ListFiles> {
        let definition = bakeoff_core::ToolDefinition {
            name: ListFiles::NAME.to_owned(),
            description: format!(
                "Lists the files of the workspace and of all folders in it, one path per line, at \
                 most {MAX_LISTED}. Folders end in `/`."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "Only what is in this folder, relative to the workspace.",
                    },
                },
                "additionalProperties": false,
            }),
        };
        Ok(ListFiles { definition, folder: ConfinedFolder::new(folder)? })
    }
}

#[async_trait::async_trait]
impl Tool for ListFiles {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { path } = parse_arguments(arguments)?;
        let root = self.folder.clone();
        run_blocking(context.cancel, move || {
            let folder = root.existing_folder(path.as_deref().unwrap_or(""))?;
            Ok(list(&root, &folder).into())
        })
        .await
    }
}

/// Lists the entries below a folder. Links are listed, but not followed.
fn list(root: &ConfinedFolder, folder: &Path) -> String {
    let mut listed = Vec::new();
    let mut visited = 0;
    // Breadth first, so that deep entries, such as installed packages, do not displace those at the top.
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(folder) = folders.pop_front().filter(|_| visited < MAX_VISITED) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut entries: Vec<fs::DirEntry> = entries.take(MAX_VISITED - visited).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        visited += entries.len();
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type();
            let suffix = match &kind {
                Ok(kind) if kind.is_dir() => "/".to_owned(),
                Ok(kind) if kind.is_symlink() => match fs::read_link(&path) {
                    Ok(target) => format!(" -> {}", target.display()),
                    Err(_) => String::new(),
                },
                _ => String::new(),
            };
            if listed.len() < MAX_LISTED {
                listed.push(format!("{}{suffix}", root.relative(&path)));
            }
            if kind.is_ok_and(|kind| kind.is_dir()) {
                folders.push_back(path);
            }
        }
    }
    if listed.is_empty() {
        return "[the folder is empty]".to_owned();
    }
    let more = visited - listed.len();
    listed.sort();
    if more > 0 {
        let at_least = if visited >= MAX_VISITED { "at least " } else { "" };
        listed.push(format!("[{at_least}{more} more are not listed; name a folder to see them]"));
    }
    listed.join("\n")
}
