//! Tools of the branches: folders, built-in tools and MCP servers.

use super::branches::BranchNames;
use super::setup::current_folder;
use crate::arguments::RaceArguments;
use crate::error::UsageError;
use crate::printer::chain;
use crate::settings;
use bakeoff_agent::{
    FetchAccess, Identity, McpServer, McpServers, Session, Tool, Workbench, Workspace,
    WorkspaceTemplate, built_in_tool,
};
use bakeoff_llm::Network;
use bakeoff_suite::AgentSettings;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time in which MCP servers must list their tools: some are installed first.
const MCP_START_TIMEOUT: Duration = Duration::from_secs(60);

/// Default maximum number of model calls of a branch with tools.
const DEFAULT_MAX_TURNS: u32 = 50;

/// Default time limit of a tool call.
const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_secs(120);

/// Tools of the branches that are models. Targets have their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ToolSetup {
    tools: Vec<String>,
    fetch_hosts: Vec<String>,
    /// Servers as `NAME=SERVER`.
    mcp: Vec<String>,
    workspace: Option<PathBuf>,
    /// Folder in which the commands of servers run.
    folder: Option<PathBuf>,
}

impl ToolSetup {
    pub(super) fn is_empty(&self) -> bool {
        *self == ToolSetup::default()
    }

    /// Returns the tools that the arguments name, or else those of an earlier race.
    pub(super) fn choose(
        arguments: &RaceArguments,
        earlier: Option<&ToolSetup>,
    ) -> Result<ToolSetup, UsageError> {
        let given = ToolSetup {
            tools: arguments.tools.clone(),
            fetch_hosts: arguments.fetch_hosts.clone(),
            mcp: arguments.mcp.clone(),
            workspace: arguments.workspace.clone(),
            folder: None,
        };
        if given.is_empty() {
            return Ok(earlier.cloned().unwrap_or_default());
        }
        let folder = current_folder()?;
        if let Some(path) = given.workspace.as_ref().filter(|path| !path.is_dir()) {
            return Err(UsageError::new(format!("--workspace {} is not a folder", path.display())));
        }
        // A later command may run in another folder.
        let workspace = given.workspace.as_ref().map(|path| folder.join(path));
        Ok(ToolSetup { workspace, folder: Some(folder), ..given })
    }

    /// Rejects contradicting settings.
    pub(super) fn check(&self, branches: &BranchNames) -> Result<(), UsageError> {
        if branches.models.is_empty() {
            // A target continues a session with the tools of an earlier model.
            return Ok(());
        }
        let fetches = self.tools.iter().any(|tool| tool == "http_fetch");
        if fetches == self.fetch_hosts.is_empty() {
            return Err(match fetches {
                true => UsageError::new("the tool `http_fetch` needs --fetch-host")
                    .hint("`--fetch-host example.com`, or `--fetch-host '*'` for all hosts"),
                false => UsageError::new("--fetch-host is for `--tool http_fetch`"),
            });
        }
        if self.workspace.is_some() && self.tools.is_empty() && self.mcp.is_empty() {
            return Err(UsageError::new("--workspace is for races with `--tool` or `--mcp`"));
        }
        self.settings().map(drop)
    }

    /// Returns the settings of a branch; `None` without tools.
    pub(super) fn settings(&self) -> Result<Option<AgentSettings>, UsageError> {
        if self.tools.is_empty() && self.mcp.is_empty() {
            return Ok(None);
        }
        let server = |text: &String| self.server(text);
        Ok(Some(AgentSettings {
            tools: self.tools.clone(),
            mcp: self.mcp.iter().map(server).collect::<Result<_, _>>()?,
            max_turns: DEFAULT_MAX_TURNS,
            workspace: self.workspace.clone(),
            fetch_hosts: self.fetch_hosts.clone(),
            max_context_tokens: None,
            tool_timeout: DEFAULT_TOOL_TIMEOUT,
        }))
    }

    fn server(&self, text: &str) -> Result<McpServer, UsageError> {
        let (name, server) = text.split_once('=').unwrap_or((text, ""));
        let is_name = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || !name.chars().all(is_name) || server.trim().is_empty() {
            return Err(UsageError::new(format!("--mcp `{text}` is not NAME=SERVER"))
                .hint("for example `--mcp 'shop=python3 shop.py'` or `--mcp shop=https://example.com/mcp`"));
        }
        if server.starts_with("http://") || server.starts_with("https://") {
            return McpServer::http(name, server, &[], &settings::variable)
                .map_err(|error| UsageError::new(format!("--mcp {name}: {}", chain(&error))));
        }
        let folder = self.folder.clone().unwrap_or_else(|| ".".into());
        Ok(McpServer::new(name, shell(&folder, server).into()))
    }
}

/// Returns the arguments that run a shell command in a folder.
pub(super) fn shell(folder: &Path, command: &str) -> [OsString; 6] {
    let script = "cd -- \"$1\" && eval \"$2\"";
    ["sh".into(), "-c".into(), script.into(), "bakeoff".into(), folder.into(), command.into()]
}

/// Folder and running tools of a branch.
pub(super) struct BranchTools {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    servers: McpServers,
    identity: Identity,
    workspace: Workspace,
}

impl BranchTools {
    /// Creates the folder and starts the servers. The error is a message for the user.
    pub(super) async fn start(settings: &AgentSettings) -> Result<BranchTools, String> {
        // The random id of a session that is not used otherwise.
        let session = Session::default();
        let id = session.id();
        let source = settings.workspace.clone();
        let folder = std::env::temp_dir().join(format!("bakeoff-race-{id}"));
        let create = move || {
            let mut template = WorkspaceTemplate::default();
            template.source = source.as_deref();
            Workspace::create(&folder, template)
        };
        // Copying blocks.
        let created =
            tokio::task::spawn_blocking(create).await.map_err(|error| error.to_string())?;
        let workspace = created.map_err(|error| format!("cannot create the workspace: {error}"))?;
        let identity = Identity { run: format!("race-{id}"), trial: None, part: None };
        let mut bench = Workbench::in_folder(workspace.start());
        bench.identity = Some(identity.clone());
        bench.command_timeout = settings.tool_timeout;
        bench.fetch = (!settings.fetch_hosts.is_empty()).then(|| FetchAccess {
            transport: Arc::new(Network::default()),
            hosts: settings.fetch_hosts.clone(),
        });
        let names = settings.tools.iter();
        let tools: Result<Vec<_>, _> = names.map(|name| built_in_tool(name, &bench)).collect();
        let mut tools = tools.map_err(|error| error.to_string())?;
        let servers = McpServers::start(&settings.mcp, &bench, MCP_START_TIMEOUT).await;
        let servers = servers.map_err(|error| error.to_string())?;
        tools.extend_from_slice(servers.tools());
        Ok(BranchTools { tools, servers, identity, workspace })
    }

    /// Ends the servers and all processes of the tools, and removes the folder.
    pub(super) async fn close(self) {
        let BranchTools { tools, servers, identity, workspace } = self;
        drop(tools);
        servers.close().await;
        // Both block. Joining fails only if the runtime shuts down.
        let clean_up = move || {
            identity.kill();
            drop(workspace);
        };
        let _ = tokio::task::spawn_blocking(clean_up).await;
    }
}
