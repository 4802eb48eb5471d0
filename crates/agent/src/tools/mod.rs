//! Tools that come with this crate: files of a workspace, commands in it, and pages of chosen hosts.
//!
//! Paths are confined to the workspace; commands are not, and can do whatever their user can.

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

/// Names of all tools that come with this crate.
pub const TOOL_NAMES: [&str; 5] =
    [ReadFile::NAME, WriteFile::NAME, ListFiles::NAME, RunCommand::NAME, HttpFetch::NAME];

/// Where and how the tools of one agent work.
#[derive(Debug, Clone)]
pub struct Workbench {
    /// The folder that files and commands are confined to, or start in.
    pub folder: PathBuf,
    /// Added to the environment of what is started.
    pub environment: BTreeMap<String, OsString>,
    /// Whose programs they are; each gets a part of its own.
    pub identity: Option<Identity>,
    /// Told of every process group that is started. Bounded by whoever makes it: a program waits to
    /// be told of.
    pub started: Option<mpsc::Sender<ProcessGroup>>,
    /// How long a command may take.
    pub command_timeout: Duration,
    /// Which pages may be fetched; none when absent.
    pub fetch: Option<FetchAccess>,
}

impl Workbench {
    /// A folder, with everything else at its default: nobody is told, and nothing is fetched.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Workbench {
        Workbench {
            folder: folder.into(),
            environment: BTreeMap::new(),
            identity: None,
            started: None,
            command_timeout: Duration::from_secs(120),
            fetch: None,
        }
    }

    /// Tells that a process group was started.
    pub(crate) async fn tell(&self, group: Option<ProcessGroup>) {
        if let (Some(started), Some(group)) = (&self.started, group) {
            // Nobody listens any more when the work has ended, and then this ends, too.
            let _ = started.send(group).await;
        }
    }
}

/// A tool that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// There is none of this name.
    #[error("there is no tool `{name}`; there are {}", TOOL_NAMES.join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// Fetching is off unless hosts are named.
    #[error("`http_fetch` needs the hosts that it may fetch from")]
    NoHosts,
    /// The workspace is not there.
    #[error("the workspace {}: {source}", folder.display())]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Makes a tool by its name, one of [`TOOL_NAMES`].
///
/// ```
/// use bakeoff_agent::{AgentContext, Workbench, built_in_tool};
///
/// let bench = Workbench::in_folder(std::env::temp_dir());
/// let tools = ["read_file", "run_command"].map(|name| built_in_tool(name, &bench));
/// let tools = tools.into_iter().collect::<Result<Vec<_>, _>>()?;
/// let context = AgentContext { tools, ..AgentContext::default() };
/// assert_eq!(context.tools[1].definition().name, "run_command");
/// # Ok::<(), bakeoff_agent::ToolboxError>(())
/// ```
///
/// # Errors
///
/// There is none of this name, or the workbench has not what it needs.
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

/// Arguments in the form that a tool wants. The schema has been looked at before, so this fails only
/// for numbers that no machine has room for.
fn read_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::Failed(format!("the arguments do not fit: {error}")))
}

/// Runs what waits for disks where it holds nobody up. What has not begun when nobody waits for it
/// any more is left undone: it would change a workspace that is being looked at.
async fn blocking<T: Send + 'static>(
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

/// The beginning of a text, in whole characters.
pub(crate) fn beginning(text: &str, most_bytes: usize) -> &str {
    if text.len() <= most_bytes {
        return text;
    }
    let end = (0..=most_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
}
