//! Programs that stay: one line in, one line out, as often as asked.
//!
//! What the lines mean is for others. A worker that has been given up on (it took too long, died,
//! said too much, or nobody waits for it any more) is killed with its whole process group, and the
//! next question starts a new one: an answer can never be taken for that of another question.

use crate::ProgramError;
use crate::group::Group;
use crate::output::Tail;
use crate::process::LINGER;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Added to the environment of this process.
    pub environment: BTreeMap<String, OsString>,
    /// Most bytes of an answer.
    pub most_answer: usize,
}

/// So many workers of one program. They are started when they are needed and killed when this is
/// dropped.
#[derive(Debug)]
pub struct Workers {
    program: WorkerProgram,
    /// One permit per worker that may be at work.
    turns: Semaphore,
    /// Those that wait for a question. Never locked across a wait.
    idle: Mutex<Vec<Worker>>,
}

/// A worker did not answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It cannot be started.
    #[error(transparent)]
    Start(#[from] ProgramError),
    /// It took too long and was killed.
    #[error("no answer within {} s{}", .after.as_secs_f64(), said(.stderr))]
    TimedOut {
        /// How long it had.
        after: Duration,
        /// What it last said on its standard error.
        stderr: String,
    },
    /// It ended instead of answering.
    #[error("ended without an answer ({how}){}", said(.stderr))]
    Died {
        /// Its exit code or signal, in words.
        how: String,
        /// What it last said on its standard error.
        stderr: String,
    },
    /// Its answer was longer than allowed, or not text; it was killed.
    #[error("{0}")]
    BadAnswer(String),
    /// We were told to stop.
    #[error("cancelled")]
    Cancelled,
}

