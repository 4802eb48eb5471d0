//! A program is run, or an agent that is known by name.

use super::workspace::left_in;
use super::{trial_id, without_secrets};
use crate::trial::{Asked, Attempted, Trials, failed, milliseconds};
use bakeoff_agent::{
    CodingAgent, Ended, Finished, Identity, Left, Program, ProgramError, Said, trouble,
};
use bakeoff_core::{Attempt, ErrorKind, Event, Timing, TrialError, TrialKey};
use bakeoff_suite::{PROMPT_PLACEHOLDER, ProgramTarget};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Most bytes kept of each of a program's outputs.
const MOST_OUTPUT: usize = 1024 * 1024;

/// Characters shown of what a program last complained about.
const SHOWN: usize = 500;

/// A program that has ended, and how long it took.
struct Ran {
    finished: Finished,
    said: Option<Said>,
    latency: Duration,
}

impl Trials {
    /// Runs the program in a workspace of its own.
    pub(crate) async fn run_program(&self, target: &ProgramTarget, asked: Asked<'_>) -> Attempted {
        let workspace = match self.workspace(target.workspace.as_deref(), &asked).await {
            Ok(workspace) => workspace,
            Err(error) => return Attempt { error: Some(error), ..Attempt::default() }.into(),
        };
        let program = self.program(target, &asked, workspace.start());
        let ran =
            self.run(&program, target.agent.as_ref().map(|(agent, _)| *agent), asked.key).await;
        let (left, workspace) = left_in(workspace).await;
        let attempt = match ran {
            Ok(ran) => self.concluded(ran, left, program.timeout),
            Err(error) if error.is_exhaustion() => exhausted(&error),
            Err(error) => failed(ErrorKind::Process, error.to_string()),
        };
        Attempted { attempt, workspace: Some(workspace), ..Attempted::default() }
    }

    fn program(&self, target: &ProgramTarget, asked: &Asked<'_>, folder: &Path) -> Program {
        let has_place = target.command.iter().any(|word| has_prompt(word));
        let word = |word: &OsString| match word.to_str() {
            Some(text) if has_prompt(word) => {
                text.replace(PROMPT_PLACEHOLDER, &asked.prompt).into()
            }
            _ => word.clone(),
        };
        Program {
            command: target.command.iter().map(word).collect(),
            input: if has_place { String::new() } else { asked.prompt.clone() },
            folder: folder.to_owned(),
            environment: self.surroundings(folder).into_iter().chain(told(target)).collect(),
            identity: Some(Identity {
                run: self.folder.id.to_string(),
                trial: Some(trial_id(asked.key)),
                part: None,
            }),
            timeout: asked.timeout,
            most_output: MOST_OUTPUT,
        }
    }

    async fn run(
        &self,
        program: &Program,
        agent: Option<CodingAgent>,
        key: &TrialKey,
    ) -> Result<Ran, ProgramError> {
        let started = Instant::now();
        let running = bakeoff_agent::start(program)?;
        if let Some(group) = running.group() {
            // Nobody listens any more when the run has ended, and then it ends this, too.
            let _ = self.events.send(Event::ProgramStarted { key: key.clone(), group }).await;
        }
        let mut listener = agent.map(CodingAgent::listener);
        let listen = |piece: &[u8]| {
            if let Some(listener) = &mut listener {
                listener.hear(piece);
            }
        };
        let finished = running.finish(&self.abort, listen).await?;
        let said = listener.map(bakeoff_agent::Listener::finish);
        Ok(Ran { finished, said, latency: started.elapsed() })
    }

    fn concluded(&self, ran: Ran, left: Left, timeout: Duration) -> Attempt {
        let Ran { finished, said, latency } = ran;
        let Finished { stdout, stderr, dropped_bytes, dropped_stdout_bytes, ended } = finished;
        let exit_code = match ended {
            Ended::Exited(code) => Some(code),
            _ => None,
        };
        let error = wrong_end(ended, timeout)
            .or_else(|| said.as_ref().and_then(|said| gave_up(said, exit_code, &stderr)));
        let mut attempt = Attempt {
            stderr: self.redactor.scrub(stderr),
            dropped_bytes,
            exit_code,
            error: error
                .map(|error| TrialError { message: self.redactor.scrub(error.message), ..error }),
            timing: Timing { latency_ms: milliseconds(latency), ..Timing::default() },
            ..Attempt::default()
        };
        self.add_files(&mut attempt, left);
        let stdout = self.redactor.scrub(stdout);
        match said {
            None => {
                attempt.output = stdout;
                attempt.dropped_output_bytes = dropped_stdout_bytes;
            }
            Some(said) => {
                attempt.output = self.redactor.scrub(said.answer.unwrap_or_default());
                attempt.dropped_output_bytes = said.dropped_answer_bytes;
                attempt.transcript = Some(stdout);
                attempt.dropped_transcript_bytes = dropped_stdout_bytes;
                attempt.dropped_tool_uses = said.dropped_tool_uses;
                attempt.dropped_tool_arguments = said.dropped_arguments;
                attempt.tool_uses = without_secrets(said.tool_uses, &self.redactor);
                attempt.turns = said.turns;
                attempt.usage = said.usage;
                attempt.cost = said.cost;
            }
        }
        attempt
    }
}

/// Who fills the roles of a program, as it is told.
pub(super) fn told(target: &ProgramTarget) -> impl Iterator<Item = (String, OsString)> {
    target.variables.iter().map(|(name, label)| (name.clone(), label.into()))
}

fn has_prompt(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.contains(PROMPT_PLACEHOLDER))
}

fn exhausted(error: &ProgramError) -> Attempt {
    failed(ErrorKind::Process, format!("{error} [EVAL_PARALLEL_EXHAUSTION]"))
}

/// That a program did not end by itself.
fn wrong_end(ended: Ended, timeout: Duration) -> Option<TrialError> {
    let (kind, message) = match ended {
        Ended::Exited(_) => return None,
        Ended::Signalled(signal) => (ErrorKind::Process, format!("ended by signal {signal}")),
        Ended::TimedOut => {
            let seconds = timeout.as_secs_f64();
            (ErrorKind::Timeout, format!("still running after {seconds} s [EVAL_CASE_TIMEOUT]"))
        }
        Ended::Cancelled => (ErrorKind::Cancelled, "cancelled".to_owned()),
    };
    Some(TrialError { kind, message })
}

/// That an agent gave up for a reason that says nothing about its work: its provider refused, or it
/// never came to an answer.
fn gave_up(said: &Said, exit_code: Option<i32>, stderr: &str) -> Option<TrialError> {
    let error = |kind, message| Some(TrialError { kind, message });
    if let Some(problem) = &said.problem
        && let Some(kind) = trouble(problem)
    {
        return error(kind, format!("the agent gave up: {problem}"));
    }
    if exit_code == Some(0) || said.answer.is_some() || said.met_own_limit() {
        return None;
    }
    let end = last_characters(stderr.trim(), SHOWN);
    let words = said.problem.as_deref().unwrap_or(end);
    let code = exit_code.unwrap_or_default();
    let colon = if words.is_empty() { "" } else { ": " };
    error(
        trouble(words).unwrap_or(ErrorKind::Process),
        format!("the agent ended with code {code} and without an answer{colon}{words}"),
    )
}

fn last_characters(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count.saturating_sub(1)).map_or(0, |(at, _)| at);
    &text[start..]
}
