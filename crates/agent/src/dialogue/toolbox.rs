//! The tools of one loop: found by name, arguments looked at, all calls of a turn run at once.

use super::channel::EventSender;
use super::end::{LoopError, LoopFailure};
use super::event::AgentEvent;
use super::session::LoopId;
use super::tool::{Progress, Tool, ToolContext, ToolError, ToolOutput};
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

/// What became of the calls of one turn.
pub(super) struct Results {
    calls: Vec<ToolCall>,
    /// Somebody was told that they have begun.
    are_begun: bool,
    outputs: Vec<Option<Result<ToolOutput, ToolError>>>,
}

impl Toolbox {
    /// The tools; `timeout` is for those that have none of their own.
    pub(super) fn new(tools: &[Arc<dyn Tool>], timeout: Duration) -> Result<Toolbox, LoopError> {
        let mut named = BTreeMap::new();
        for tool in tools {
            let definition = tool.definition();
            let bad = |reason: String| LoopError::BadTool { name: definition.name.clone(), reason };
            let schema = Schema::new(&definition.parameters)
                .map_err(|error| bad(format!("its parameters are {error}")))?;
            let entry = (Arc::clone(tool), schema);
            if named.insert(definition.name.clone(), entry).is_some() {
                return Err(bad("another tool has the same name".to_owned()));
            }
        }
        Ok(Toolbox { tools: named, timeout })
    }

    /// Runs all calls at once, and writes what becomes of them to `results` as it comes, so that
    /// nothing is lost when this is dropped. Whatever still runs is ended then.
    pub(super) async fn run(
        &self,
        results: &mut Results,
        loop_id: &LoopId,
        events: &EventSender,
        cancel: &CancellationToken,
    ) {
        let cancel = cancel.child_token();
        let _ended_with_this = cancel.clone().drop_guard();
        let mut tasks = JoinSet::new();
        let mut places = BTreeMap::new();
        results.are_begun = true;
        for call in &results.calls {
            let (loop_id, call) = (loop_id.clone(), call.clone());
            events.send(AgentEvent::ToolExecutionStart { loop_id, call });
        }
        for place in 0..results.calls.len() {
            let call = &results.calls[place];
            let (tool, limit) = match self.ready(call) {
                Ok(ready) => ready,
                Err(refused) => {
                    results.settle(place, Err(refused), loop_id, events);
                    continue;
                }
            };
            let context = ToolContext {
                call_id: call.id.clone(),
                cancel: cancel.clone(),
                progress: Progress { loop_id: loop_id.clone(), events: events.clone() },
            };
            let arguments = call.arguments.clone();
            let task = tasks.spawn(async move {
                let work = tool.execute(arguments, context);
                tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                    Err(ToolError::Failed(format!("it took longer than {} s", limit.as_secs_f64())))
                })
            });
            places.insert(task.id(), place);
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            let (task, output) = match joined {
                Ok((task, output)) => (task, output),
                Err(error) => {
                    (error.id(), Err(ToolError::Failed("the tool broke down".to_owned())))
                }
            };
            if let Some(place) = places.get(&task) {
                results.settle(*place, output, loop_id, events);
            }
        }
    }

    /// The tool that a call names, once its arguments fit, and how long it may take.
    fn ready(&self, call: &ToolCall) -> Result<(Arc<dyn Tool>, Duration), ToolError> {
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
        if let Some(problem) = schema.problem(&call.arguments) {
            return Err(ToolError::Failed(format!("the arguments do not fit: {problem}")));
        }
        Ok((Arc::clone(tool), tool.timeout().unwrap_or(self.timeout)))
    }
}

impl Results {
    pub(super) fn of(calls: Vec<ToolCall>) -> Results {
        let outputs = calls.iter().map(|_| None).collect();
        Results { calls, are_begun: false, outputs }
    }

    fn settle(
        &mut self,
        place: usize,
        output: Result<ToolOutput, ToolError>,
        loop_id: &LoopId,
        events: &EventSender,
    ) {
        let call = &self.calls[place];
        events.send(AgentEvent::ToolExecutionEnd {
            loop_id: loop_id.clone(),
            call_id: call.id.clone(),
            name: call.name.clone(),
            is_error: output.is_err(),
        });
        self.outputs[place] = Some(output);
    }

    /// Gives every call a result that has none; the words say why. Without one, no provider would
    /// take the conversation any more.
    pub(super) fn settle_rest(&mut self, missing: &str, loop_id: &LoopId, events: &EventSender) {
        for place in 0..self.calls.len() {
            if self.outputs[place].is_some() {
                continue;
            }
            let output = Err(ToolError::Failed(missing.to_owned()));
            if self.are_begun {
                self.settle(place, output, loop_id, events);
            } else {
                self.outputs[place] = Some(output);
            }
        }
    }

    /// That the machine cannot go on.
    pub(super) fn machine_trouble(&self) -> Option<LoopFailure> {
        self.outputs.iter().flatten().find_map(|output| match output {
            Err(ToolError::Machine(message)) => {
                Some(LoopFailure { kind: ErrorKind::Process, message: message.clone() })
            }
            _ => None,
        })
    }

    /// One message per call, in order.
    pub(super) fn into_messages(self) -> impl Iterator<Item = Message> {
        let settled = self.calls.into_iter().zip(self.outputs);
        settled.filter_map(|(call, output)| {
            let (content, is_error) = match output? {
                Ok(output) => (output.content, false),
                Err(error) => (vec![Content::text(error.to_string())], true),
            };
            Some(Message::ToolResult { tool_call_id: call.id, name: call.name, content, is_error })
        })
    }
}
