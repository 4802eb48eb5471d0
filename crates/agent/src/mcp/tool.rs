//! The [`Tool`] implementation for tools of MCP servers.

use super::content;
use super::names::ToolNames;
use super::server::{Connection, ServerProcess};
use super::{McpError, McpServer};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use bakeoff_check::Schema;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A tool of an MCP server.
#[derive(Debug)]
pub(super) struct McpTool {
    definition: bakeoff_core::ToolDefinition,
    /// Name of the tool on the server.
    name: String,
    peer: Peer<RoleClient>,
    process: Arc<ServerProcess>,
}

/// Selects the tools of a server that are offered.
pub(super) fn select_tools(
    server: &McpServer,
    connection: &Connection,
    listed: Vec<rmcp::model::Tool>,
    names: &mut ToolNames,
) -> Result<Vec<McpTool>, McpError> {
    for name in server.tools.iter().flatten() {
        if !listed.iter().any(|tool| tool.name == name.as_str()) {
            return Err(McpError::NoSuchTool {
                server: server.name.clone(),
                tool: name.clone(),
                known: listed.iter().map(|tool| tool.name.to_string()).collect(),
            });
        }
    }
    let is_offered = |tool: &rmcp::model::Tool| {
        server.tools.as_ref().is_none_or(|names| names.iter().any(|name| tool.name == *name))
    };
    let mut seen = BTreeSet::new();
    let mut tools = Vec::new();
    // Calls name the tool, so only one of several tools with the same name can be called.
    for tool in listed.into_iter().filter(|tool| is_offered(tool) && seen.insert(tool.name.clone()))
    {
        let parameters = parameters(&tool.input_schema);
        Schema::new(&parameters).map_err(|error| McpError::BadSchema {
            server: server.name.clone(),
            tool: tool.name.to_string(),
            reason: error.to_string(),
        })?;
        tools.push(McpTool {
            definition: bakeoff_core::ToolDefinition {
                name: names.assign(&server.name, &tool.name),
                description: tool.description.unwrap_or_default().into_owned(),
                parameters,
            },
            name: tool.name.into_owned(),
            peer: connection.peer().clone(),
            process: Arc::clone(&connection.process),
        });
    }
    Ok(tools)
}

/// Returns the schema with its `type`, which providers require and some servers omit.
fn parameters(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    Value::Object(schema)
}

#[async_trait::async_trait]
impl Tool for McpTool {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let request = CallToolRequestParams::new(self.name.clone()).with_arguments(arguments);
        let response = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Failed("cancelled".to_owned())),
            response = self.peer.call_tool_once(request) => response,
            // Child processes of the server may keep its pipes open.
            _ = self.process.wait() => Err(ServiceError::TransportClosed),
        };
        let server = &self.process.name;
        match response {
            Ok(CallToolResponse::Complete(result)) => content::convert(result),
            Ok(_) => Err(ToolError::Failed(format!(
                "the MCP server `{server}` wants to be asked again, which is not done here"
            ))),
            Err(error @ ServiceError::TransportSend(_)) if self.process.is_remote => {
                Err(ToolError::Failed(format!("the MCP server `{server}`: {error}")))
            }
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                let reason = self.process.silence_reason().await;
                Err(ToolError::Failed(format!("the MCP server `{server}` {reason}")))
            }
            // The message of the server, unchanged.
            Err(ServiceError::McpError(error)) => {
                Err(ToolError::Failed(error.message.into_owned()))
            }
            Err(error) => Err(ToolError::Failed(format!("the MCP server `{server}`: {error}"))),
        }
    }
}
