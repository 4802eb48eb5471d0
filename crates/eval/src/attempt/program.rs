//! Program targets: a program or coding agent that is started for each trial.

use super::attachments::copy_attachments;
use super::throttling::classify_throttling;
use super::workspace::{add_files, create_workspace, read_files, workspace_environment};
use super::{AttemptOutput, TrialInput, redact_tool_exchanges, redact_tool_uses, trial_id};
use crate::context::TrialContext;
use crate::trace::Trace;
use crate::trial::{failed, milliseconds};
use bakeoff_agent::{
    AgentOutput, AgentOutputParser, CodingAgent, ExitReason, Identity, Program, ProgramError,
    ProgramOutput, WorkspaceFiles, classify_failure,
};
use bakeoff_core::{Attempt, ErrorKind, Event, Timing, TrialError, TrialKey};
use bakeoff_suite::{PROMPT_PLACEHOLDER, ProgramTarget};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes kept of each output stream of a program.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// Characters of standard error that error messages quote.
const MAX_QUOTED_CHARS: usize = 500;

/// A program that has exited, and its running time.
struct ProgramRun {
    output: ProgramOutput,
    /// Output of a coding agent.
    agent_output: Option<AgentOutput>,
    latency: Duration,
}

/// Runs a program in a workspace.
pub(super) async fn run_program(
    context: &TrialContext,
    target: &ProgramTarget,
    input: TrialInput<'_>,
) -> AttemptOutput {
    let workspace = create_workspace(context, target.workspace.as_deref(), &input).await;
    let workspace = match workspace {
        Ok(workspace) => workspace,
        Err(error) => return Attempt { error: Some(error), ..Attempt::default() }.into(),
    };
    let (attachments, start) = (input.case.attachments.clone(), workspace.start().to_owned());
    let copied = tokio::task::spawn_blocking(move || copy_attachments(&attachments, &start)).await;
    match copied {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            return failed(ErrorKind::Process, format!("cannot copy the attachments: {error}"))
                .into();
        }
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
    let program = program(context, target, &input, workspace.start());
    let agent = target.agent.as_ref().map(|(agent, _)| *agent);
    let run = execute(context, &program, agent, input.key).await;
    let (files, workspace) = read_files(workspace).await;
    let mut trace = Trace::default();
    let attempt = match run {
        Ok(mut run) => {
            let exchanges = run.agent_output.as_mut().map(|output| &mut output.tool_exchanges);
            trace.tools = redact_tool_exchanges(
                exchanges.map(std::mem::take).unwrap_or_default(),
                &context.redactor,
            );
            program_attempt(context, run, files, program.timeout)
        }
        Err(error) if error.is_exhaustion() => {
            failed(ErrorKind::Process, format!("{error} [EVAL_PARALLEL_EXHAUSTION]"))
        }
        Err(error) => failed(ErrorKind::Process, error.to_string()),
    };
    AttemptOutput { attempt, trace, workspace: Some(workspace) }
}

fn program(
    context: &TrialContext,
    target: &ProgramTarget,
    input: &TrialInput<'_>,
    folder: &Path,
) -> Program {
    let has_placeholder = target.command.iter().any(|argument| contains_placeholder(argument));
    let argument = |argument: &OsString| match argument.to_str() {
        Some(text) if contains_placeholder(argument) => {
            text.replace(PROMPT_PLACEHOLDER, &input.prompt).into()
        }
        _ => argument.clone(),
    };
    let environment = workspace_environment(context, folder).into_iter();
    let command = target.command.iter().map(argument).collect();
    let agent = target.agent.as_ref().map(|(agent, _)| *agent);
    let stdin = match agent {
        _ if has_placeholder => String::new(),
        Some(agent) => agent.input(&input.prompt),
        None => input.prompt.clone(),
    };
    let stays_open = agent.is_some_and(CodingAgent::keeps_input_open);
    Program::new(command, folder, input.timeout, MAX_OUTPUT_BYTES)
        .input(stdin)
        .close_input(stays_open.then(CancellationToken::new))
        .environment(environment.chain(role_variables(target)).collect())
        .identity(Identity {
            run: context.folder.id.to_string(),
            trial: Some(trial_id(input.key)),
            part: None,
        })
}

fn contains_placeholder(argument: &OsStr) -> bool {
    argument.to_str().is_some_and(|argument| argument.contains(PROMPT_PLACEHOLDER))
}

/// Returns the environment variables with the models of a program's roles.
pub(super) fn role_variables(target: &ProgramTarget) -> impl Iterator<Item = (String, OsString)> {
    target.variables.iter().map(|(name, label)| (name.clone(), label.into()))
}

async fn execute(
    context: &TrialContext,
    program: &Program,
    agent: Option<CodingAgent>,
    key: &TrialKey,
) -> Result<ProgramRun, ProgramError> {
    let started = Instant::now();
    let running = bakeoff_agent::start(program)?;
    if let Some(group) = running.group() {
        // Sending fails only after the run has ended, and ending the run ends the program.
        let _ = context.events.send(Event::ProgramStarted { key: key.clone(), group }).await;
    }
    let mut parser = agent.map(CodingAgent::parser);
    let mut parse = |chunk: &[u8]| {
        if let Some(parser) = &mut parser {
            parser.push(chunk);
            if parser.is_settled() {
                program.close_input.iter().for_each(CancellationToken::cancel);
            }
        }
    };
    let output = running.finish(&context.abort, &mut parse).await?;
    let agent_output = parser.map(AgentOutputParser::finish);
    Ok(ProgramRun { output, agent_output, latency: started.elapsed() })
}

