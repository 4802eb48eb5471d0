//! Tool calls of simulated models.

use super::fill::{self, FillHints};
use crate::PlannedCall;
use crate::key::SeedKey;
use bakeoff_core::{Content, Request, ToolCall, ToolChoice, ToolDefinition};

/// Returns the tool that `tool` calls: the required one, or else the first permitted one.
pub(crate) fn chosen(request: &Request) -> Option<&ToolDefinition> {
    match &request.tool_choice {
        Some(ToolChoice::None) => None,
        Some(ToolChoice::Tool(name)) => request.tools.iter().find(|tool| tool.name == *name),
        Some(ToolChoice::Auto | ToolChoice::Required) | None => request.tools.first(),
    }
}

/// Returns the tool that the request requires every model to call.
pub(crate) fn required(request: &Request) -> Option<&ToolDefinition> {
    match &request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => chosen(request),
        Some(ToolChoice::Auto | ToolChoice::None) | None => None,
    }
}

/// Returns a call with arguments that satisfy the tool's schema.
pub(crate) fn call(tool: &ToolDefinition, hints: &FillHints, key: SeedKey) -> Content {
    let mut arguments = fill::fill(&tool.parameters, hints);
    if !arguments.is_object() {
        arguments = serde_json::json!({});
    }
    let id = format!("call_{}", key.hex());
    Content::ToolCall(ToolCall { id, name: tool.name.clone(), arguments })
}

/// Returns a planned call of a defined model.
pub(crate) fn planned_call(call: &PlannedCall, key: SeedKey) -> Content {
    Content::ToolCall(ToolCall {
        id: format!("call_{}", key.hex()),
        name: call.tool.clone(),
        arguments: call.arguments.clone().into(),
    })
}
