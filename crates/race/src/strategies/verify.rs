//! The verifiers that come with the house: checks, and programs.

use super::verifier::{Verification, Verify};
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{
    AgentMessage, ExitReason, Identity, Program, ProgramOutput, Template, Workspace, run,
};
use bakeoff_check::{Check, Kind};
use bakeoff_core::{Attempt, Content, Message, Timing, ToolUse};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A check that needs neither a model nor a program. Others are refused.
#[async_trait::async_trait]
impl Verify for Check {
    fn trouble(&self) -> Option<String> {
        let is_plain = matches!(self.kind, Kind::Plain(_));
        (!is_plain).then(|| format!("the check `{}` needs a model or a program", self.id))
    }

    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        _cancel: &CancellationToken,
    ) -> Verification {
        match self.run(&attempt(outcome)) {
            Ok(result) if result.passed => Verification::Passes,
            Ok(result) => Verification::Fails(result.message),
            Err(cannot_say) => Verification::CannotSay(cannot_say.to_string()),
        }
    }
}

/// What a check sees of a branch.
fn attempt(outcome: &ParallelLoopOutcome) -> Attempt {
    let said = || outcome.new_messages.iter().filter_map(AgentMessage::as_llm);
    let tool_uses = said().flat_map(Message::content).filter_map(|part| match part {
        Content::ToolCall(call) => {
            Some(ToolUse { name: call.name.clone(), arguments: call.arguments.clone() })
        }
        _ => None,
    });
    let turns = said().filter(|message| matches!(message, Message::Assistant { .. })).count();
    let elapsed_ms = u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX);
    Attempt {
        output: outcome.answer(),
        finish: outcome.finish.clone(),
        tool_uses: tool_uses.collect(),
        turns: u32::try_from(turns).ok(),
        usage: Some(outcome.usage),
        cost: outcome.cost,
        // What a branch waited for is not known, so that all of its time counts as work.
        timing: Timing { latency_ms: elapsed_ms, elapsed_ms, ..Timing::default() },
        ..Attempt::default()
    }
}

/// A program that gets the answer on standard input and exits with 0 when it is right. What it
/// prints is the reason when it is not.
///
/// It cannot say when it cannot be started, takes too long or is ended by a signal, nor when it exits
/// with 126 or 127: with these, shells say that they could not start a program.
///
/// Each run has a folder of its own, which is removed afterwards.
#[derive(Debug, Clone)]
pub struct ProgramVerifier {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The folder of which it gets a copy to run in; an empty one when absent.
    pub workspace: Option<PathBuf>,
    /// Added to the environment of this process.
    pub environment: BTreeMap<String, OsString>,
    /// How long it may take.
    pub timeout: Duration,
}

impl ProgramVerifier {
    /// A program in an empty folder, with a minute.
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> ProgramVerifier {
        ProgramVerifier {
            command: command.into_iter().map(Into::into).collect(),
            workspace: None,
            environment: BTreeMap::new(),
            timeout: Duration::from_secs(60),
        }
    }

    /// A folder for one run. Copying blocks, so it has a thread of its own.
    async fn folder(&self) -> Result<Workspace, String> {
        let name = format!("bakeoff-verify-{:016x}", rand::random::<u64>());
        let folder = std::env::temp_dir().join(name);
        let source = self.workspace.clone();
        let create = move || {
            Workspace::create(
                &folder,
                Template { source: source.as_deref(), ..Template::default() },
            )
        };
        let created = tokio::task::spawn_blocking(create).await;
        let created = created.map_err(|error| error.to_string())?;
        created.map_err(|error| format!("its workspace cannot be made: {error}"))
    }

    /// How it ended, and what it printed; the error says why it could not begin.
    async fn finished(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Result<ProgramOutput, String> {
        let workspace = self.folder().await?;
        let program = Program {
            command: self.command.clone(),
            input: outcome.answer(),
            folder: workspace.start().to_owned(),
            environment: self.environment.clone(),
            // What it leaves running is found by it, and ended.
            identity: Some(Identity {
                run: format!("verify-{:016x}", rand::random::<u64>()),
                trial: None,
                part: None,
            }),
            timeout: self.timeout,
            max_output_bytes: MOST_OUTPUT,
        };
        let finished = run(&program, cancel).await.map_err(|error| error.to_string());
        // Removing blocks, too, and nobody has to wait for it.
        drop(tokio::task::spawn_blocking(move || drop(workspace)));
        finished
    }
}

/// Most bytes that are kept of what a program prints.
const MOST_OUTPUT: usize = 64 << 10;

#[async_trait::async_trait]
impl Verify for ProgramVerifier {
    fn trouble(&self) -> Option<String> {
        self.command.is_empty().then(|| "there is no program to verify with".to_owned())
    }

    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Verification {
        let ProgramOutput { stdout, stderr, exit_reason, .. } =
            match self.finished(outcome, cancel).await {
                Ok(finished) => finished,
                Err(reason) => return Verification::CannotSay(reason),
            };
        let said = if stdout.trim().is_empty() { stderr } else { stdout };
        let because = |how: String| match said.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => format!("{how}: {}", last.trim().chars().take(300).collect::<String>()),
            None => how,
        };
        let cannot_say = |how: String| Verification::CannotSay(because(how));
        match exit_reason {
            ExitReason::Exited(0) => Verification::Passes,
            ExitReason::Exited(code @ (126 | 127)) => {
                cannot_say(format!("the verifier could not start a program: exit code {code}"))
            }
            ExitReason::Exited(code) => Verification::Fails(because(format!("exit code {code}"))),
            ExitReason::Signalled(signal) => {
                cannot_say(format!("the verifier was ended by signal {signal}"))
            }
            ExitReason::TimedOut => cannot_say("the verifier took too long".to_owned()),
            ExitReason::Cancelled => cannot_say("cancelled".to_owned()),
        }
    }
}
