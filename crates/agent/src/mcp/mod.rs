//! Tools of MCP servers, which are programs that are spoken to over their standard input and output.
//!
//! The protocol is `rmcp`'s; the programs are ours: each runs in a process group of its own, in the
//! agent's workspace, and is ended with whatever it started.

mod content;
mod names;
mod server;
mod tool;

use crate::dialogue::Tool;
use crate::process::ProgramError;
use crate::tools::Workbench;
use names::Names;
use server::Connection;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// An MCP server to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its tools are offered as `<name>__<tool>`.
    pub name: String,
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Only these of its tools; all when absent.
    pub tools: Option<Vec<String>>,
}

/// Why the tools of an MCP server cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// It cannot be started.
    #[error("the MCP server `{server}`: {source}")]
    Start {
        /// Which one.
        server: String,
        /// Why not.
        source: ProgramError,
    },
    /// It took too long to say what it can do.
    #[error(
        "the MCP server `{server}` has not told its tools within {} s{}",
        .after.as_secs_f64(), crate::worker::said(.said)
    )]
    TimedOut {
        /// Which one.
        server: String,
        /// How long it had.
        after: Duration,
        /// What it said instead.
        said: String,
    },
    /// It did not say what it can do.
    #[error("the MCP server `{server}` {reason}")]
    Broken {
        /// Which one.
        server: String,
        /// What it did instead.
        reason: String,
    },
    /// It can do nothing.
    #[error("the MCP server `{server}` has no tools")]
    NoTools {
        /// Which one.
        server: String,
    },
    /// One of its tools is wanted that it has not.
    #[error("the MCP server `{server}` has no tool `{tool}`; it has {}", .known.join(", "))]
    NoSuchTool {
        /// Which one.
        server: String,
        /// What it has not.
        tool: String,
        /// What it has.
        known: Vec<String>,
    },
    /// No model can be told what a tool wants.
    #[error("the MCP server `{server}`: the arguments of its tool `{tool}` are {reason}")]
    BadSchema {
        /// Which one.
        server: String,
        /// Whose arguments.
        tool: String,
        /// What is wrong with them.
        reason: String,
    },
}

impl McpError {
    /// Whether there was not enough of the machine left to start it.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, McpError::Start { source, .. } if source.is_exhaustion())
    }
}

/// MCP servers that run, and their tools. The servers are killed when this is dropped; tools that are
/// called afterwards say so.
#[derive(Debug)]
pub struct McpServers {
    connections: Vec<Connection>,
    tools: Vec<Arc<dyn Tool>>,
}

impl McpServers {
    /// Starts servers in the workbench's folder and asks for their tools. `patience` is for all of it.
    ///
    /// # Errors
    ///
    /// One of them is of no use; none is left running then.
    pub async fn start(
        servers: &[McpServer],
        bench: &Workbench,
        patience: Duration,
    ) -> Result<McpServers, McpError> {
        let starting = servers.iter().map(|server| Connection::open(server, bench, patience));
        let opened = futures_util::future::try_join_all(starting).await?;
        let mut names = Names::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let mut connections = Vec::new();
        for (server, (connection, listed)) in servers.iter().zip(opened) {
            if listed.is_empty() {
                return Err(McpError::NoTools { server: server.name.clone() });
            }
            for tool in tool::offered(server, &connection, listed, &mut names)? {
                tools.push(Arc::new(tool));
            }
            connections.push(connection);
        }
        Ok(McpServers { connections, tools })
    }

    /// All their tools, in the order of the servers.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Lets them end by themselves, for a moment, and kills those that do not.
    pub async fn close(self) {
        let closing = self.connections.into_iter().map(Connection::close);
        futures_util::future::join_all(closing).await;
    }
}
