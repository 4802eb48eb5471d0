//! Built-in verifiers: checks and programs.

use super::verifier::{Verification, Verify};
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{
    AgentMessage, ExitReason, Identity, Program, ProgramOutput, Workspace, WorkspaceTemplate, run,
};
use bakeoff_check::{Check, CheckKind};
use bakeoff_core::{Attempt, Content, Message, Timing, ToolUse};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Verifies with a check that needs neither a model nor a program. Other kinds are rejected.
#[async_trait::async_trait]
impl Verify for Check {
    fn problem(&self) -> Option<String> {
        let is_local = matches!(self.kind, CheckKind::Local(_));
        (!is_local).then(|| format!("check `{}` needs a model or a program", self.id))
    }

    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        _cancel: &CancellationToken,
    ) -> Verification {
        match self.run(&attempt(outcome)) {
            Ok(result) if result.passed => Verification::Passed,
            Ok(result) => Verification::Failed(result.message),
            Err(inconclusive) => Verification::Inconclusive(inconclusive.to_string()),
        }
    }
}

/// Converts the outcome of a branch for checks.
fn attempt(outcome: &ParallelLoopOutcome) -> Attempt {
    let messages = || outcome.new_messages.iter().filter_map(AgentMessage::as_llm);
    let tool_uses = messages().flat_map(Message::content).filter_map(|part| match part {
        Content::ToolCall(call) => Some(ToolUse::new(call.name.as_str(), call.arguments.clone())),
        _ => None,
    });
    let tool_uses = tool_uses
        .enumerate()
        .map(|(index, call)| ToolUse { refused: outcome.refused_calls.contains(&index), ..call });
    let turns = messages().filter(|message| matches!(message, Message::Assistant { .. })).count();
    let elapsed_ms = u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX);
    Attempt {
        output: outcome.answer(),
        finish: outcome.finish.clone(),
        tool_uses: tool_uses.collect(),
        turns: u32::try_from(turns).ok(),
        usage: Some(outcome.usage),
        cost: outcome.cost,
        // Waiting times of a branch are unknown, so all of its time counts as latency.
        timing: Timing { latency_ms: elapsed_ms, elapsed_ms, ..Timing::default() },
        ..Attempt::default()
    }
}

/// Verifies with a program that reads the answer from standard input and exits with 0 to accept it. Its
/// output is the reason of a rejection.
///
/// The verification is inconclusive if the program cannot be started, times out, is killed by a signal, or
/// exits with 126 or 127, which shells use when they cannot start a program.
///
/// Each run has its own folder, which is removed afterwards.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProgramVerifier {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Folder whose copy is the working directory; an empty one when absent.
    pub workspace: Option<PathBuf>,
    /// Variables added to the environment of this process.
    pub environment: BTreeMap<String, OsString>,
    /// Time limit.
    pub timeout: Duration,
}

impl ProgramVerifier {
    /// A program in an empty folder with a time limit of one minute.
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> ProgramVerifier {
        ProgramVerifier {
            command: command.into_iter().map(Into::into).collect(),
            workspace: None,
            environment: BTreeMap::new(),
            timeout: Duration::from_secs(60),
        }
    }

    /// Sets the folder whose copy is the working directory.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<PathBuf>) -> ProgramVerifier {
        self.workspace = Some(workspace.into());
        self
    }

    /// Sets variables added to the environment of this process.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<String, OsString>) -> ProgramVerifier {
        self.environment = environment;
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> ProgramVerifier {
        self.timeout = timeout;
        self
    }

    /// Creates the folder for one run. Copying blocks, so it runs on a blocking thread.
    async fn create_folder(&self) -> Result<Workspace, String> {
        let name = format!("bakeoff-verify-{:016x}", rand::random::<u64>());
        let folder = std::env::temp_dir().join(name);
        let source = self.workspace.clone();
        let create = move || {
            let mut template = WorkspaceTemplate::default();
            template.source = source.as_deref();
            Workspace::create(&folder, template)
        };
        let created = tokio::task::spawn_blocking(create).await;
        let created = created.map_err(|error| error.to_string())?;
        created.map_err(|error| format!("cannot create the workspace: {error}"))
    }

    /// Runs the program; the error states why it could not start.
    async fn run_program(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Result<ProgramOutput, String> {
        let workspace = self.create_folder().await?;
        // Identifies processes that the program leaves running, so that they are terminated.
        let identity = Identity {
            run: format!("verify-{:016x}", rand::random::<u64>()),
            trial: None,
            part: None,
        };
        let (command, folder) = (self.command.clone(), workspace.start());
        let program = Program::new(command, folder, self.timeout, MAX_OUTPUT_BYTES)
            .input(outcome.answer())
            .environment(self.environment.clone())
            .identity(identity);
        let finished = run(&program, cancel).await.map_err(|error| error.to_string());
        // Removing blocks too; it runs in the background.
        drop(tokio::task::spawn_blocking(move || drop(workspace)));
        finished
    }
}

/// Maximum bytes of a program's output that are kept.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Characters of a program's last output line that a reason shows.
const MAX_REASON_CHARACTERS: usize = 300;

#[async_trait::async_trait]
impl Verify for ProgramVerifier {
    fn problem(&self) -> Option<String> {
        self.command.is_empty().then(|| "no verifier command given".to_owned())
    }

    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Verification {
        let ProgramOutput { stdout, stderr, exit_reason, .. } =
            match self.run_program(outcome, cancel).await {
                Ok(finished) => finished,
                Err(reason) => return Verification::Inconclusive(reason),
            };
        let output = if stdout.trim().is_empty() { stderr } else { stdout };
        let last_line = output.lines().rev().find(|line| !line.trim().is_empty());
        let with_output = |reason: String| match last_line {
            Some(last) => {
                let last: String = last.trim().chars().take(MAX_REASON_CHARACTERS).collect();
                format!("{reason}: {last}")
            }
            None => reason,
        };
        let inconclusive = |reason: String| Verification::Inconclusive(with_output(reason));
        match exit_reason {
            ExitReason::Exited(0) => Verification::Passed,
            ExitReason::Exited(code @ (126 | 127)) => {
                inconclusive(format!("the verifier could not start a program: exit code {code}"))
            }
            ExitReason::Exited(code) => {
                Verification::Failed(with_output(format!("exit code {code}")))
            }
            ExitReason::Signalled(signal) => {
                inconclusive(format!("the verifier was killed by signal {signal}"))
            }
            ExitReason::TimedOut => inconclusive("the verifier timed out".to_owned()),
            ExitReason::Cancelled => inconclusive("cancelled".to_owned()),
        }
    }
}
