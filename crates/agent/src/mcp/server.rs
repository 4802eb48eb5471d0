//! One server: its process, and the conversation with it.

use super::{McpError, McpServer};
use crate::group::Group;
use crate::identity::Identity;
use crate::output::Tail;
use crate::process::{self, LINGER, Program, ProgramError};
use crate::tools::Workbench;
use crate::worker::{in_words, said};
use nix::sys::signal::Signal;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr};
use tokio::sync::watch;
use tokio_util::io::InspectReader;
use tokio_util::task::AbortOnDropHandle;

/// Most tools of a server that are listed.
const MOST_TOOLS: usize = 1_000;

/// Most bytes of one message of a server; longer ones are passed over.
const LONGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// Most bytes of its output that are shown when it is not understood.
const LONGEST_BEGINNING: usize = 100;

/// How long a server may take to go after its input was closed, and again after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// A server that runs and has said what it can do.
#[derive(Debug)]
pub(super) struct Connection {
    // Killed first, when all of it is dropped.
    group: Group,
    service: RunningService<RoleClient, ClientConfig>,
    pub(super) known: Arc<Known>,
    /// Waits for the process and listens to its complaints.
    _watcher: AbortOnDropHandle<()>,
}

/// What is known of a server's process.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: String,
    /// Never locked across a wait.
    tail: Mutex<Tail>,
    /// The beginning of its standard output, which is for messages only.
    begins: Mutex<Vec<u8>>,
    /// How it ended, once it has.
    ended: watch::Sender<Option<String>>,
}

impl Known {
    /// Waits for its end; how it ended.
    pub(super) async fn end(&self) -> String {
        let mut ended = self.ended.subscribe();
        // The sender is our own, so that this does not fail.
        let how = ended.wait_for(Option::is_some).await;
        how.ok().and_then(|how| how.clone()).unwrap_or_default()
    }

    /// Why nothing comes from it any more: after "the MCP server `name`".
    pub(super) async fn why_silent(&self) -> String {
        let how = match tokio::time::timeout(LINGER, self.end()).await {
            Ok(how) => format!("has ended ({how})"),
            Err(_) => "has closed its output".to_owned(),
        };
        format!("{how}{}", said(&self.stderr()))
    }

