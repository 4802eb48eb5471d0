//! The tool `run_command`.

use super::{Workbench, parse_arguments};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use crate::identity::Identity;
use crate::process::{self, ExitReason, Program, ProgramOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum number of bytes kept of each output of a command.
const MAX_OUTPUT_BYTES: usize = 32 * 1024;

/// Additional time for terminating and killing the processes of a command that timed out.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Tool that runs commands in the workspace, with all rights of the user.
#[derive(Debug)]
pub struct RunCommand {
    definition: bakeoff_core::ToolDefinition,
    bench: Workbench,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
}

impl RunCommand {
    pub(super) const NAME: &str = "run_command";

    /// Creates the tool for a workbench.
    pub fn new(bench: &Workbench) -> RunCommand {
        let definition = bakeoff_core::ToolDefinition {
            name: RunCommand::NAME.to_owned(),
            description: format!(
                "Runs a command with `sh -c` in the workspace and shows its exit code and what it \
                 printed, at most {} KiB of each output. Its standard input is empty. It may take \
                 {} s, and what it leaves running in the background is ended with it.",
                MAX_OUTPUT_BYTES / 1024,
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
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { command } = parse_arguments(arguments)?;
        let program = Program {
            command: vec!["sh".into(), "-c".into(), command.into()],
            input: String::new(),
            close_input: None,
            folder: self.bench.folder.clone(),
            environment: self.bench.environment.clone(),
            // Commands of one turn run concurrently, and none may kill the others.
            identity: self.bench.identity.as_ref().map(Identity::with_next_part),
            timeout: self.bench.command_timeout,
            max_output_bytes: MAX_OUTPUT_BYTES,
        };
        let broken = |error: process::ProgramError| match error.is_exhaustion() {
            // Exhaustion is not a failure of the model.
            true => ToolError::Machine(format!("{error} [EVAL_PARALLEL_EXHAUSTION]")),
            false => ToolError::Failed(error.to_string()),
        };
        let running = process::start(&program).map_err(broken)?;
        self.bench.report_start(running.group()).await;
        let output = running.finish(&context.cancel, &mut |_| {}).await.map_err(broken)?;
        let seconds = program.timeout.as_secs_f64();
        match output.exit_reason {
            ExitReason::Exited(code) => {
                Ok(format_output(&format!("exit code {code}"), &output).into())
            }
            ExitReason::Signalled(signal) => {
                Ok(format_output(&format!("ended by signal {signal}"), &output).into())
            }
            ExitReason::TimedOut => Err(ToolError::Failed(format_output(
                &format!("the command took longer than {seconds} s and was ended"),
                &output,
            ))),
            ExitReason::Cancelled => {
                Err(ToolError::Failed(format_output("the command was cancelled", &output)))
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        // The command times out first, so that its output is returned.
        Some(self.bench.command_timeout.saturating_add(SHUTDOWN_TIMEOUT))
    }
}

/// Formats the exit reason and the outputs; leaves out empty outputs.
fn format_output(exit_reason: &str, output: &ProgramOutput) -> String {
    let dropped_out = output.dropped_stdout_bytes;
    let dropped_err = output.dropped_bytes.saturating_sub(dropped_out);
    let mut shown = exit_reason.to_owned();
    let outputs =
        [("stdout", &output.stdout, dropped_out), ("stderr", &output.stderr, dropped_err)];
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
