//! Execution of one external program: input, capped output, timeout and cancellation. Processes that it starts
//! are killed when it ends.

use crate::identity::Identity;
use crate::output::CapturedOutput;
use crate::tree::ProcessTree;
use bakeoff_core::ProcessGroup;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a program and its children may take to exit after SIGTERM.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often to check whether the children of a program have exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long the children of a program may keep its pipes open after it has exited.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Deadline of programs whose timeout does not fit the clock; longer than any program runs.
const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A program to run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Program {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Written to standard input, which is then closed.
    pub input: String,
    /// Keeps standard input open until it is cancelled or the program exits.
    pub close_input: Option<CancellationToken>,
    /// Working directory.
    pub folder: PathBuf,
    /// Added to the environment of this process.
    pub environment: BTreeMap<String, OsString>,
    /// Owner of the program, passed in its environment. Processes that left the process group of the program
    /// are recognised by it and killed.
    pub identity: Option<Identity>,
    /// Time limit.
    pub timeout: Duration,
    /// Maximum number of bytes kept of each output.
    pub max_output_bytes: usize,
}

impl Program {
    /// Creates a program without input, with the environment of this process.
    pub fn new(
        command: Vec<OsString>,
        folder: impl Into<PathBuf>,
        timeout: Duration,
        max_output_bytes: usize,
    ) -> Program {
        Program {
            command,
            input: String::new(),
            close_input: None,
            folder: folder.into(),
            environment: BTreeMap::new(),
            identity: None,
            timeout,
            max_output_bytes,
        }
    }

    /// Sets what is written to standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> Program {
        self.input = input.into();
        self
    }

    /// Keeps standard input open until the token is cancelled or the program exits.
    #[must_use]
    pub fn close_input(mut self, token: impl Into<Option<CancellationToken>>) -> Program {
        self.close_input = token.into();
        self
    }

    /// Sets what is added to the environment of this process.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<String, OsString>) -> Program {
        self.environment = environment;
        self
    }

    /// Sets the owner of the program.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Option<Identity>>) -> Program {
        self.identity = identity.into();
        self
    }
}

/// Output and exit reason of a program.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Number of bytes of both outputs that were not kept.
    pub dropped_bytes: u64,
    /// Number of bytes of standard output that were not kept.
    pub dropped_stdout_bytes: u64,
    /// Why the program ended.
    pub exit_reason: ExitReason,
}

/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// It exited with this code.
    Exited(i32),
    /// A signal from elsewhere ended it.
    Signalled(i32),
    /// It exceeded its time limit and was terminated.
    TimedOut,
    /// It was terminated because the caller cancelled it.
    Cancelled,
}

/// A program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program does not exist, or the machine lacks resources to start it.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Name of the program.
        program: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The program was started, but waiting for it failed.
    #[error("lost track of `{program}`: {source}")]
    Lost {
        /// Name of the program.
        program: String,
        /// Cause.
        source: std::io::Error,
    },
}

impl ProgramError {
    /// Returns whether the machine lacked resources to start the program: processes, memory or files.
    pub fn is_exhaustion(&self) -> bool {
        match self {
            ProgramError::Start { source, .. } => is_exhaustion(source),
            ProgramError::Lost { .. } => false,
        }
    }
}

/// Returns whether the machine lacked resources: processes, memory or files.
pub fn is_exhaustion(error: &std::io::Error) -> bool {
    use nix::errno::Errno;
    const EXHAUSTED: [Errno; 4] = [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&Errno::from_raw(code)))
}

/// Runs a program in a process group of its own and terminates the whole group when its time is up.
///
/// Dropping the future kills the group, and the descendants of the program that can be found.
pub async fn run(
    program: &Program,
    cancel: &CancellationToken,
) -> Result<ProgramOutput, ProgramError> {
    start(program)?.finish(cancel, &mut |_| {}).await
}

/// A program that was started. Its processes are killed when this is dropped.
#[derive(Debug)]
pub struct RunningProgram<'a> {
    // Fields are dropped in order: the processes are killed before the handle of the child is dropped.
    tree: ProcessTree,
    child: Child,
    program: &'a Program,
    deadline: Instant,
}

/// Starts a program in a process group of its own. Nothing is written or read yet.
///
/// # Errors
///
/// [`ProgramError::Start`].
pub fn start(program: &Program) -> Result<RunningProgram<'_>, ProgramError> {
    let (child, tree) =
        spawn(program).map_err(|source| ProgramError::Start { program: name(program), source })?;
    let now = Instant::now();
    let deadline = now.checked_add(program.timeout).unwrap_or(now + MAX_TIMEOUT);
    Ok(RunningProgram { tree, child, program, deadline })
}

