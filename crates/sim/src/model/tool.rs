//! Tool calls.

use super::fill::{self, Hints};
use crate::PlannedCall;
use crate::key::Key;
use bakeoff_core::{Content, Request, Tool, ToolCall, ToolChoice};

/// The tool that a model keen on tools calls: the one it must, else the first it may.
pub(crate) fn chosen(request: &Request) -> Option<&Tool> {
    match &request.tool_choice {
        Some(ToolChoice::None) => None,
        Some(ToolChoice::Tool(name)) => request.tools.iter().find(|tool| tool.name == *name),
        Some(ToolChoice::Auto | ToolChoice::Required) | None => request.tools.first(),
    }
}

/// The tool that any model has to call.
pub(crate) fn demanded(request: &Request) -> Option<&Tool> {
    match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => chosen(request),
        Some(ToolChoice::Auto | ToolChoice::None) | None => None,
    }
}

/// A call of the tool with arguments that fit its schema.
pub(crate) fn call(tool: &Tool, hints: &Hints, key: Key) -> Content {
    let mut arguments = fill::fill(&tool.parameters, hints);
    if !arguments.is_object() {
        arguments = serde_json::json!({});
    }
    let id = format!("call_{}", key.hex());
    Content::ToolCall(ToolCall { id, name: tool.name.clone(), arguments })
}

/// A call that a persona has planned.
pub(crate) fn planned(call: &PlannedCall, key: Key) -> Content {
    Content::ToolCall(ToolCall {
        id: format!("call_{}", key.hex()),
        name: call.tool.clone(),
        arguments: call.arguments.clone().into(),
    })
}
