//! A server's tool, as one that a loop can call.

use super::content;
use super::names::Names;
use super::server::{Connection, Known};
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
    definition: bakeoff_core::Tool,
    /// The server's own name of it.
    name: String,
    peer: Peer<RoleClient>,
    known: Arc<Known>,
}

/// The tools of a server that are wanted.
pub(super) fn offered(
    server: &McpServer,
    connection: &Connection,
    listed: Vec<rmcp::model::Tool>,
    names: &mut Names,
) -> Result<Vec<McpTool>, McpError> {
    for wanted in server.tools.iter().flatten() {
        if !listed.iter().any(|tool| tool.name == wanted.as_str()) {
            return Err(McpError::NoSuchTool {
                server: server.name.clone(),
                tool: wanted.clone(),
                known: listed.iter().map(|tool| tool.name.to_string()).collect(),
            });
        }
    }
    let is_wanted = |tool: &rmcp::model::Tool| {
        server.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|name| tool.name == *name))
    };
    let mut seen = BTreeSet::new();
    let mut tools = Vec::new();
    // Calls go by name, so that of several tools of one name only one can ever be called.
    for tool in listed.into_iter().filter(|tool| is_wanted(tool) && seen.insert(tool.name.clone()))
    {
        let parameters = parameters(&tool.input_schema);
        Schema::new(&parameters).map_err(|error| McpError::BadSchema {
            server: server.name.clone(),
            tool: tool.name.to_string(),
            reason: error.to_string(),
        })?;
        tools.push(McpTool {
            definition: bakeoff_core::Tool {
                name: names.give(&server.name, &tool.name),
                description: tool.description.unwrap_or_default().into_owned(),
                parameters,
            },
            name: tool.name.into_owned(),
            peer: connection.peer().clone(),
            known: Arc::clone(&connection.known),
        });
    }
    Ok(tools)
}

/// The schema; some servers leave out that arguments are an object, and providers insist on it.
fn parameters(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    Value::Object(schema)
}

#[async_trait::async_trait]
impl Tool for McpTool {
    fn definition(&self) -> &bakeoff_core::Tool {
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
        let answer = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Failed("cancelled".to_owned())),
            answer = self.peer.call_tool_once(request) => answer,
            // Its pipes may be held open by what it started.
            _ = self.known.end() => Err(ServiceError::TransportClosed),
        };
        let server = &self.known.name;
        match answer {
            Ok(CallToolResponse::Complete(result)) => content::read(result),
            Ok(_) => Err(ToolError::Failed(format!(
                "the MCP server `{server}` wants to be asked again, which is not done here"
            ))),
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                let why = self.known.why_silent().await;
                Err(ToolError::Failed(format!("the MCP server `{server}` {why}")))
            }
            // The server's own words.
            Err(ServiceError::McpError(error)) => {
                Err(ToolError::Failed(error.message.into_owned()))
            }
            Err(error) => Err(ToolError::Failed(format!("the MCP server `{server}`: {error}"))),
        }
    }
}
