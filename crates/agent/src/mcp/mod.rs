//! Tools of MCP servers: programs that use the stdio transport, and servers that use streamable HTTP.
//!
//! `rmcp` implements the protocol. This crate starts the programs: each runs in a process group of its own, in
//! the workspace of the agent, and is killed with the processes that it has started.

mod content;
mod http;
mod names;
mod server;
mod tool;

use crate::dialogue::Tool;
use crate::process::ProgramError;
use crate::tools::Workbench;
use bakeoff_core::Redactor;
use bakeoff_llm::{Environment, ModelError, Service, ServiceConfig, expand_variables};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use names::ToolNames;
use secrecy::{ExposeSecret, SecretString};
use server::Connection;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// An MCP server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpServer {
    /// Prefix of its tools: they are offered as `<name>__<tool>`.
    pub name: String,
    /// How to reach it.
    pub endpoint: McpEndpoint,
    /// Tools to offer; `None` offers all.
    pub tools: Option<Vec<String>>,
    secrets: Vec<SecretString>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum McpEndpoint {
    /// A program that is started and uses the stdio transport.
    Program {
        /// The program and its arguments; never empty.
        command: Vec<OsString>,
        /// Variables added to its environment.
        environment: BTreeMap<String, SecretString>,
    },
    /// A server that runs already and uses streamable HTTP.
    Http(Box<Service>),
}

impl McpServer {
    /// Creates a server that is a program and offers all of its tools.
    pub fn new(name: impl Into<String>, command: Vec<OsString>) -> McpServer {
        let endpoint = McpEndpoint::Program { command, environment: BTreeMap::new() };
        McpServer { name: name.into(), endpoint, tools: None, secrets: Vec::new() }
    }

    /// Creates a server at a URL that offers all of its tools. In the values of headers, `$NAME` is replaced by the
    /// environment variable. Nothing is sent.
    ///
    /// # Errors
    ///
    /// When the URL or a header is invalid, or an environment variable is not set.
    pub fn http(
        name: impl Into<String>,
        url: &str,
        headers: &[(String, String)],
        environment: Environment<'_>,
    ) -> Result<McpServer, ModelError> {
        let name = name.into();
        let mut config = ServiceConfig::new(url).name(name.as_str());
        config.headers = headers.to_vec();
        let endpoint = McpEndpoint::Http(Box::new(Service::resolve(&config, environment)?));
        Ok(McpServer { name, endpoint, tools: None, secrets: Vec::new() })
    }

    /// Adds variables to the environment of a program. In their values, `$NAME` is replaced by the environment
    /// variable.
    ///
    /// # Errors
    ///
    /// When an environment variable is not set.
    pub fn environment(
        mut self,
        variables: &[(String, String)],
        environment: Environment<'_>,
    ) -> Result<McpServer, ModelError> {
        if let McpEndpoint::Program { environment: own, .. } = &mut self.endpoint {
            for (name, value) in variables {
                let value = expand_variables(name, value, environment, &mut self.secrets)?;
                own.insert(name.clone(), value);
            }
        }
        Ok(self)
    }

    /// Sets the tools to offer; `None` offers all.
    #[must_use]
    pub fn tools(mut self, tools: impl Into<Option<Vec<String>>>) -> McpServer {
        self.tools = tools.into();
        self
    }

    /// Returns the command line or the URL, without secrets.
    pub fn address(&self) -> String {
        match &self.endpoint {
            McpEndpoint::Program { command, .. } => {
                let words = command.iter().map(|word| word.to_string_lossy());
                words.collect::<Vec<_>>().join(" ")
            }
            McpEndpoint::Http(service) => service.address().to_owned(),
        }
    }

    /// Adds the secrets of the server to a redactor.
    pub fn add_secrets(&self, redactor: &mut Redactor) {
        for secret in &self.secrets {
            redactor.add(secret.expose_secret());
        }
        if let McpEndpoint::Http(service) = &self.endpoint {
            service.add_secrets(redactor);
        }
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
    /// Starts or connects to servers, in the folder of the workbench, and lists their tools, within `timeout` altogether.
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
