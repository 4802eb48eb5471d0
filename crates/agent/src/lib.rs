//! Execution of one agent on one task; scoring is out of scope.
//!
//! - [`agent_loop`]: a model with tools.
//! - [`run`] and [`start`]: external programs, with the prompt on standard input and the answer on standard output.
//! - [`Workers`]: persistent programs that reply line by line.
//! - [`CodingAgent`]: command lines and output formats of known coding agents.
//!
//! Each agent works in a folder of its own ([`Workspace`]). Processes that it starts are killed when it ends; call
//! [`become_subreaper`] to include processes that leave the process group of their program.
//!
//! A model with a custom tool, on the simulated provider:
//!
//! ```
//! use async_trait::async_trait;
//! use bakeoff_agent::{
//!     AgentContext, AgentLoopConfig, AgentMessage, EventSender, LoopStatus, Tool, ToolContext,
//!     ToolError, ToolOutput, agent_loop,
//! };
//! use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! use serde_json::{Value, json};
//! use std::sync::Arc;
//! use tokio_util::sync::CancellationToken;
//!
//! #[derive(Debug)]
//! struct UpperCase(bakeoff_core::ToolDefinition);
//!
//! #[async_trait]
//! impl Tool for UpperCase {
//!     fn definition(&self) -> &bakeoff_core::ToolDefinition {
//!         &self.0
//!     }
//!
//!     async fn execute(&self, arguments: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
//!         // The loop has validated the arguments.
//!         Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase().into())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let upper_case = UpperCase(bakeoff_core::ToolDefinition {
//!     name: "upper_case".to_owned(),
//!     description: "Converts a text to upper case.".to_owned(),
//!     parameters: json!({
//!         "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"]
//!     }),
//! });
//! let client = Arc::new(Client::new(ClientConfig::default()));
//! // This model calls the first tool and repeats its result.
//! let model = Model::resolve(&ModelConfig::named("sim", "tool"), &|_| None)?;
//! let config = AgentLoopConfig::new(&client, model);
//! let mut context = AgentContext::default().with_tools(vec![Arc::new(upper_case)]);
//! let prompts = vec![AgentMessage::user("hello")];
//! let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
//! let end = agent_loop(prompts, &mut context, &config, tx, cancel).await?;
//! assert_eq!((end.status, end.turns), (LoopStatus::Completed, 2));
//! let answer = context.messages.last().and_then(AgentMessage::as_llm).map(|m| m.text());
//! assert_eq!(answer.as_deref(), Some("HELLO"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coding;
mod dialogue;
mod identity;
mod mcp;
mod output;
mod process;
mod scan;
mod subreaper;
mod tools;
mod tree;
mod worker;
mod workspace;

pub use coding::{
    AgentOutput, AgentOutputParser, CodingAgent, ToolExchange, ToolResult, classify_failure,
};
pub use dialogue::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, CallScope, ContextConfig,
    EventReceiver, EventSender, ExecutionLimits, Extension, LoopEnd, LoopError, LoopFailure,
    LoopId, LoopLimit, LoopStatus, MessageRole, PromptTemplate, RecordedReply, ReplyJournal,
    Session, Tool, ToolContext, ToolError, ToolOutput, ToolProgress, agent_loop,
    agent_loop_continue, agent_loop_with_id, check_loop, event_channel, last_answer,
};
pub use identity::{Identity, PART_VARIABLE, RUN_VARIABLE, TRIAL_VARIABLE, terminate_orphans};
pub use mcp::{McpEndpoint, McpError, McpServer, McpServers};
pub use process::{
    ExitReason, Program, ProgramError, ProgramOutput, RunningProgram, is_exhaustion, run, start,
};
pub use subreaper::{become_subreaper, kill_descendants};
pub use tools::{
    FetchAccess, HttpFetch, ListFiles, ReadFile, RunCommand, TOOL_NAMES, ToolboxError, Workbench,
    WriteFile, built_in_tool,
};
pub use worker::{WorkerError, WorkerLimit, WorkerProgram, Workers};
pub use workspace::{Workspace, WorkspaceFiles, WorkspaceTemplate, remove_folder};
