//! The verifiers that come with the house: checks, and programs.

use super::verifier::Verify;
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{AgentMessage, Ended, Finished, Program, Template, Workspace, run};
use bakeoff_check::Check;
use bakeoff_core::{Attempt, Content, Message, Timing, ToolUse};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A check that needs neither a model nor a program. Others cannot say, so that nothing passes.
#[async_trait::async_trait]
impl Verify for Check {
    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        _cancel: &CancellationToken,
    ) -> Result<(), String> {
        match self.run(&attempt(outcome)) {
            Ok(result) if result.passed => Ok(()),
            Ok(result) => Err(result.message),
            Err(cannot_say) => Err(cannot_say.to_string()),
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
}

/// Most bytes that are kept of what a program prints.
const MOST_OUTPUT: usize = 64 << 10;

#[async_trait::async_trait]
impl Verify for ProgramVerifier {
    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        if self.command.is_empty() {
            return Err("there is no program to verify it".to_owned());
        }
        let workspace = self.folder().await?;
        let program = Program {
            command: self.command.clone(),
            input: outcome.answer(),
            folder: workspace.start().to_owned(),
            environment: self.environment.clone(),
            identity: None,
            timeout: self.timeout,
            most_output: MOST_OUTPUT,
        };
        let finished = run(&program, cancel).await.map_err(|error| error.to_string());
        // Removing blocks, too, and nobody has to wait for it.
        drop(tokio::task::spawn_blocking(move || drop(workspace)));
        let Finished { stdout, stderr, ended, .. } = finished?;
        let how = match ended {
            Ended::Exited(0) => return Ok(()),
            Ended::Exited(code) => format!("exit code {code}"),
            Ended::Signalled(signal) => format!("ended by signal {signal}"),
            Ended::TimedOut => "the verifier took too long".to_owned(),
            Ended::Cancelled => "cancelled".to_owned(),
        };
        let said = if stdout.trim().is_empty() { stderr } else { stdout };
        Err(match said.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => format!("{how}: {}", last.trim().chars().take(300).collect::<String>()),
            None => how,
        })
    }
}