/// What was said last, after a colon, if anything was.
pub(crate) fn said(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

impl Workers {
    /// Workers of a program, none of them started yet.
    pub fn new(program: WorkerProgram, count: NonZeroUsize) -> Workers {
        let turns = Semaphore::new(count.get().min(Semaphore::MAX_PERMITS));
        Workers { program, turns, idle: Mutex::default() }
    }

    /// Hands a line to a worker that is free and waits for its answer, a line too; neither has its
    /// newline. Waiting for a worker to be free does not count for the timeout, starting it does.
    ///
    /// # Errors
    ///
    /// There was no answer. The question may have been read all the same, so nobody asks it again.
    pub async fn ask(
        &self,
        question: &str,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, WorkerError> {
        self.ask_for(question, timeout, cancel, |answer| Ok(answer.to_owned())).await
    }

    /// [`Workers::ask`], for an answer that can be read; the error of `read` is for people. One that
    /// cannot, such as an answer to another question, ends the worker.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn ask_for<T>(
        &self,
        question: &str,
        timeout: Duration,
        cancel: &CancellationToken,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, WorkerError> {
        let work = async {
            // The semaphore is never closed.
            let _turn = self.turns.acquire().await.map_err(|_| WorkerError::Cancelled)?;
            let mut worker = match self.idle_worker() {
                Some(worker) => worker,
                None => Worker::start(&self.program)?,
            };
            let exchange = worker.exchange(question, self.program.most_answer);
            let exchanged = tokio::time::timeout(timeout, exchange).await;
            let exchanged = exchanged
                .map(|answer| answer.and_then(|answer| read(&answer).map_err(Broken::Answer)));
            match exchanged {
                Ok(Ok(answer)) => {
                    // One that says more than it was asked would answer the next question wrongly.
                    if worker.is_silent() {
                        self.idle().push(worker);
                    }
                    Ok(answer)
                }
                Ok(Err(Broken::Gone)) => {
                    let how = worker.ended().await;
                    Err(WorkerError::Died { how, stderr: worker.tail.text() })
                }
                Ok(Err(Broken::Answer(reason))) => {
                    worker.end().await;
                    Err(WorkerError::BadAnswer(reason))
                }
                Err(_) => {
                    worker.end().await;
                    Err(WorkerError::TimedOut { after: timeout, stderr: worker.tail.text() })
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(WorkerError::Cancelled),
            answer = work => answer,
        }
    }

    /// One that waits and lives; those that have died meanwhile are dropped.
    fn idle_worker(&self) -> Option<Worker> {
        let mut idle = self.idle();
        while let Some(mut worker) = idle.pop() {
            if matches!(worker.child.try_wait(), Ok(None)) {
                return Some(worker);
            }
        }
        None
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an exchange came to nothing.
enum Broken {
    /// Its pipes are closed.
    Gone,
    /// What it said cannot be used.
    Answer(String),
}

#[derive(Debug)]
struct Worker {
    // Killed first, when all of it is dropped.
    group: Group,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Option<ChildStderr>,
    tail: Tail,
}

impl Worker {
    fn start(program: &WorkerProgram) -> Result<Worker, ProgramError> {
        let name = program.command.first().map(|name| name.to_string_lossy().into_owned());
        let failed =
            |source| ProgramError::Start { program: name.clone().unwrap_or_default(), source };
        let invalid = |what| failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
        let (word, arguments) =
            program.command.split_first().ok_or_else(|| invalid("empty command"))?;
        let mut child = Command::new(word)
            .args(arguments)
            .current_dir(&program.folder)
            .envs(&program.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let group = Group::of(&child);
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), stderr) => Ok(Worker {
                group,
                child,
                stdin,
                stdout: BufReader::new(stdout),
                stderr,
                tail: Tail::default(),
            }),
            _ => Err(invalid("no pipes")),
        }
    }

    async fn exchange(&mut self, question: &str, most: usize) -> Result<String, Broken> {
        let Worker { stdin, stdout, stderr, tail, .. } = self;
        let write = async {
            stdin.write_all(question.as_bytes()).await.map_err(|_| Broken::Gone)?;
            stdin.write_all(b"\n").await.map_err(|_| Broken::Gone)?;
            stdin.flush().await.map_err(|_| Broken::Gone)
        };
        let read = read_line(stdout, most);
        // A worker must not wait because nobody reads its complaints.
        let listen = async {
            tail.read_from(stderr).await;
            std::future::pending::<()>().await;
        };
        let exchange = async { tokio::try_join!(write, read).map(|((), line)| line) };
        tokio::select! {
            answer = exchange => answer,
            () = listen => Err(Broken::Gone),
        }
    }

    /// Whether it has said nothing beyond its answer.
    fn is_silent(&self) -> bool {
        self.stdout.buffer().is_empty()
    }

    /// Says how one ended that has closed its pipes; what it started is killed.
    async fn ended(&mut self) -> String {
        // On its way out it has a code of its own to tell.
        let status = match tokio::time::timeout(LINGER, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.group.signal(Signal::SIGKILL);
                self.child.wait().await
            }
        };
        self.end().await;
        status.map_or_else(|error| error.to_string(), in_words)
    }

    /// Kills it and everything it started.
    async fn end(&mut self) {
        self.group.signal(Signal::SIGKILL);
        let _ = self.child.wait().await;
        let Worker { stderr, tail, .. } = self;
        // All who could write are dead, but what they wrote is still in the pipe.
        let _ = tokio::time::timeout(LINGER, tail.read_from(stderr)).await;
    }
}

async fn read_line(stdout: &mut BufReader<ChildStdout>, most: usize) -> Result<String, Broken> {
    let mut line = Vec::new();
    loop {
        let chunk = stdout.fill_buf().await.map_err(|_| Broken::Gone)?;
        if chunk.is_empty() {
            return Err(Broken::Gone);
        }
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let end = newline.unwrap_or(chunk.len());
        line.extend_from_slice(&chunk[..end]);
        let consumed = newline.map_or(end, |at| at + 1);
        stdout.consume(consumed);
        if line.len() > most {
            return Err(Broken::Answer(format!("the answer is longer than {most} bytes")));
        }
        if newline.is_some() {
            return String::from_utf8(line)
                .map_err(|_| Broken::Answer("the answer is not UTF-8".to_owned()));
        }
    }
}

/// How a program ended, for people.
pub(crate) fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}
