//! Checks of a program's exit code, its commands and its transcript.

use crate::completeness::{
    require_all_arguments, require_all_tools, require_whole_output, require_whole_transcript,
};
use crate::excerpt::excerpt;
use crate::info::{COUNT, KindInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::{CheckFinding, Error, Inconclusive};
use bakeoff_core::{Attempt, ToolUse};
use serde_json::Value;

/// A condition on what a program did.
#[derive(Debug, Clone)]
pub enum ProcessCheck {
    /// The program exited with this code.
    ExitCode(i32),
    /// One of the commands contains the text.
    CommandContains(String),
    /// At most this many commands were run.
    MaxCommandCount(u64),
    /// The text occurs in the answer, the tool calls or the transcript, or does not.
    Trigger {
        /// The text.
        pattern: String,
        /// Whether it must occur.
        expected: bool,
    },
}

/// Names of tools that run commands, in lower case.
const COMMAND_TOOLS: [&str; 16] = [
    "bash",
    "command",
    "command_execution",
    "exec",
    "exec_command",
    "execute_command",
    "local_shell",
    "local_shell_call",
    "powershell",
    "run",
    "run_command",
    "run_shell_command",
    "run_terminal_cmd",
    "sh",
    "shell",
    "terminal",
];

pub(crate) const EXIT_CODE: KindInfo = KindInfo::for_program(
    "exit_code",
    "The program exited with this code.",
    &[optional(
        "value",
        ParameterType::Integer { min: i32::MIN as i64, max: i32::MAX as i64 },
        "The code [default: 0].",
    )],
    "kind = \"exit_code\"\nvalue = 0",
);

pub(crate) const COMMAND_CONTAINS: KindInfo = KindInfo::new(
    "command_contains",
    "A command that the agent ran contains the text: the `command` of a tool that runs commands, such as `bash`.",
    &[
        optional("value", ParameterType::Template, "Text that a command must contain."),
        optional("pattern", ParameterType::Template, "Alias of `value`."),
    ],
    "kind = \"command_contains\"\nvalue = \"cargo test\"",
);

pub(crate) const MAX_COMMAND_COUNT: KindInfo = KindInfo::new(
    "max_command_count",
    "The agent ran at most `limit` commands.",
    &[required("limit", COUNT, "Maximum number of commands.")],
    "kind = \"max_command_count\"\nlimit = 2",
);

pub(crate) const TRIGGER_EXPECTATION: KindInfo = KindInfo::new(
    "trigger_expectation",
    "The text occurs literally in the answer, the tool calls or the agent's output; with `expected = false`, it does not occur. The lines in which an agent describes its own setup before it starts do not count.",
    &[
        required("pattern", ParameterType::Template, "The text."),
        optional("expected", ParameterType::Boolean, "Whether it must occur [default: true]."),
    ],
    "kind = \"trigger_expectation\"\npattern = \"skills/pdf\"\nexpected = true",
);

impl ProcessCheck {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<ProcessCheck>, Error> {
        Ok(Some(match name {
            "exit_code" => {
                let code = i32::try_from(parameters.integer("value").unwrap_or(0));
                ProcessCheck::ExitCode(code.map_err(|_| crate::parameters::missing("value"))?)
            }
            "command_contains" => ProcessCheck::CommandContains(
                parameters.non_empty_text(parameters.one_of(&["value", "pattern"])?)?,
            ),
            "max_command_count" => {
                ProcessCheck::MaxCommandCount(parameters.required_count("limit")?)
            }
            "trigger_expectation" => ProcessCheck::Trigger {
                pattern: parameters.non_empty_text("pattern")?,
                expected: parameters.boolean("expected").unwrap_or(true),
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<CheckFinding, Inconclusive> {
        Ok(match self {
            ProcessCheck::ExitCode(code) => {
                let holds = attempt.exit_code == Some(*code);
                CheckFinding::new(
                    holds,
                    match attempt.exit_code {
                        Some(found) if holds => format!("exit code {found}"),
                        Some(found) => format!("exit code {found}, expected {code}"),
                        None => format!("no exit code, expected {code}"),
                    },
                )
            }
            ProcessCheck::CommandContains(value) => {
                let found = kept_commands(attempt).find(|command| command.contains(value.as_str()));
                if found.is_none() {
                    require_all_tools(attempt)?;
                    require_all_arguments(attempt)?;
                }
                match found {
                    Some(command) => {
                        CheckFinding::new(true, format!("{} was run", excerpt(&command)))
                    }
                    None => CheckFinding::new(
                        false,
                        format!(
                            "none of {} commands contains {}",
                            commands(attempt).count(),
                            excerpt(value)
                        ),
                    ),
                }
            }
            ProcessCheck::MaxCommandCount(limit) => {
                let count = commands(attempt).count() as u64;
                if count <= *limit {
                    require_all_tools(attempt)?;
                }
                CheckFinding::new(
                    count <= *limit,
                    format!("{count} commands, expected at most {limit}"),
                )
            }
            ProcessCheck::Trigger { pattern, expected } => {
                let location = find_trigger(attempt, pattern);
                if location.is_none() {
                    require_whole_output(attempt)?;
                    require_all_tools(attempt)?;
                    require_all_arguments(attempt)?;
                    require_whole_transcript(attempt)?;
                }
                CheckFinding::new(
                    location.is_some() == *expected,
                    match location {
                        Some(location) => format!("{} occurs in {location}", excerpt(pattern)),
                        None => format!(
                            "{} occurs neither in the answer nor in the tool calls or the transcript",
                            excerpt(pattern)
                        ),
                    },
                )
            }
        })
    }
}

/// Returns how many commands an agent ran.
pub fn command_count(attempt: &Attempt) -> usize {
    commands(attempt).count()
}

/// Returns the calls of tools that run commands.
fn commands(attempt: &Attempt) -> impl Iterator<Item = &ToolUse> {
    attempt.tool_uses.iter().filter(|call| !call.refused && runs_commands(call))
}

/// Returns the commands whose arguments were kept.
fn kept_commands(attempt: &Attempt) -> impl Iterator<Item = String> {
    commands(attempt).filter(|call| !call.arguments.is_null()).map(command)
}

fn runs_commands(call: &ToolUse) -> bool {
    COMMAND_TOOLS.contains(&call.name.to_lowercase().as_str())
}

fn command(call: &ToolUse) -> String {
    let argument = ["command", "cmd"].iter().find_map(|name| call.arguments.get(name));
    match argument.unwrap_or(&call.arguments) {
        Value::String(text) => text.clone(),
        Value::Array(words) if argument.is_some() => {
            let word = |word: &Value| word.as_str().map_or(word.to_string(), str::to_owned);
            words.iter().map(word).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Returns where the text occurs first.
fn find_trigger(attempt: &Attempt, pattern: &str) -> Option<&'static str> {
    if attempt.output.contains(pattern) {
        return Some("the answer");
    }
    let in_arguments =
        |call: &ToolUse| !call.arguments.is_null() && occurs(&call.arguments, pattern);
    let in_call = |call: &ToolUse| call.name.contains(pattern) || in_arguments(call);
    if attempt.tool_uses.iter().any(in_call) {
        return Some("the tool calls");
    }
    let transcript = attempt.transcript.as_deref().unwrap_or_default();
    let work = transcript.split_inclusive('\n').skip_while(|line| is_preamble(line));
    work.collect::<String>().contains(pattern).then_some("the transcript")
}

/// Returns whether the text occurs in a value: in one of its strings or keys, or in its JSON.
fn occurs(value: &Value, pattern: &str) -> bool {
    let within = match value {
        Value::String(text) => text.contains(pattern),
        Value::Array(items) => items.iter().any(|item| occurs(item, pattern)),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| key.contains(pattern) || occurs(value, pattern))
        }
        _ => false,
    };
    within || value.to_string().contains(pattern)
}

/// Returns whether a line of a transcript describes the agent's setup. Such a line lists all tools and
/// skills, used or not.
fn is_preamble(line: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct TranscriptLine<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
    }
    if line.trim().is_empty() {
        return true;
    }
    serde_json::from_str::<TranscriptLine<'_>>(line).is_ok_and(|event| {
        ["system", "init", "session", "session_meta", "session_configured", "thread.started"]
            .contains(&&*event.kind)
    })
}
