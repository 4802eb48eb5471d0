//! One program, one run.

use crate::output::Captured;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// How long a program may take to go after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long a program's children may hold its pipes after it has gone.
pub(crate) const LINGER: Duration = Duration::from_millis(500);

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Written to standard input, which is then closed.
    pub input: String,
    /// Where it runs.
    pub folder: PathBuf,
    /// Added to the environment of this process.
    pub environment: BTreeMap<String, OsString>,
    /// How long it may take.
    pub timeout: Duration,
    /// Most bytes kept of each of its outputs.
    pub most_output: usize,
}

/// What became of a program that was started.
#[derive(Debug)]
pub struct Finished {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Bytes of either that were not kept.
    pub dropped_bytes: u64,
    /// How it ended.
    pub ended: Ended,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that we did not send.
    Signalled(i32),
    /// We ended it because it took too long.
    TimedOut,
    /// We ended it because we were told to stop.
    Cancelled,
}

/// A program that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program, or not enough of the machine left to start it.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Which one.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It was started and then lost.
    #[error("lost track of `{program}`: {source}")]
    Lost {
        /// Which one.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}

impl ProgramError {
    /// Whether there was not enough of the machine left to start it: processes, memory or files.
    pub fn is_exhaustion(&self) -> bool {
        use nix::errno::Errno;
        const EXHAUSTED: [Errno; 4] = [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];
        match self {
            ProgramError::Start { source, .. } => {
                source.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&Errno::from_raw(code)))
            }
            ProgramError::Lost { .. } => false,
        }
    }
}

/// Runs a program in a process group of its own and ends the whole group when its time is up.
///
/// Dropping the future kills the group.
pub async fn run(program: &Program, cancel: &CancellationToken) -> Result<Finished, ProgramError> {
    let name = || program.command.first().map(|name| name.to_string_lossy().into_owned());
    let name = || name().unwrap_or_default();
    let mut child =
        spawn(program).map_err(|source| ProgramError::Start { program: name(), source })?;
    let lost = |source| ProgramError::Lost { program: name(), source };
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Captured::default(), Captured::default());
    let most = program.most_output;

    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its prompt closes the pipe; that is its own business.
            let _ = stdin.write_all(program.input.as_bytes()).await;
        }
    };
    let read_out =
        async { if let Some(pipe) = stdout { out.read_from(pipe, most).await } else { Ok(()) } };
    let read_err =
        async { if let Some(pipe) = stderr { err.read_from(pipe, most).await } else { Ok(()) } };
    let ended = {
        let mut pipes = std::pin::pin!(async { tokio::join!(feed, read_out, read_err) });
        let mut end = std::pin::pin!(wait(&mut child, &group, program.timeout, cancel));
        let mut drained = false;
        let ended = loop {
            tokio::select! {
                ended = &mut end => break ended.map_err(lost)?,
                _ = &mut pipes, if !drained => drained = true,
            }
        };
        // The leader has gone. Its children may still write, but not for ever.
        if !drained {
            let _ = tokio::time::timeout(LINGER, &mut pipes).await;
        }
        ended
    };
    group.signal(Signal::SIGKILL);
    let ((stdout, dropped_out), (stderr, dropped_err)) = (out.into_text(), err.into_text());
    Ok(Finished { stdout, stderr, dropped_bytes: dropped_out + dropped_err, ended })
}

fn spawn(program: &Program) -> std::io::Result<Child> {
    let (name, arguments) = program
        .command
        .split_first()
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "empty command"))?;
    Command::new(name)
        .args(arguments)
        .current_dir(&program.folder)
        .envs(&program.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Waits for the leader; asks its group to go when its time is up, and insists after a while.
async fn wait(
    child: &mut Child,
    group: &Group,
    timeout: Duration,
    cancel: &CancellationToken,
) -> std::io::Result<Ended> {
    let reason = tokio::select! {
        status = child.wait() => return status.map(of_status),
        () = tokio::time::sleep(timeout) => Ended::TimedOut,
        () = cancel.cancelled() => Ended::Cancelled,
    };
    group.signal(Signal::SIGTERM);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        group.signal(Signal::SIGKILL);
        child.wait().await?;
    }
    Ok(reason)
}

fn of_status(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match status.code() {
        Some(code) => Ended::Exited(code),
        None => Ended::Signalled(status.signal().unwrap_or_default()),
    }
}

/// The process group of a program; killed when dropped, so that nothing is left behind.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    pub(crate) fn of(child: &Child) -> Group {
        Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // Fails when everybody has gone, which is what we want.
            let _ = killpg(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
