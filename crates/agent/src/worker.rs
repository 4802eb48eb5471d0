//! Persistent worker programs: one request line in, one reply line out, any number of times. The caller
//! defines the format of the lines.
//!
//! A worker that times out, exits, writes more than its reply, or whose caller is dropped, is killed with its process
//! group. The next request starts a new worker, so a late reply is never matched to another request.

use crate::ProgramError;
use crate::output::OutputTail;
use crate::process::DRAIN_TIMEOUT;
use crate::tree::ProcessTree;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Command of a worker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerProgram {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Working directory.
    pub folder: PathBuf,
    /// Added to the environment of this process.
    pub environment: BTreeMap<String, OsString>,
    /// Maximum number of bytes of a reply.
    pub max_reply_bytes: usize,
}

impl WorkerProgram {
    /// Creates a program that runs in a folder, with the environment of this process.
    pub fn new(
        command: Vec<OsString>,
        folder: impl Into<PathBuf>,
        max_reply_bytes: usize,
    ) -> WorkerProgram {
        WorkerProgram {
            command,
            folder: folder.into(),
            environment: BTreeMap::new(),
            max_reply_bytes,
        }
    }
}

/// Workers of one program, started on demand and killed when this and all that share its limit are dropped.
#[derive(Debug)]
pub struct Workers {
    program: WorkerProgram,
    limit: WorkerLimit,
    /// Number of these workers among those with the same limit.
    number: usize,
}

/// Maximum number of worker processes, busy or idle, of all [`Workers`] with the same limit.
#[derive(Debug, Clone)]
pub struct WorkerLimit {
    shared: Arc<SharedWorkers>,
}

#[derive(Debug)]
struct SharedWorkers {
    count: usize,
    /// One permit per busy worker.
    permits: Semaphore,
    /// Workers without a request, with the number of their program; the longest idle is first. Never locked across an
    /// await.
    idle: Mutex<Vec<(usize, Worker)>>,
    programs: AtomicUsize,
}

impl WorkerLimit {
    /// Creates a limit.
    pub fn new(count: NonZeroUsize) -> WorkerLimit {
        let count = count.get().min(Semaphore::MAX_PERMITS);
        let shared = SharedWorkers {
            count,
            permits: Semaphore::new(count),
            idle: Mutex::default(),
            programs: AtomicUsize::new(0),
        };
        WorkerLimit { shared: Arc::new(shared) }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Worker)>> {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle worker of a program that is running; drops those that have exited.
    fn take_idle(&self, number: usize) -> Option<Worker> {
        let mut idle = self.idle();
        while let Some(position) = idle.iter().rposition(|(owner, _)| *owner == number) {
            let (_, mut worker) = idle.remove(position);
            if matches!(worker.child.try_wait(), Ok(None)) {
                return Some(worker);
            }
        }
        None
    }

    /// Takes the longest idle worker if it has to exit before another can start. The caller holds a permit.
    fn take_surplus(&self) -> Option<Worker> {
        let mut idle = self.idle();
        let busy = self.shared.count - self.shared.permits.available_permits();
        (idle.len() + busy > self.shared.count && !idle.is_empty()).then(|| idle.remove(0).1)
    }
}

/// A worker did not reply.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The worker cannot be started.
    #[error(transparent)]
    Start(#[from] ProgramError),
    /// The worker exceeded the time limit and was killed.
    #[error("no answer within {} s{}", .after.as_secs_f64(), stderr_suffix(.stderr))]
    TimedOut {
        /// Time limit.
        after: Duration,
        /// End of its standard error.
        stderr: String,
    },
    /// The worker exited without a reply.
    #[error("ended without an answer ({status}){}", stderr_suffix(.stderr))]
    Exited {
        /// Exit code or signal, as text.
        status: String,
        /// End of its standard error.
        stderr: String,
    },
    /// The reply was too long or not text; the worker was killed.
    #[error("{0}")]
    InvalidReply(String),
    /// The caller cancelled the request.
    #[error("cancelled")]
    Cancelled,
}

/// Formats the end of standard error as suffix of a message; empty if there is none.
pub(crate) fn stderr_suffix(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

impl Workers {
    /// Creates a set of at most `count` workers. None is started yet.
    pub fn new(program: WorkerProgram, count: NonZeroUsize) -> Workers {
        Workers::within(program, &WorkerLimit::new(count))
    }

    /// Creates a set of workers that shares a limit with others: if the limit is reached, an idle worker of another
    /// program exits before a new one starts. None is started yet.
    pub fn within(program: WorkerProgram, limit: &WorkerLimit) -> Workers {
        let number = limit.shared.programs.fetch_add(1, Ordering::Relaxed);
        Workers { program, limit: limit.clone(), number }
    }

    /// Sends a line to an idle worker and returns its reply, also a line; neither includes the newline. The
    /// timeout includes the start of a worker, but not the wait for an idle one.
    ///
    /// # Errors
    ///
    /// There was no reply. The worker may have read the request, so it is not sent again.
    pub fn request<'a>(
        &'a self,
        request: &'a str,
        timeout: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, WorkerError>> {
        let parse = |reply: &str| Ok::<_, Infallible>(reply.to_owned());
        Box::pin(self.request_parsed(request, timeout, cancel, parse))
    }

    /// Sends a line as [`Workers::request`] does and parses the reply. A reply that `parse` rejects, such
    /// as one to another request, ends the worker; the error of `parse` becomes the message of
    /// [`WorkerError::InvalidReply`].
    ///
    /// # Errors
    ///
    /// As for [`Workers::request`], and [`WorkerError::InvalidReply`].
    pub async fn request_parsed<T, E: std::fmt::Display>(
        &self,
        request: &str,
        timeout: Duration,
        cancel: &CancellationToken,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, WorkerError> {
        let work = async {
            // The semaphore is never closed.
            let permit = self.limit.shared.permits.acquire().await;
            let _permit = permit.map_err(|_| WorkerError::Cancelled)?;
            let mut worker = match self.limit.take_idle(self.number) {
                Some(worker) => worker,
                None => {
                    if let Some(mut surplus) = self.limit.take_surplus() {
                        surplus.kill().await;
                    }
                    Worker::start(&self.program)?
                }
            };
            let exchange = worker.exchange(request, self.program.max_reply_bytes);
            let exchanged = tokio::time::timeout(timeout, exchange).await;
            let invalid = |error: E| ExchangeError::Reply(error.to_string());
            let exchanged =
                exchanged.map(|reply| reply.and_then(|reply| parse(&reply).map_err(invalid)));
            match exchanged {
                Ok(Ok(reply)) => {
                    // Output beyond the reply would be taken for the reply to the next request.
                    if worker.has_empty_buffer() {
                        self.limit.idle().push((self.number, worker));
                    }
                    Ok(reply)
                }
                Ok(Err(ExchangeError::Closed)) => {
                    let status = worker.exit_status().await;
                    Err(WorkerError::Exited { status, stderr: worker.tail.text() })
                }
                Ok(Err(ExchangeError::Reply(reason))) => {
                    worker.kill().await;
                    Err(WorkerError::InvalidReply(reason))
                }
                Err(_) => {
                    worker.kill().await;
                    Err(WorkerError::TimedOut { after: timeout, stderr: worker.tail.text() })
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(WorkerError::Cancelled),
            reply = work => reply,
        }
    }
}

/// Why an exchange failed.
enum ExchangeError {
    /// The worker has closed its pipes.
    Closed,
    /// The reply is invalid.
    Reply(String),
}

#[derive(Debug)]
struct Worker {
    // Fields are dropped in order: the processes are killed before the handle of the child is dropped.
    tree: ProcessTree,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Option<ChildStderr>,
    tail: OutputTail,
}

impl Worker {
    fn start(program: &WorkerProgram) -> Result<Worker, ProgramError> {
        let name = program.command.first().map(|name| name.to_string_lossy().into_owned());
        let failed =
            |source| ProgramError::Start { program: name.clone().unwrap_or_default(), source };
        let invalid =
            |reason| failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason));
        let (name, arguments) =
            program.command.split_first().ok_or_else(|| invalid("empty command"))?;
        let mut command = Command::new(name);
        command
            .args(arguments)
            .current_dir(&program.folder)
            .envs(&program.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, tree) = ProcessTree::spawn(&mut command, None).map_err(failed)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), stderr) => Ok(Worker {
                tree,
                child,
                stdin,
                stdout: BufReader::new(stdout),
                stderr,
                tail: OutputTail::default(),
            }),
            _ => Err(invalid("no pipes")),
        }
    }

