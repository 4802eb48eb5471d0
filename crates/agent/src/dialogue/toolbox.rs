//! The tools of one loop: found by name, arguments looked at, all calls of a turn run at once.

use super::channel::EventSender;
use super::event::AgentEvent;
use super::looping::LoopError;
use super::session::LoopId;
use super::tool::{Progress, Tool, ToolContext, ToolError, ToolOutput};
use bakeoff_check::Schema;
use bakeoff_core::{Content, Message, ToolCall};
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
                    Err(ToolError(format!("it took longer than {} s", limit.as_secs_f64())))
                })
            });
            places.insert(task.id(), place);
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            let (task, output) = match joined {
                Ok((task, output)) => (task, output),
                Err(error) => (error.id(), Err(ToolError("the tool broke down".to_owned()))),
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
            return Err(ToolError(match known.as_slice() {
                [] => format!("there is no tool `{}`; there are no tools", call.name),
                known => {
                    format!("there is no tool `{}`; there are {}", call.name, known.join(", "))
                }
            }));
        };
        if let Value::String(text) = &call.arguments {
            return Err(ToolError(format!("the arguments are not a JSON object: {text}")));
        }
        if let Some(problem) = schema.problem(&call.arguments) {
            return Err(ToolError(format!("the arguments do not fit: {problem}")));
        }
        Ok((Arc::clone(tool), tool.timeout().unwrap_or(self.timeout)))
    }
}

impl Results {
    pub(super) fn of(calls: Vec<ToolCall>) -> Results {
        let outputs = calls.iter().map(|_| None).collect();
        Results { calls, outputs }
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

    /// One message per call, in order; every call has its answer, or else no provider would take
    /// the conversation any more. `missing` says why some calls have no result.
    pub(super) fn into_messages(self, missing: &str) -> impl Iterator<Item = Message> {
        self.calls.into_iter().zip(self.outputs).map(move |(call, output)| {
            let output = output.unwrap_or_else(|| Err(ToolError(missing.to_owned())));
            let (content, is_error) = match output {
                Ok(output) => (output.content, false),
                Err(error) => (vec![Content::text(error.0)], true),
            };
            Message::ToolResult { tool_call_id: call.id, name: call.name, content, is_error }
        })
    }
}
