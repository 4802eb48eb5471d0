//! Built-in tools: files of a workspace, commands in it, and pages of permitted hosts.
//!
//! File paths are confined to the workspace. Commands are not: they have all rights of the user.

mod command;
mod confined;
mod fetch;
mod list;
mod read;
mod write;

pub use command::RunCommand;
pub use fetch::{FetchAccess, HttpFetch};
pub use list::ListFiles;
pub use read::ReadFile;
pub use write::WriteFile;

use crate::dialogue::{Tool, ToolError};
use crate::identity::Identity;
use bakeoff_core::ProcessGroup;
use bakeoff_llm::Transport;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Names of the built-in tools.
pub const TOOL_NAMES: [&str; 5] =
    [ReadFile::NAME, WriteFile::NAME, ListFiles::NAME, RunCommand::NAME, HttpFetch::NAME];

/// Configuration of the tools of one agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Workbench {
    /// Folder that file tools are confined to and commands start in.
    pub folder: PathBuf,
    /// Added to the environment of commands and servers.
    pub environment: BTreeMap<String, OsString>,
    /// Owner of the programs; each program gets a part of its own.
    pub identity: Option<Identity>,
    /// Receives every process group that is started. When the channel is full, the start of the program waits.
    pub started: Option<mpsc::Sender<ProcessGroup>>,
    /// Time limit of a command.
    pub command_timeout: Duration,
    /// Pages that may be fetched; `None` disables fetching.
    pub fetch: Option<FetchAccess>,
    /// Transport to MCP servers over HTTP; `None` for one of their own.
    pub transport: Option<Arc<dyn Transport>>,
}

impl Workbench {
    /// Creates a workbench for a folder with default settings: no start reports, no fetching.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Workbench {
        Workbench {
            folder: folder.into(),
            environment: BTreeMap::new(),
            identity: None,
            started: None,
            command_timeout: Duration::from_secs(120),
            fetch: None,
            transport: None,
        }
    }

    /// Reports that a process group was started.
    pub(crate) async fn report_start(&self, group: Option<ProcessGroup>) {
        if let (Some(started), Some(group)) = (&self.started, group) {
            // The receiver is dropped when the work has ended; then this program is stopped, too.
            let _ = started.send(group).await;
        }
    }
}

/// A tool cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// No tool has this name.
    #[error("unknown tool `{name}`; available: {}", TOOL_NAMES.join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// `http_fetch` was requested without permitted hosts.
    #[error("`http_fetch` needs a list of permitted hosts")]
    NoHosts,
    /// The workspace is not accessible.
    #[error("the workspace {}: {source}", folder.display())]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Creates a tool by its name, one of [`TOOL_NAMES`].
///
/// ```
/// use bakeoff_agent::{AgentContext, Workbench, built_in_tool};
///
/// let bench = Workbench::in_folder(std::env::temp_dir());
/// let tools = ["read_file", "run_command"].map(|name| built_in_tool(name, &bench));
/// let tools = tools.into_iter().collect::<Result<Vec<_>, _>>()?;
/// let context = AgentContext::default().with_tools(tools);
/// assert_eq!(context.tools[1].definition().name, "run_command");
/// # Ok::<(), bakeoff_agent::ToolboxError>(())
/// ```
///
/// # Errors
///
/// No tool has this name, or the workbench lacks what it needs.
pub fn built_in_tool(name: &str, bench: &Workbench) -> Result<Arc<dyn Tool>, ToolboxError> {
    let folder = |source| ToolboxError::Folder { folder: bench.folder.clone(), source };
    Ok(match name {
        ReadFile::NAME => Arc::new(ReadFile::new(&bench.folder).map_err(folder)?),
        WriteFile::NAME => Arc::new(WriteFile::new(&bench.folder).map_err(folder)?),
        ListFiles::NAME => Arc::new(ListFiles::new(&bench.folder).map_err(folder)?),
        RunCommand::NAME => Arc::new(RunCommand::new(bench)),
        HttpFetch::NAME => {
            Arc::new(HttpFetch::new(bench.fetch.clone().ok_or(ToolboxError::NoHosts)?))
        }
        other => return Err(ToolboxError::Unknown { name: other.to_owned() }),
    })
}

/// Parses the arguments of a tool. They have been validated against the schema, so this fails only for numbers
/// out of range.
fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::Failed(format!("the arguments do not fit: {error}")))
}

/// Runs blocking file access on a thread of its own. Work that has not started when the call is cancelled is
/// skipped, because it would change a workspace that is being evaluated.
async fn run_blocking<T: Send + 'static>(
    cancel: CancellationToken,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let work = move || match cancel.is_cancelled() {
        true => Err(ToolError::Failed("cancelled".to_owned())),
        false => work(),
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(ToolError::Failed("the tool broke down".to_owned())))
}

/// Returns the longest prefix of at most `max_bytes` bytes that does not split a character.
pub(crate) fn truncate(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let end = (0..=max_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
}
