//! `run_command`.

use super::{Workbench, read_arguments};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use crate::identity::Identity;
use crate::process::{self, Ended, Finished, Program};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Most bytes kept of each of a command's outputs.
const MOST_OUTPUT: usize = 32 * 1024;

/// How long it may take beyond its time until everything that a command started is gone.
const ENDING: Duration = Duration::from_secs(15);

/// Runs commands in the workspace, with all that their user may do.
#[derive(Debug)]
pub struct RunCommand {
    definition: bakeoff_core::Tool,
    bench: Workbench,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
}

impl RunCommand {
    pub(super) const NAME: &str = "run_command";

    /// The tool for a folder.
    pub fn new(bench: &Workbench) -> RunCommand {
        let definition = bakeoff_core::Tool {
            name: RunCommand::NAME.to_owned(),
            description: format!(
                "Runs a command with `sh -c` in the workspace and shows its exit code and what it \
                 printed, at most {} KiB of each output. Its standard input is empty. It may take \
                 {} s, and what it leaves running in the background is ended with it.",
                MOST_OUTPUT / 1024,
                bench.command_timeout.as_secs_f64(),
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "Such as `ls -l | wc -l`." },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        };
        RunCommand { definition, bench: bench.clone() }
    }
}

#[async_trait::async_trait]
impl Tool for RunCommand {
    fn definition(&self) -> &bakeoff_core::Tool {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { command } = read_arguments(arguments)?;
        let program = Program {
            command: vec!["sh".into(), "-c".into(), command.into()],
            input: String::new(),
            folder: self.bench.folder.clone(),
            environment: self.bench.environment.clone(),
            // Commands of one turn run at once, and none of them ends the others.
            identity: self.bench.identity.as_ref().map(Identity::of_next_part),
            timeout: self.bench.command_timeout,
            most_output: MOST_OUTPUT,
        };
        let broken = |error: process::ProgramError| match error.is_exhaustion() {
            // It says nothing about the model that there was no room for its command.
            true => ToolError::Machine(format!("{error} [EVAL_PARALLEL_EXHAUSTION]")),
            false => ToolError::Failed(error.to_string()),
        };
        let running = process::start(&program).map_err(broken)?;
        self.bench.tell(running.group()).await;
        let finished = running.finish(&context.cancel, |_| {}).await.map_err(broken)?;
        let seconds = program.timeout.as_secs_f64();
        match finished.ended {
            Ended::Exited(code) => Ok(show(&format!("exit code {code}"), &finished).into()),
            Ended::Signalled(signal) => {
                Ok(show(&format!("ended by signal {signal}"), &finished).into())
            }
            Ended::TimedOut => Err(ToolError::Failed(show(
                &format!("the command took longer than {seconds} s and was ended"),
                &finished,
            ))),
            Ended::Cancelled => {
                Err(ToolError::Failed(show("the command was cancelled", &finished)))
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        // The command's own time is up first, so that what it printed is told.
        Some(self.bench.command_timeout.saturating_add(ENDING))
    }
}

/// How it ended and what it printed; outputs that are empty are left out.
fn show(how: &str, finished: &Finished) -> String {
    let dropped_out = finished.dropped_stdout_bytes;
    let dropped_err = finished.dropped_bytes.saturating_sub(dropped_out);
    let mut shown = how.to_owned();
    let outputs =
        [("stdout", &finished.stdout, dropped_out), ("stderr", &finished.stderr, dropped_err)];
    for (name, text, dropped) in outputs {
        if text.is_empty() {
            continue;
        }
        shown.push_str(&format!("\n--- {name}\n{}", text.trim_end_matches('\n')));
        if dropped > 0 {
            shown.push_str(&format!("\n[{dropped} more bytes are not shown]"));
        }
    }
    shown
}
