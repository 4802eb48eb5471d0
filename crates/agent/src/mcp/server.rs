//! One MCP server: its process, if it has one, and the protocol session.

use super::http::McpHttpClient;
use super::{McpEndpoint, McpError, McpServer};
use crate::identity::Identity;
use crate::output::OutputTail;
use crate::process::{self, DRAIN_TIMEOUT, Program, ProgramError};
use crate::tools::Workbench;
use crate::tree::ProcessTree;
use crate::worker::{describe_status, stderr_suffix};
use bakeoff_llm::{Network, Service};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr};
use tokio::sync::watch;
use tokio_util::io::InspectReader;
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of tools listed of one server.
const MAX_TOOLS: usize = 1_000;

/// Maximum size of a message of a server; longer ones are ignored.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Number of bytes of its output that are kept for error messages.
const MAX_PREFIX_BYTES: usize = 100;

/// How long a server may take to exit after its input was closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A running server whose tools are known.
#[derive(Debug)]
pub(super) struct Connection {
    // Fields are dropped in order: the processes are killed first.
    /// Processes of the server; `None` if it was not started here.
    tree: Option<ProcessTree>,
    service: RunningService<RoleClient, ClientConfig>,
    pub(super) process: Arc<ServerProcess>,
    /// Waits for the process and reads its standard error.
    _watcher: Option<AbortOnDropHandle<()>>,
}

/// Observed state of a server and its process.
#[derive(Debug)]
pub(super) struct ServerProcess {
    pub(super) name: String,
    /// The server was not started here.
    pub(super) is_remote: bool,
    /// End of its standard error. Never locked across an await.
    stderr: Mutex<OutputTail>,
    /// Beginning of its standard output, which is for protocol messages only.
    stdout_prefix: Mutex<Vec<u8>>,
    /// Exit status, as text, once it has exited.
    exit_status: watch::Sender<Option<String>>,
}

impl ServerProcess {
    fn new(name: &str, is_remote: bool) -> ServerProcess {
        ServerProcess {
            name: name.to_owned(),
            is_remote,
            stderr: Mutex::default(),
            stdout_prefix: Mutex::default(),
            exit_status: watch::Sender::new(None),
        }
    }

    /// Waits until the process has exited and returns its exit status as text.
    pub(super) async fn wait(&self) -> String {
        let mut exit_status = self.exit_status.subscribe();
        // Cannot fail, because this value owns the sender.
        let status = exit_status.wait_for(Option::is_some).await;
        status.ok().and_then(|status| status.clone()).unwrap_or_default()
    }

    /// Describes why the server sends nothing any more; follows "the MCP server `name`" in messages.
    pub(super) async fn silence_reason(&self) -> String {
        let reason = match tokio::time::timeout(DRAIN_TIMEOUT, self.wait()).await {
            Ok(status) => format!("has ended ({status})"),
            Err(_) if self.is_remote => "does not respond any more".to_owned(),
            Err(_) => "has closed its output".to_owned(),
        };
        format!("{reason}{}", stderr_suffix(&self.stderr()))
    }

    fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    fn record_stdout(&self, bytes: &[u8]) {
        let mut prefix = self.stdout_prefix.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = MAX_PREFIX_BYTES.saturating_sub(prefix.len());
        prefix.extend_from_slice(&bytes[..bytes.len().min(missing)]);
    }

