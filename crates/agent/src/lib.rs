//! How does one agent work on one task?
//!
//! A model with tools: [`agent_loop`]. External programs: a prompt on standard input, the answer on
//! standard output; workers that stay and answer line by line; and coding agents that are known by
//! name. Each works in a folder of its own, and whatever it starts is ended with it. Scoring is for
//! others.

mod coding;
mod dialogue;
mod group;
mod identity;
mod mcp;
mod output;
mod process;
mod system;
mod tools;
mod worker;
mod workspace;

pub use coding::{CodingAgent, Listener, Said, trouble};
pub use dialogue::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, Behalf, ContextConfig, EventReceiver,
    EventSender, ExecutionLimits, Extension, Limit, LoopEnd, LoopError, LoopFailure, LoopId,
    LoopStatus, Progress, Session, Tool, ToolContext, ToolError, ToolOutput, agent_loop,
    agent_loop_as, agent_loop_continue, check_loop, event_channel,
};
pub use identity::{Identity, PART_VARIABLE, RUN_VARIABLE, TRIAL_VARIABLE, end_left_behind};
pub use mcp::{McpError, McpServer, McpServers};
pub use process::{Ended, Finished, Program, ProgramError, Running, is_exhaustion, run, start};
pub use tools::{
    FetchAccess, HttpFetch, ListFiles, ReadFile, RunCommand, TOOL_NAMES, ToolboxError, Workbench,
    WriteFile, built_in_tool,
};
pub use worker::{WorkerError, WorkerProgram, Workers};
pub use workspace::{Left, Template, Workspace, remove};