impl RunningProgram<'_> {
    /// Returns the process group that the program leads.
    pub fn group(&self) -> Option<ProcessGroup> {
        self.tree.group()
    }

    /// Writes the input, reads the outputs and waits until the program and the processes that it has started
    /// have exited. Passes all of standard output to `on_stdout`, in pieces.
    ///
    /// See [`become_subreaper`](crate::become_subreaper) for processes that can escape.
    ///
    /// # Errors
    ///
    /// [`ProgramError::Lost`].
    pub fn finish<'f>(
        self,
        cancel: &'f CancellationToken,
        on_stdout: &'f mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'f, Result<ProgramOutput, ProgramError>>
    where
        Self: 'f,
    {
        Box::pin(self.wait(cancel, on_stdout))
    }

    async fn wait(
        self,
        cancel: &CancellationToken,
        on_stdout: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<ProgramOutput, ProgramError> {
        let RunningProgram { mut tree, mut child, program, deadline } = self;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (CapturedOutput::default(), CapturedOutput::default());
        let max_bytes = program.max_output_bytes;
        let write_input = async {
            if let Some(mut stdin) = stdin {
                // Fails if the program closes its standard input, which it may do.
                let _ = stdin.write_all(program.input.as_bytes()).await;
                if let Some(close) = &program.close_input {
                    close.cancelled().await;
                }
            }
        };
        let read_out = async {
            match stdout {
                Some(pipe) => out.read_from(pipe, max_bytes, on_stdout).await,
                None => Ok(()),
            }
        };
        let read_err = async {
            match stderr {
                Some(pipe) => err.read_from(pipe, max_bytes, |_| {}).await,
                None => Ok(()),
            }
        };
        let lost = |source| ProgramError::Lost { program: name(program), source };
        let exit_reason = {
            let mut pipes = PipeDrain {
                pipes: std::pin::pin!(async {
                    drop(tokio::join!(write_input, read_out, read_err))
                }),
                is_drained: false,
            };
            let wait = wait_for_exit(&mut child, &mut tree, deadline, cancel);
            let exit_reason = pipes.during(wait).await.map_err(lost)?;
            program.close_input.iter().for_each(CancellationToken::cancel);
            // The program has exited. Its children may still write for a while.
            pipes.wait(DRAIN_TIMEOUT).await;
            // Only a runtime that is shutting down loses the task; dropping the tree kills the processes, too.
            let _ = tokio::task::spawn_blocking(move || tree.kill()).await;
            pipes.wait(DRAIN_TIMEOUT).await;
            exit_reason
        };
        let ((stdout, dropped_out), (stderr, dropped_err)) = (out.into_text(), err.into_text());
        Ok(ProgramOutput {
            stdout,
            stderr,
            dropped_bytes: dropped_out + dropped_err,
            dropped_stdout_bytes: dropped_out,
            exit_reason,
        })
    }
}

pub(crate) fn name(program: &Program) -> String {
    program.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Pipes that are written and read while another future is awaited.
struct PipeDrain<'p, F> {
    pipes: std::pin::Pin<&'p mut F>,
    is_drained: bool,
}

impl<F: Future<Output = ()>> PipeDrain<'_, F> {
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                () = &mut self.pipes, if !self.is_drained => self.is_drained = true,
            }
        }
    }

    async fn wait(&mut self, timeout: Duration) {
        if !self.is_drained {
            self.is_drained = tokio::time::timeout(timeout, &mut self.pipes).await.is_ok();
        }
    }
}

pub(crate) fn spawn(program: &Program) -> std::io::Result<(Child, ProcessTree)> {
    let (name, arguments) = program
        .command
        .split_first()
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "empty command"))?;
    let mut command = Command::new(name);
    command
        .args(arguments)
        .current_dir(&program.folder)
        .envs(&program.environment)
        .envs(program.identity.iter().flat_map(Identity::variables))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ProcessTree::spawn(&mut command, program.identity.as_ref())
}

/// Waits for the program to exit. Terminates its processes when its time is up or it is cancelled; the caller
/// kills those that are still running afterwards.
async fn wait_for_exit(
    child: &mut Child,
    tree: &mut ProcessTree,
    deadline: Instant,
    cancel: &CancellationToken,
) -> std::io::Result<ExitReason> {
    let reason = tokio::select! {
        status = child.wait() => return status.map(exit_reason),
        () = tokio::time::sleep_until(deadline) => ExitReason::TimedOut,
        () = cancel.cancelled() => ExitReason::Cancelled,
    };
    tree.terminate();
    let wait_for_group = async {
        child.wait().await?;
        while !tree.is_group_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(reason)
    };
    if let Ok(result) = tokio::time::timeout(TERMINATE_TIMEOUT, wait_for_group).await {
        return result;
    }
    tree.start_kill();
    child.wait().await?;
    Ok(reason)
}

fn exit_reason(status: ExitStatus) -> ExitReason {
    use std::os::unix::process::ExitStatusExt;
    match status.code() {
        Some(code) => ExitReason::Exited(code),
        None => ExitReason::Signalled(status.signal().unwrap_or_default()),
    }
}
