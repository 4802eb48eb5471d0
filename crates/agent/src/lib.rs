//! How does one agent work on one task?
//!
//! A model with tools: [`agent_loop`]. External programs: a prompt on standard input, the answer on
//! standard output; workers that stay and answer line by line; and coding agents that are known by
//! name. Each works in a folder of its own, and whatever it starts is ended with it. Scoring is for
//! others.
//!
//! A model with a tool of one's own, on the simulated provider:
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
//! struct Shout(bakeoff_core::Tool);
//!
//! #[async_trait]
//! impl Tool for Shout {
//!     fn definition(&self) -> &bakeoff_core::Tool {
//!         &self.0
//!     }
//!
//!     async fn execute(&self, arguments: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
//!         // The arguments fit the schema, or the model would have been told.
//!         Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase().into())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let shout = Shout(bakeoff_core::Tool {
//!     name: "shout".to_owned(),
//!     description: "Says it loudly.".to_owned(),
//!     parameters: json!({
//!         "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"]
//!     }),
//! });
//! let client = Arc::new(Client::new(ClientConfig::default()));
//! // This model calls the first tool and repeats what it says.
//! let model = Model::resolve(&ModelConfig::named("sim", "tool"), &|_| None)?;
//! let config = AgentLoopConfig::new(&client, model);
//! let mut context = AgentContext { tools: vec![Arc::new(shout)], ..AgentContext::default() };
//! let prompts = vec![AgentMessage::user("hello")];
//! let (tx, cancel) = (EventSender::nobody(), CancellationToken::new());
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

pub use coding::{CodingAgent, Listener, Said, trouble};
pub use dialogue::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, Behalf, ContextConfig, EventReceiver,
    EventSender, ExecutionLimits, Extension, Limit, LoopEnd, LoopError, LoopFailure, LoopId,
    LoopStatus, Progress, Role, Session, Tool, ToolContext, ToolError, ToolOutput, agent_loop,
    agent_loop_as, agent_loop_continue, check_loop, event_channel, last_answer,
};
pub use identity::{Identity, PART_VARIABLE, RUN_VARIABLE, TRIAL_VARIABLE, terminate_orphans};
pub use mcp::{McpError, McpServer, McpServers};
pub use process::{
    ExitReason, Program, ProgramError, ProgramOutput, RunningProgram, is_exhaustion, run, start,
};
pub use subreaper::become_subreaper;
pub use tools::{
    FetchAccess, HttpFetch, ListFiles, ReadFile, RunCommand, TOOL_NAMES, ToolboxError, Workbench,
    WriteFile, built_in_tool,
};
pub use worker::{WorkerError, WorkerProgram, Workers};
pub use workspace::{Left, Template, Workspace, remove};