    async fn exchange(
        &mut self,
        request: &str,
        max_reply_bytes: usize,
    ) -> Result<String, ExchangeError> {
        let Worker { stdin, stdout, stderr, tail, .. } = self;
        let write = async {
            stdin.write_all(request.as_bytes()).await.map_err(|_| ExchangeError::Closed)?;
            stdin.write_all(b"\n").await.map_err(|_| ExchangeError::Closed)?;
            stdin.flush().await.map_err(|_| ExchangeError::Closed)
        };
        let read = read_line(stdout, max_reply_bytes);
        // A full pipe of standard error would block the worker.
        let read_stderr = async {
            tail.read_from(stderr).await;
            std::future::pending::<()>().await;
        };
        let exchange = async { tokio::try_join!(write, read).map(|((), line)| line) };
        tokio::select! {
            reply = exchange => reply,
            () = read_stderr => Err(ExchangeError::Closed),
        }
    }

    /// Returns whether the worker has written nothing beyond its reply.
    fn has_empty_buffer(&self) -> bool {
        self.stdout.buffer().is_empty()
    }

    /// Returns the exit status, as text, of a worker that has closed its pipes, and kills what it has started.
    async fn exit_status(&mut self) -> String {
        // A worker that is exiting gets time to do so with its own exit code.
        let status = match tokio::time::timeout(DRAIN_TIMEOUT, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.tree.start_kill();
                self.child.wait().await
            }
        };
        self.kill().await;
        status.map_or_else(|error| error.to_string(), describe_status)
    }

    /// Kills the worker and the processes that it has started.
    async fn kill(&mut self) {
        self.tree.start_kill();
        let _ = self.child.wait().await;
        let Worker { stderr, tail, .. } = self;
        // What the processes wrote before they were killed is still in the pipe.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, tail.read_from(stderr)).await;
    }
}

async fn read_line(
    stdout: &mut BufReader<ChildStdout>,
    max_bytes: usize,
) -> Result<String, ExchangeError> {
    let mut line = Vec::new();
    loop {
        let chunk = stdout.fill_buf().await.map_err(|_| ExchangeError::Closed)?;
        if chunk.is_empty() {
            return Err(ExchangeError::Closed);
        }
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let end = newline.unwrap_or(chunk.len());
        line.extend_from_slice(&chunk[..end]);
        let consumed = newline.map_or(end, |at| at + 1);
        stdout.consume(consumed);
        if line.len() > max_bytes {
            return Err(ExchangeError::Reply(format!(
                "the answer is longer than {max_bytes} bytes"
            )));
        }
        if newline.is_some() {
            return String::from_utf8(line)
                .map_err(|_| ExchangeError::Reply("the answer is not UTF-8".to_owned()));
        }
    }
}

/// Formats an exit status for messages.
pub(crate) fn describe_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}
