//! `list_files`.

use super::confined::Confined;
use super::{parse_arguments, run_blocking};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

/// Most entries that are listed.
const MOST_LISTED: usize = 1_000;

/// Most entries that are looked at.
const MOST_SEEN: usize = 100_000;

/// Lists what is in the workspace.
#[derive(Debug)]
pub struct ListFiles {
    definition: bakeoff_core::Tool,
    confined: Confined,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
}

impl ListFiles {
    pub(super) const NAME: &str = "list_files";

    /// The tool for a folder.
    ///
    /// # Errors
    ///
    /// There is no such folder.
    pub fn new(folder: &Path) -> io::Result<ListFiles> {
        let definition = bakeoff_core::Tool {
            name: ListFiles::NAME.to_owned(),
            description: format!(
                "Lists the files of the workspace and of all folders in it, one path per line, at \
                 most {MOST_LISTED}. Folders end in `/`."
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
        Ok(ListFiles { definition, confined: Confined::new(folder)? })
    }
}

#[async_trait::async_trait]
impl Tool for ListFiles {
    fn definition(&self) -> &bakeoff_core::Tool {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { path } = parse_arguments(arguments)?;
        let confined = self.confined.clone();
        run_blocking(context.cancel, move || {
            let folder = confined.folder(path.as_deref().unwrap_or(""))?;
            Ok(list(&confined, &folder).into())
        })
        .await
    }
}

/// What is below a folder. Links are named, and not followed.
fn list(confined: &Confined, folder: &Path) -> String {
    let mut listed = Vec::new();
    let mut seen = 0;
    // Level by level, so that what lies deep, such as installed packages, does not take the room of
    // what lies at the top.
    let mut folders = VecDeque::from([folder.to_owned()]);
    while let Some(folder) = folders.pop_front().filter(|_| seen < MOST_SEEN) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut entries: Vec<fs::DirEntry> = entries.take(MOST_SEEN - seen).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        seen += entries.len();
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type();
            let mark = match &kind {
                Ok(kind) if kind.is_dir() => "/".to_owned(),
                Ok(kind) if kind.is_symlink() => match fs::read_link(&path) {
                    Ok(target) => format!(" -> {}", target.display()),
                    Err(_) => String::new(),
                },
                _ => String::new(),
            };
            if listed.len() < MOST_LISTED {
                listed.push(format!("{}{mark}", confined.shown(&path)));
            }
            if kind.is_ok_and(|kind| kind.is_dir()) {
                folders.push_back(path);
            }
        }
    }
    if listed.is_empty() {
        return "[the folder is empty]".to_owned();
    }
    let more = seen - listed.len();
    listed.sort();
    if more > 0 {
        let at_least = if seen >= MOST_SEEN { "at least " } else { "" };
        listed.push(format!("[{at_least}{more} more are not listed; name a folder to see them]"));
    }
    listed.join("\n")
}