    /// What it last said on its standard error.
    fn stderr(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl Known {
    fn hear(&self, bytes: &[u8]) {
        let mut begins = self.begins.lock().unwrap_or_else(PoisonError::into_inner);
        let room = LONGEST_BEGINNING.saturating_sub(begins.len());
        begins.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn chatter(&self) -> Option<String> {
        chatter(&self.begins.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// That a server prints to its standard output, which many do before they know better.
fn chatter(begins: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(begins);
    let line = text.trim_start().lines().next().filter(|line| !line.starts_with('{'))?;
    Some(format!("its standard output, which is for messages only, begins with `{line}`"))
}

impl Connection {
    /// Starts a server and asks for its tools.
    pub(super) async fn open(
        server: &McpServer,
        bench: &Workbench,
        patience: Duration,
    ) -> Result<(Connection, Vec<rmcp::model::Tool>), McpError> {
        let name = || server.name.clone();
        let program = Program {
            command: server.command.clone(),
            input: String::new(),
            folder: bench.folder.clone(),
            environment: bench.environment.clone(),
            identity: bench.identity.as_ref().map(Identity::of_next_part),
            timeout: patience,
            most_output: 0,
        };
        let failed = |source| McpError::Start {
            server: name(),
            source: ProgramError::Start { program: process::name(&program), source },
        };
        let mut child = process::spawn(&program).map_err(failed)?;
        let group = Group::of(&child);
        bench.tell(group.id()).await;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("it has no pipes")));
        };
        let known = Arc::new(Known {
            name: name(),
            tail: Mutex::default(),
            begins: Mutex::default(),
            ended: watch::Sender::new(None),
        });
        let watcher = AbortOnDropHandle::new(tokio::spawn(watch(child, Arc::clone(&known))));
        let talk = async {
            let listener = Arc::clone(&known);
            let stdout = InspectReader::new(stdout, move |bytes| listener.hear(bytes));
            let transport =
                AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LONGEST_MESSAGE);
            let info = ClientConfig::new(
                ClientCapabilities::default(),
                Implementation::new("bakeoff", env!("CARGO_PKG_VERSION")),
            );
            let service = serve_client(info, transport)
                .await
                .map_err(|error| format!("did not begin: {error}"))?;
            let tools = list(service.peer())
                .await
                .map_err(|error| format!("did not list its tools: {error}"))?;
            Ok((service, tools))
        };
        let broken = |reason| McpError::Broken { server: name(), reason };
        let talked = tokio::select! {
            talked = tokio::time::timeout(patience, talk) => talked,
            // Its pipes may be held open by what it started.
            _ = known.end() => return Err(broken(known.why_silent().await)),
        };
        match talked {
            Ok(Ok((service, tools))) => {
                Ok((Connection { group, service, known, _watcher: watcher }, tools))
            }
            Ok(Err::<_, String>(reason)) => {
                let ended = tokio::time::timeout(LINGER, known.end()).await.is_ok();
                Err(broken(if ended { known.why_silent().await } else { reason }))
            }
            Err(_) => {
                let stderr = known.stderr();
                let said = [known.chatter(), Some(stderr).filter(|text| !text.trim().is_empty())];
                let said = said.into_iter().flatten().collect::<Vec<_>>().join("; ");
                Err(McpError::TimedOut { server: name(), after: patience, said })
            }
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Closes its input, which tells a server to go; asks it to, when it does not; and kills it.
    pub(super) async fn close(mut self) {
        let _ = self.service.close_with_timeout(GRACE).await;
        if tokio::time::timeout(GRACE, self.known.end()).await.is_err() {
            self.group.signal(Signal::SIGTERM);
            let _ = tokio::time::timeout(GRACE, self.known.end()).await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Nobody waits for it any more; tools that are called all the same should say why.
        self.known.ended.send_if_modified(|ended| {
            let is_news = ended.is_none();
            ended.get_or_insert_with(|| "it was closed".to_owned());
            is_news
        });
    }
}

/// All tools, page by page.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<rmcp::model::Tool>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    loop {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let listed = peer.list_tools(Some(page)).await?;
        let is_last = listed.next_cursor.is_none() || listed.tools.is_empty();
        tools.extend(listed.tools);
        cursor = listed.next_cursor;
        if is_last || tools.len() >= MOST_TOOLS {
            tools.truncate(MOST_TOOLS);
            return Ok(tools);
        }
    }
}

/// Keeps what a server complains about, and tells how it ended.
async fn watch(mut child: Child, known: Arc<Known>) {
    let stderr = child.stderr.take();
    let listening = AbortOnDropHandle::new(tokio::spawn(listen(stderr, Arc::clone(&known))));
    let status = child.wait().await;
    // What it wrote is still in the pipe; its children may hold the pipe open.
    let _ = tokio::time::timeout(LINGER, listening).await;
    known.ended.send_replace(Some(status.map_or_else(|error| error.to_string(), in_words)));
}

/// Listens until the pipe is closed.
async fn listen(stderr: Option<ChildStderr>, known: Arc<Known>) {
    let Some(mut stderr) = stderr else { return };
    let mut chunk = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        known.tail.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::chatter;

    #[test]
    fn what_is_no_message_is_shown() {
        let told = |begins: &[u8]| chatter(begins);
        assert_eq!(told(b""), None);
        assert_eq!(told(b"\n {\"jsonrpc\": \"2.0\"}\n"), None);
        let shown = "its standard output, which is for messages only, begins with `Welcome!`";
        assert_eq!(told(b"Welcome!\n{\"jsonrpc\"").as_deref(), Some(shown));
        assert!(told(b"\xff\x00").is_some(), "what is no text is no message either");
    }
}
