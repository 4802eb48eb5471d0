//! Tools of MCP servers that are programs and use the stdio transport.
//!
//! `rmcp` implements the protocol. This crate starts the programs: each runs in a process group of its own, in
//! the workspace of the agent, and is killed with the processes that it has started.

mod content;
mod names;
mod server;
mod tool;

use crate::dialogue::Tool;
use crate::process::ProgramError;
use crate::tools::Workbench;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use names::ToolNames;
use server::Connection;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// An MCP server to start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServer {
    /// Prefix of its tools: they are offered as `<name>__<tool>`.
    pub name: String,
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Tools to offer; `None` offers all.
    pub tools: Option<Vec<String>>,
}

impl McpServer {
    /// Creates a server that offers all of its tools.
    pub fn new(name: impl Into<String>, command: Vec<OsString>) -> McpServer {
        McpServer { name: name.into(), command, tools: None }
    }

    /// Sets the tools to offer; `None` offers all.
    #[must_use]
    pub fn tools(mut self, tools: impl Into<Option<Vec<String>>>) -> McpServer {
        self.tools = tools.into();
        self
    }
}

/// The tools of an MCP server cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The server cannot be started.
    #[error("the MCP server `{server}`: {source}")]
    Start {
        /// Name of the server.
        server: String,
        /// Cause.
        source: ProgramError,
    },
    /// The server exceeded the time limit for listing its tools.
    #[error(
        "the MCP server `{server}` did not list its tools within {} s{}",
        .after.as_secs_f64(), crate::worker::stderr_suffix(.output)
    )]
    TimedOut {
        /// Name of the server.
        server: String,
        /// Time limit.
        after: Duration,
        /// Its output so far.
        output: String,
    },
    /// The server exited or violated the protocol.
    #[error("the MCP server `{server}` {reason}")]
    Broken {
        /// Name of the server.
        server: String,
        /// What the server did.
        reason: String,
    },
    /// The server has no tools.
    #[error("the MCP server `{server}` has no tools")]
    NoTools {
        /// Name of the server.
        server: String,
    },
    /// The server lacks a requested tool.
    #[error("the MCP server `{server}` has no tool `{tool}`; it has {}", .known.join(", "))]
    NoSuchTool {
        /// Name of the server.
        server: String,
        /// The missing tool.
        tool: String,
        /// Tools of the server.
        known: Vec<String>,
    },
    /// The schema of a tool is invalid.
    #[error("the MCP server `{server}`: the arguments of its tool `{tool}` are {reason}")]
    BadSchema {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
        /// Problem of the schema.
        reason: String,
    },
}

impl McpError {
    /// Returns whether the machine lacked resources to start the server.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, McpError::Start { source, .. } if source.is_exhaustion())
    }
}

/// Running MCP servers and their tools. The servers are killed when this is dropped; later calls of their tools
/// return an error.
#[derive(Debug)]
pub struct McpServers {
    connections: Vec<Connection>,
    tools: Vec<Arc<dyn Tool>>,
}

impl McpServers {
    /// Starts servers in the folder of the workbench and lists their tools, within `timeout` altogether.
    ///
    /// # Errors
    ///
    /// One of the servers failed; all are stopped.
    pub fn start<'a>(
        servers: &'a [McpServer],
        bench: &'a Workbench,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<McpServers, McpError>> {
        Box::pin(McpServers::open(servers, bench, timeout))
    }

    async fn open(
        servers: &[McpServer],
        bench: &Workbench,
        timeout: Duration,
    ) -> Result<McpServers, McpError> {
        let opening = servers.iter().map(|server| Connection::open(server, bench, timeout));
        let opened = futures_util::future::try_join_all(opening).await?;
        let mut names = ToolNames::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let mut connections = Vec::new();
        for (server, (connection, listed)) in servers.iter().zip(opened) {
            if listed.is_empty() {
                return Err(McpError::NoTools { server: server.name.clone() });
            }
            for tool in tool::select_tools(server, &connection, listed, &mut names)? {
                tools.push(Arc::new(tool));
            }
            connections.push(connection);
        }
        Ok(McpServers { connections, tools })
    }

    /// Returns all tools, in the order of the servers.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Asks the servers to exit, and kills those that do not within a few seconds.
    pub fn close(self) -> BoxFuture<'static, ()> {
        let closing = self.connections.into_iter().map(Connection::close);
        Box::pin(futures_util::future::join_all(closing).map(drop))
    }
}