    fn stray_output(&self) -> Option<String> {
        describe_stray_output(&self.stdout_prefix.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Describes standard output that does not start with a protocol message, a common mistake of servers.
fn describe_stray_output(stdout_prefix: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stdout_prefix);
    let line = text.trim_start().lines().next().filter(|line| !line.starts_with('{'))?;
    Some(format!("its standard output, which is for messages only, begins with `{line}`"))
}

impl Connection {
    /// Starts or connects to a server and lists its tools.
    pub(super) async fn open(
        server: &McpServer,
        bench: &Workbench,
        timeout: Duration,
    ) -> Result<(Connection, Vec<rmcp::model::Tool>), McpError> {
        match &server.endpoint {
            McpEndpoint::Program { command, environment } => {
                Connection::start(server, command, environment, bench, timeout).await
            }
            McpEndpoint::Http(service) => {
                Connection::connect(server, service, bench, timeout).await
            }
        }
    }

    /// Connects to a server over HTTP.
    async fn connect(
        server: &McpServer,
        service: &Service,
        bench: &Workbench,
        timeout: Duration,
    ) -> Result<(Connection, Vec<rmcp::model::Tool>), McpError> {
        let transport = match &bench.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(Network::default()),
        };
        let headers = service.headers().iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
        let config = StreamableHttpClientTransportConfig::with_uri(service.url().as_str())
            .custom_headers(headers);
        let client = McpHttpClient { transport };
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let name = || server.name.clone();
        match tokio::time::timeout(timeout, handshake(transport)).await {
            Ok(Ok((service, tools))) => {
                let process = Arc::new(ServerProcess::new(&server.name, true));
                Ok((Connection { tree: None, service, process, _watcher: None }, tools))
            }
            Ok(Err(reason)) => Err(McpError::Broken { server: name(), reason }),
            Err(_) => {
                let output = String::new();
                Err(McpError::TimedOut { server: name(), after: timeout, output })
            }
        }
    }

    /// Starts the program of a server.
    async fn start(
        server: &McpServer,
        command: &[OsString],
        environment: &BTreeMap<String, SecretString>,
        bench: &Workbench,
        timeout: Duration,
    ) -> Result<(Connection, Vec<rmcp::model::Tool>), McpError> {
        let name = || server.name.clone();
        let own = environment.iter();
        let own = own.map(|(name, value)| (name.clone(), value.expose_secret().into()));
        let program = Program {
            command: command.to_vec(),
            input: String::new(),
            close_input: None,
            folder: bench.folder.clone(),
            environment: bench.environment.clone().into_iter().chain(own).collect(),
            identity: bench.identity.as_ref().map(Identity::with_next_part),
            timeout,
            max_output_bytes: 0,
        };
        let failed = |source| McpError::Start {
            server: name(),
            source: ProgramError::Start { program: process::name(&program), source },
        };
        let (mut child, tree) = process::spawn(&program).map_err(failed)?;
        bench.report_start(tree.group()).await;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("it has no pipes")));
        };
        let process = Arc::new(ServerProcess::new(&server.name, false));
        let watcher = AbortOnDropHandle::new(tokio::spawn(watch(child, Arc::clone(&process))));
        let recorder = Arc::clone(&process);
        let stdout = InspectReader::new(stdout, move |bytes| recorder.record_stdout(bytes));
        let transport =
            AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
        let broken = |reason| McpError::Broken { server: name(), reason };
        let result = tokio::select! {
            result = tokio::time::timeout(timeout, handshake(transport)) => result,
            // Child processes of the server may keep its pipes open.
            _ = process.wait() => return Err(broken(process.silence_reason().await)),
        };
        match result {
            Ok(Ok((service, tools))) => {
                let (tree, _watcher) = (Some(tree), Some(watcher));
                Ok((Connection { tree, service, process, _watcher }, tools))
            }
            Ok(Err(reason)) => {
                let has_exited = tokio::time::timeout(DRAIN_TIMEOUT, process.wait()).await.is_ok();
                Err(broken(if has_exited { process.silence_reason().await } else { reason }))
            }
            Err(_) => {
                let stderr = Some(process.stderr()).filter(|text| !text.trim().is_empty());
                let outputs = [process.stray_output(), stderr];
                let output = outputs.into_iter().flatten().collect::<Vec<_>>().join("; ");
                Err(McpError::TimedOut { server: name(), after: timeout, output })
            }
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Closes the input of the server, which asks it to exit; terminates it if it does not; and kills it.
    pub(super) async fn close(mut self) {
        let _ = self.service.close_with_timeout(EXIT_TIMEOUT).await;
        let Some(tree) = &mut self.tree else { return };
        if tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await.is_err() {
            tree.terminate();
            let _ = tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The watcher is dropped, too. Tools that are called from now on report this reason.
        self.process.exit_status.send_if_modified(|status| {
            let is_new = status.is_none();
            status.get_or_insert_with(|| "it was closed".to_owned());
            is_new
        });
    }
}

/// Starts a session and lists the tools; the error follows "the MCP server `name`" in messages.
async fn handshake<T, E, A>(
    transport: T,
) -> Result<(RunningService<RoleClient, ClientConfig>, Vec<rmcp::model::Tool>), String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let info = ClientConfig::new(
        ClientCapabilities::default(),
        Implementation::new("bakeoff", env!("CARGO_PKG_VERSION")),
    );
    let service = serve_client(info, transport)
        .await
        .map_err(|error| format!("did not initialize: {error}"))?;
    let tools = list_tools(service.peer())
        .await
        .map_err(|error| format!("did not list its tools: {error}"))?;
    Ok((service, tools))
}

/// Lists all tools, page by page.
async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<rmcp::model::Tool>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    loop {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let listed = peer.list_tools(Some(page)).await?;
        let is_last = listed.next_cursor.is_none() || listed.tools.is_empty();
        tools.extend(listed.tools);
        cursor = listed.next_cursor;
        if is_last || tools.len() >= MAX_TOOLS {
            tools.truncate(MAX_TOOLS);
            return Ok(tools);
        }
    }
}

/// Records the standard error and the exit status of a server.
async fn watch(mut child: Child, process: Arc<ServerProcess>) {
    let stderr = child.stderr.take();
    let reader = AbortOnDropHandle::new(tokio::spawn(read_stderr(stderr, Arc::clone(&process))));
    let status = child.wait().await;
    // The pipe still contains output, and child processes may keep it open.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, reader).await;
    let status = status.map_or_else(|error| error.to_string(), describe_status);
    process.exit_status.send_replace(Some(status));
}

/// Reads until the pipe is closed.
async fn read_stderr(stderr: Option<ChildStderr>, process: Arc<ServerProcess>) {
    let Some(mut stderr) = stderr else { return };
    let mut chunk = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        process.stderr.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::describe_stray_output;

    #[test]
    fn output_that_is_no_message_is_described() {
        let describe = |prefix: &[u8]| describe_stray_output(prefix);
        assert_eq!(describe(b""), None);
        assert_eq!(describe(b"\n {\"jsonrpc\": \"2.0\"}\n"), None);
        let expected = "its standard output, which is for messages only, begins with `Welcome!`";
        assert_eq!(describe(b"Welcome!\n{\"jsonrpc\"").as_deref(), Some(expected));
        assert!(describe(b"\xff\x00").is_some(), "bytes that are no text are no message");
    }
}
