//! Tool execution of one loop: lookup by name, validation of arguments, concurrent calls.

use super::channel::EventSender;
use super::end::{LoopError, LoopFailure};
use super::event::AgentEvent;
use super::session::LoopId;
use super::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolProgress};
use bakeoff_check::Schema;
use bakeoff_core::{Content, ErrorKind, Message, ToolCall};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Tools by name.
#[derive(Debug)]
pub(super) struct Toolbox {
    tools: BTreeMap<String, (Arc<dyn Tool>, Schema)>,
    timeout: Duration,
}

/// Results of the tool calls of one turn.
pub(super) struct ToolResults {
    calls: Vec<ToolCall>,
    /// Start events were sent.
    are_started: bool,
    outputs: Vec<Option<Result<ToolOutput, ToolError>>>,
    /// Indices of calls whose tool was not run.
    refused: Vec<usize>,
}

impl Toolbox {
    /// Creates a toolbox; `timeout` applies to tools without a timeout of their own.
    pub(super) fn new(tools: &[Arc<dyn Tool>], timeout: Duration) -> Result<Toolbox, LoopError> {
        let mut by_name = BTreeMap::new();
        for tool in tools {
            let definition = tool.definition();
            let invalid =
                |reason: String| LoopError::BadTool { name: definition.name.clone(), reason };
            let schema = Schema::new(&definition.parameters)
                .map_err(|error| invalid(format!("its parameters are {error}")))?;
            let entry = (Arc::clone(tool), schema);
            if by_name.insert(definition.name.clone(), entry).is_some() {
                return Err(invalid("another tool has the same name".to_owned()));
            }
        }
        Ok(Toolbox { tools: by_name, timeout })
    }

    /// Runs all calls concurrently and stores each result as soon as it is known, so that dropping the future
    /// loses none. Dropping it also cancels the calls that are still running.
    pub(super) async fn run(
        &self,
        results: &mut ToolResults,
        loop_id: &LoopId,
        events: &EventSender,
        cancel: &CancellationToken,
    ) {
        let cancel = cancel.child_token();
        let _cancel_on_drop = cancel.clone().drop_guard();
        let mut tasks = JoinSet::new();
        let mut indexes = BTreeMap::new();
        results.are_started = true;
        for call in &results.calls {
            let (loop_id, call) = (loop_id.clone(), call.clone());
            events.send(AgentEvent::ToolExecutionStart { loop_id, call });
        }
        for index in 0..results.calls.len() {
            let call = &results.calls[index];
            let (tool, limit) = match self.prepare(call) {
                Ok(prepared) => prepared,
                Err(error) => {
                    results.refused.push(index);
                    results.record(index, Err(error), loop_id, events);
                    continue;
                }
            };
            let context = ToolContext {
                call_id: call.id.clone(),
                cancel: cancel.clone(),
                progress: ToolProgress { loop_id: loop_id.clone(), events: events.clone() },
            };
            let arguments = call.arguments.clone();
            let task = tasks.spawn(async move {
                let work = tool.execute(arguments, context);
                tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                    Err(ToolError::Failed(format!("it took longer than {} s", limit.as_secs_f64())))
                })
            });
            indexes.insert(task.id(), index);
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            let (task, output) = match joined {
                Ok((task, output)) => (task, output),
                Err(error) => {
                    (error.id(), Err(ToolError::Failed("the tool broke down".to_owned())))
                }
            };
            if let Some(index) = indexes.get(&task) {
                results.record(*index, output, loop_id, events);
            }
        }
    }

    /// Returns the tool of a call and its timeout, if its arguments are valid.
    fn prepare(&self, call: &ToolCall) -> Result<(Arc<dyn Tool>, Duration), ToolError> {
        let Some((tool, schema)) = self.tools.get(&call.name) else {
            let known: Vec<&str> = self.tools.keys().map(String::as_str).collect();
            return Err(ToolError::Failed(match known.as_slice() {
                [] => format!("there is no tool `{}`; there are no tools", call.name),
                known => {
                    format!("there is no tool `{}`; there are {}", call.name, known.join(", "))
                }
            }));
        };
        if let Value::String(text) = &call.arguments {
            return Err(ToolError::Failed(format!("the arguments are not a JSON object: {text}")));
        }
        let problem = schema.problem(&call.arguments);
        if let Some(problem) = problem.map_err(|error| ToolError::Failed(error.to_string()))? {
            return Err(ToolError::Failed(format!("the arguments do not fit: {problem}")));
        }
        Ok((Arc::clone(tool), tool.timeout().unwrap_or(self.timeout)))
    }
}

impl ToolResults {
    pub(super) fn new(calls: Vec<ToolCall>) -> ToolResults {
        let outputs = calls.iter().map(|_| None).collect();
        ToolResults { calls, are_started: false, outputs, refused: Vec::new() }
    }

    fn record(
        &mut self,
        index: usize,
        output: Result<ToolOutput, ToolError>,
        loop_id: &LoopId,
        events: &EventSender,
    ) {
        let call = &self.calls[index];
        events.send(AgentEvent::ToolExecutionEnd {
            loop_id: loop_id.clone(),
            call_id: call.id.clone(),
            name: call.name.clone(),
            is_error: output.is_err(),
        });
        self.outputs[index] = Some(output);
    }

    /// Records an error with this text for each call without result. Providers reject conversations in which a
    /// call has none.
    pub(super) fn record_missing(&mut self, text: &str, loop_id: &LoopId, events: &EventSender) {
        for index in 0..self.calls.len() {
            if self.outputs[index].is_some() {
                continue;
            }
            let output = Err(ToolError::Failed(text.to_owned()));
            if self.are_started {
                self.record(index, output, loop_id, events);
            } else {
                self.refused.push(index);
                self.outputs[index] = Some(output);
            }
        }
    }

    /// Returns the indices of the calls whose tool was not run.
    pub(super) fn refused(&self) -> &[usize] {
        &self.refused
    }

    /// Returns the failure of the loop if the machine lacked resources.
    pub(super) fn machine_failure(&self) -> Option<LoopFailure> {
        self.outputs.iter().flatten().find_map(|output| match output {
            Err(ToolError::Machine(message)) => {
                Some(LoopFailure { kind: ErrorKind::Process, message: message.clone() })
            }
            _ => None,
        })
    }

    /// Returns one message per call, in order.
    pub(super) fn into_messages(self) -> impl Iterator<Item = Message> {
        let results = self.calls.into_iter().zip(self.outputs);
        results.filter_map(|(call, output)| {
            let (content, is_error) = match output? {
                Ok(output) => (output.content, false),
                Err(error) => (vec![Content::text(error.to_string())], true),
            };
            Some(Message::ToolResult { tool_call_id: call.id, name: call.name, content, is_error })
        })
    }
}
