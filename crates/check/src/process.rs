//! Checks of how a program went about its task: its exit code and the commands that it ran.

use crate::incomplete::{all_arguments, all_tools, whole_output, whole_transcript};
use crate::info::{COUNT, KindInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::words::excerpt;
use crate::{CannotSay, Error, Finding};
use bakeoff_core::{Attempt, ToolUse};
use serde_json::Value;

/// What a program must have done.
#[derive(Debug, Clone)]
pub enum Process {
    /// It ended with this code.
    ExitCode(i32),
    /// One of its commands contains the text.
    CommandContains(String),
    /// It ran at most so many commands.
    MaxCommandCount(u64),
    /// The text occurs somewhere in what it said and did, or does not.
    Trigger {
        /// The text.
        pattern: String,
        /// Whether it must occur.
        expected: bool,
    },
}

/// Names of tools that run commands, in lower case.
const RUNNERS: [&str; 16] = [
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

pub(crate) const EXIT_CODE: KindInfo = KindInfo::of_programs(
    "exit_code",
    "The program ended with this code.",
    &[optional(
        "value",
        ParameterType::Integer { least: i32::MIN as i64, most: i32::MAX as i64 },
        "The code; 0 when absent.",
    )],
    "kind = \"exit_code\"\nvalue = 0",
);

pub(crate) const COMMAND_CONTAINS: KindInfo = KindInfo::new(
    "command_contains",
    "A command that the agent ran contains the text: the `command` of a tool that runs commands, such as `bash`.",
    &[
        optional("value", ParameterType::Template, "What a command must contain."),
        optional("pattern", ParameterType::Template, "Another name of `value`."),
    ],
    "kind = \"command_contains\"\nvalue = \"cargo test\"",
);

pub(crate) const MAX_COMMAND_COUNT: KindInfo = KindInfo::new(
    "max_command_count",
    "The agent ran at most so many commands.",
    &[required("limit", COUNT, "The most.")],
    "kind = \"max_command_count\"\nlimit = 2",
);

pub(crate) const TRIGGER_EXPECTATION: KindInfo = KindInfo::new(
    "trigger_expectation",
    "The text occurs, literally, in the answer, in the tools that were used or in what the agent printed; or, with `expected = false`, it does not. What an agent prints about itself before it begins does not count.",
    &[
        required("pattern", ParameterType::Template, "The text."),
        optional("expected", ParameterType::Boolean, "Whether it must occur; true when absent."),
    ],
    "kind = \"trigger_expectation\"\npattern = \"skills/pdf\"\nexpected = true",
);

impl Process {
    pub(crate) fn build(name: &str, parameters: Parameters<'_>) -> Result<Option<Process>, Error> {
        Ok(Some(match name {
            "exit_code" => {
                let code = i32::try_from(parameters.integer("value").unwrap_or(0));
                Process::ExitCode(code.map_err(|_| crate::parameters::missing("value"))?)
            }
            "command_contains" => Process::CommandContains(
                parameters.some_text(parameters.one_of(&["value", "pattern"])?)?,
            ),
            "max_command_count" => Process::MaxCommandCount(parameters.needed_count("limit")?),
            "trigger_expectation" => Process::Trigger {
                pattern: parameters.some_text("pattern")?,
                expected: parameters.boolean("expected").unwrap_or(true),
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<Finding, CannotSay> {
        Ok(match self {
            Process::ExitCode(code) => {
                let holds = attempt.exit_code == Some(*code);
                Finding::new(
                    holds,
                    match attempt.exit_code {
                        Some(found) if holds => format!("exit code {found}"),
                        Some(found) => format!("exit code {found}, expected {code}"),
                        None => format!("no exit code, expected {code}"),
                    },
                )
            }
            Process::CommandContains(value) => {
                let found = kept_commands(attempt).find(|command| command.contains(value.as_str()));
                if found.is_none() {
                    all_tools(attempt)?;
                    all_arguments(attempt)?;
                }
                match found {
                    Some(command) => Finding::new(true, format!("{} was run", excerpt(&command))),
                    None => Finding::new(
                        false,
                        format!(
                            "none of {} commands contains {}",
                            commands(attempt).count(),
                            excerpt(value)
                        ),
                    ),
                }
            }
            Process::MaxCommandCount(limit) => {
                let count = commands(attempt).count() as u64;
                if count <= *limit {
                    all_tools(attempt)?;
                }
                Finding::new(count <= *limit, format!("{count} commands, wanted at most {limit}"))
            }
            Process::Trigger { pattern, expected } => {
                let place = trigger(attempt, pattern);
                if place.is_none() {
                    whole_output(attempt)?;
                    all_tools(attempt)?;
                    all_arguments(attempt)?;
                    whole_transcript(attempt)?;
                }
                Finding::new(
                    place.is_some() == *expected,
                    match place {
                        Some(place) => format!("{} occurs in {place}", excerpt(pattern)),
                        None => format!(
                            "{} occurs neither in the answer nor in what was done",
                            excerpt(pattern)
                        ),
                    },
                )
            }
        })
    }
}

/// How many commands an agent ran.
pub fn command_count(attempt: &Attempt) -> usize {
    commands(attempt).count()
}

/// Uses of tools that run commands.
fn commands(attempt: &Attempt) -> impl Iterator<Item = &ToolUse> {
    attempt.tool_uses.iter().filter(|used| runs_commands(used))
}

/// The commands that were run, as far as they are known.
fn kept_commands(attempt: &Attempt) -> impl Iterator<Item = String> {
    commands(attempt).filter(|used| !used.arguments.is_null()).map(command)
}

fn runs_commands(used: &ToolUse) -> bool {
    RUNNERS.contains(&used.name.to_lowercase().as_str())
}

fn command(used: &ToolUse) -> String {
    let argument = ["command", "cmd"].iter().find_map(|name| used.arguments.get(name));
    match argument.unwrap_or(&used.arguments) {
        Value::String(text) => text.clone(),
        Value::Array(words) if argument.is_some() => {
            let word = |word: &Value| word.as_str().map_or(word.to_string(), str::to_owned);
            words.iter().map(word).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Where the text occurs first.
fn trigger(attempt: &Attempt, pattern: &str) -> Option<&'static str> {
    if attempt.output.contains(pattern) {
        return Some("the answer");
    }
    let given = |used: &ToolUse| !used.arguments.is_null() && occurs(&used.arguments, pattern);
    let in_use = |used: &ToolUse| used.name.contains(pattern) || given(used);
    if attempt.tool_uses.iter().any(in_use) {
        return Some("the tools that were used");
    }
    let transcript = attempt.transcript.as_deref().unwrap_or_default();
    let work = transcript.split_inclusive('\n').skip_while(|line| is_preamble(line));
    work.collect::<String>().contains(pattern).then_some("the transcript")
}

/// Whether the text occurs in a value: in any of its texts or keys, or in its JSON.
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

/// Whether a line of a transcript tells how the agent was set up: the names of all its tools and
/// skills stand there, used or not.
fn is_preamble(line: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
    }
    if line.trim().is_empty() {
        return true;
    }
    serde_json::from_str::<Typed<'_>>(line).is_ok_and(|event| {
        ["system", "init", "session", "session_meta", "session_configured", "thread.started"]
            .contains(&&*event.kind)
    })
}
