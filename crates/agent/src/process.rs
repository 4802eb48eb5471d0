//! One program, one run.

use crate::group::Group;
use crate::identity::Identity;
use crate::output::Captured;
use bakeoff_core::ProcessGroup;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a program and its children may take to go after they were asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked whether a program's children have gone.
const LOOK: Duration = Duration::from_millis(20);

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
    /// Whose program it is, told in its environment; processes that left its group are found and
    /// ended by it.
    pub identity: Option<Identity>,
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
    /// Those of standard output among them.
    pub dropped_stdout_bytes: u64,
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
        match self {
            ProgramError::Start { source, .. } => is_exhaustion(source),
            ProgramError::Lost { .. } => false,
        }
    }
}

/// Whether there was not enough of the machine left: processes, memory or files.
pub fn is_exhaustion(error: &std::io::Error) -> bool {
    use nix::errno::Errno;
    const EXHAUSTED: [Errno; 4] = [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&Errno::from_raw(code)))
}

/// Runs a program in a process group of its own and ends the whole group when its time is up.
///
/// Dropping the future kills the group.
pub async fn run(program: &Program, cancel: &CancellationToken) -> Result<Finished, ProgramError> {
    start(program)?.finish(cancel, |_| {}).await
}

/// A program that was started. Its group is killed when this is dropped.
#[derive(Debug)]
pub struct Running<'a> {
    // Killed first, when all of it is dropped.
    group: Group,
    child: Child,
    program: &'a Program,
    deadline: Instant,
}

/// Starts a program in a process group of its own. Nothing is written or read yet.
///
/// # Errors
///
/// [`ProgramError::Start`].
pub fn start(program: &Program) -> Result<Running<'_>, ProgramError> {
    let child =
        spawn(program).map_err(|source| ProgramError::Start { program: name(program), source })?;
    let group = Group::of(&child);
    // A deadline beyond all clocks is none.
    let now = Instant::now();
    let deadline = now.checked_add(program.timeout).unwrap_or(now + FOREVER);
    Ok(Running { group, child, program, deadline })
}

/// Longer than any program runs.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

impl Running<'_> {
    /// The process group that it leads.
    pub fn group(&self) -> Option<ProcessGroup> {
        self.group.id()
    }

    /// Hands it its prompt, reads what it says and waits for its end; whatever it started has gone
    /// then, too. All of its standard output is told to `listen` in pieces.
    ///
    /// # Errors
    ///
    /// [`ProgramError::Lost`].
    pub async fn finish(
        self,
        cancel: &CancellationToken,
        listen: impl FnMut(&[u8]),
    ) -> Result<Finished, ProgramError> {
        let Running { group, mut child, program, deadline } = self;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (Captured::default(), Captured::default());
        let most = program.most_output;
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read its prompt closes the pipe; that is its own business.
                let _ = stdin.write_all(program.input.as_bytes()).await;
            }
        };
        let read_out = async {
            if let Some(pipe) = stdout { out.read_from(pipe, most, listen).await } else { Ok(()) }
        };
        let read_err = async {
            if let Some(pipe) = stderr { err.read_from(pipe, most, |_| {}).await } else { Ok(()) }
        };
        let ended = {
            let mut pipes = Draining {
                pipes: std::pin::pin!(async { drop(tokio::join!(feed, read_out, read_err)) }),
                drained: false,
            };
            let ending = end(&mut child, &group, program.identity.as_ref(), deadline, cancel);
            let ended = pipes
                .during(ending)
                .await
                .map_err(|source| ProgramError::Lost { program: name(program), source })?;
            // The leader has gone. Its children may still write, but not for ever.
            pipes.wait(LINGER).await;
            group.signal(Signal::SIGKILL);
            if let Some(identity) = program.identity.clone() {
                // Only a broken runtime loses the task, and then nothing can be done.
                let _ = tokio::task::spawn_blocking(move || identity.kill()).await;
            }
            pipes.wait(LINGER).await;
            ended
        };
        let ((stdout, dropped_out), (stderr, dropped_err)) = (out.into_text(), err.into_text());
        Ok(Finished {
            stdout,
            stderr,
            dropped_bytes: dropped_out + dropped_err,
            dropped_stdout_bytes: dropped_out,
            ended,
        })
    }
}

pub(crate) fn name(program: &Program) -> String {
    program.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Pipes that are written and read while something else is waited for.
struct Draining<'p, F> {
    pipes: std::pin::Pin<&'p mut F>,
    drained: bool,
}

impl<F: Future<Output = ()>> Draining<'_, F> {
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = &mut self.pipes, if !self.drained => self.drained = true,
            }
        }
    }

    async fn wait(&mut self, most: Duration) {
        if !self.drained {
            self.drained = tokio::time::timeout(most, &mut self.pipes).await.is_ok();
        }
    }
}

pub(crate) fn spawn(program: &Program) -> std::io::Result<Child> {
    let (name, arguments) = program
        .command
        .split_first()
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "empty command"))?;
    Command::new(name)
        .args(arguments)
        .current_dir(&program.folder)
        .envs(&program.environment)
        .envs(program.identity.iter().flat_map(Identity::variables))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Waits for the leader; asks everybody to go when its time is up. Who does not go by then is for
/// the caller to kill.
async fn end(
    child: &mut Child,
    group: &Group,
    identity: Option<&Identity>,
    deadline: Instant,
    cancel: &CancellationToken,
) -> std::io::Result<Ended> {
    let reason = tokio::select! {
        status = child.wait() => return status.map(of_status),
        () = tokio::time::sleep_until(deadline) => Ended::TimedOut,
        () = cancel.cancelled() => Ended::Cancelled,
    };
    group.signal(Signal::SIGTERM);
    if let Some(identity) = identity.cloned() {
        let _ = tokio::task::spawn_blocking(move || identity.terminate()).await;
    }
    let all_gone = async {
        child.wait().await?;
        while !group.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        Ok(reason)
    };
    if let Ok(gone) = tokio::time::timeout(GRACE, all_gone).await {
        return gone;
    }
    group.signal(Signal::SIGKILL);
    child.wait().await?;
    Ok(reason)
}

fn of_status(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match status.code() {
        Some(code) => Ended::Exited(code),
        None => Ended::Signalled(status.signal().unwrap_or_default()),
    }
}