/// Converts a program run to an attempt.
fn program_attempt(
    context: &TrialContext,
    run: ProgramRun,
    files: WorkspaceFiles,
    timeout: Duration,
) -> Attempt {
    let ProgramRun { output, agent_output, latency } = run;
    let ProgramOutput { stdout, stderr, dropped_bytes, dropped_stdout_bytes, exit_reason } = output;
    let exit_code = match exit_reason {
        ExitReason::Exited(code) => Some(code),
        _ => None,
    };
    let error = exit_error(exit_reason, timeout)
        .or_else(|| agent_output.as_ref().and_then(provider_error))
        .or_else(|| code_error(agent_output.as_ref(), exit_code?, &stderr));
    let scrub = |text: String| context.redactor.scrub(text);
    let mut attempt = Attempt {
        stderr: scrub(stderr),
        dropped_bytes,
        exit_code,
        error: error.map(|error| TrialError { message: scrub(error.message), ..error }),
        timing: Timing { latency_ms: milliseconds(latency), ..Timing::default() },
        ..Attempt::default()
    };
    add_files(context, &mut attempt, files);
    let stdout = scrub(stdout);
    match agent_output {
        None => {
            attempt.output = stdout;
            attempt.dropped_output_bytes = dropped_stdout_bytes;
        }
        Some(output) => {
            attempt.output = scrub(output.answer.unwrap_or_default());
            attempt.dropped_output_bytes = output.dropped_answer_bytes;
            attempt.transcript = Some(stdout);
            attempt.dropped_transcript_bytes = dropped_stdout_bytes;
            attempt.dropped_tool_uses = output.dropped_tool_uses;
            attempt.dropped_tool_arguments = output.dropped_arguments;
            attempt.tool_uses = redact_tool_uses(output.tool_uses, &context.redactor);
            attempt.turns = output.turns;
            attempt.usage = output.usage;
            attempt.cost = output.cost;
        }
    }
    attempt
}

/// Returns an error unless the program exited by itself.
fn exit_error(ended: ExitReason, timeout: Duration) -> Option<TrialError> {
    let (kind, message) = match ended {
        ExitReason::Exited(_) => return None,
        ExitReason::Signalled(signal) => (ErrorKind::Process, format!("ended by signal {signal}")),
        ExitReason::TimedOut => {
            let seconds = timeout.as_secs_f64();
            (ErrorKind::Timeout, format!("still running after {seconds} s [EVAL_CASE_TIMEOUT]"))
        }
        ExitReason::Cancelled => (ErrorKind::Cancelled, "cancelled".to_owned()),
    };
    Some(TrialError { kind, message })
}

/// Returns an error when a coding agent stopped because its provider rejected requests.
fn provider_error(output: &AgentOutput) -> Option<TrialError> {
    let problem = output.problem.as_deref()?;
    let kind = classify_failure(problem)?;
    Some(TrialError { kind, message: format!("the agent stopped: {problem}") })
}

/// Returns the error of an exit code other than 0: a program that did not do its work says nothing about its
/// answers. A check of the exit code takes its place (see `check_runner`). An agent that stopped at a limit
/// of its own settings has done its work.
fn code_error(agent: Option<&AgentOutput>, exit_code: i32, stderr: &str) -> Option<TrialError> {
    if exit_code == 0 || agent.is_some_and(AgentOutput::hit_own_limit) {
        return None;
    }
    let problem = agent.and_then(|output| output.problem.as_deref());
    let reason = problem.unwrap_or_else(|| last_characters(reason(stderr), MAX_QUOTED_CHARS));
    let has_no_answer = agent.is_some_and(|output| output.answer.is_none());
    let agent_failure = has_no_answer.then(|| classify_failure(reason)).flatten();
    let kind = classify_throttling(stderr).or(agent_failure).unwrap_or(ErrorKind::Process);
    let missing = if has_no_answer { " and without an answer" } else { "" };
    let colon = if reason.is_empty() { "" } else { ": " };
    let subject = if agent.is_some() { "the agent " } else { "" };
    let message = format!("{subject}exited with code {exit_code}{missing}{colon}{reason}");
    Some(TrialError { kind, message })
}

/// Returns the line of an error output that most likely states the reason: the last one that does not belong to a
/// stack trace. Python ends with the reason, Node.js with the trace and its version.
fn reason(stderr: &str) -> &str {
    let is_trace = |line: &&str| {
        (line.starts_with(' ') && line.trim_start().starts_with("at "))
            || line.starts_with("Node.js v")
    };
    let mut lines = stderr.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.clone().next().unwrap_or_default();
    lines.find(|line| !is_trace(line)).unwrap_or(last).trim()
}

fn last_characters(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count.saturating_sub(1)).map_or(0, |(at, _)| at);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_the_last_line_outside_of_a_stack_trace() {
        let python = "log\nTraceback (most recent call last):\n  File \"a.py\", line 4, in f\n    g()\nKeyError: 'x'\n";
        assert_eq!(reason(python), "KeyError: 'x'");
        let node = "a.js:1\nthrow new Error('boom')\n\nError: boom\n    at f (a.js:1:7)\n    at g (a.js:2:1)\n\nNode.js v20.1.0\n";
        assert_eq!(reason(node), "Error: boom");
        assert_eq!((reason("  at last\n"), reason(" \n")), ("at last", ""));
    }
}
