//! The agent loop: call the model, run the tools that it calls, and repeat until it responds without tool calls.
//!
//! Every call sends the whole conversation through [`bakeoff_llm`], which adds rate limiting, retries, cache and
//! accounting. Progress is reported as [`AgentEvent`]s. The outcome, failures included, is data ([`LoopEnd`]);
//! only invalid input is an error ([`LoopError`]).

mod agent_loop;
mod channel;
mod compaction;
mod config;
mod context;
mod end;
mod event;
mod journal;
mod prompt_template;
mod session;
mod tool;
mod toolbox;

pub use agent_loop::{agent_loop, agent_loop_continue, agent_loop_with_id, check_loop};
pub use channel::{EventReceiver, EventSender, event_channel};
pub use config::{AgentLoopConfig, CallScope, ContextConfig, ExecutionLimits};
pub use context::{AgentContext, AgentMessage, Extension};
pub use end::{LoopEnd, LoopError, LoopFailure, LoopLimit, LoopStatus, last_answer};
pub use event::{AgentEvent, MessageRole};
pub use journal::{RecordedReply, ReplyJournal};
pub use prompt_template::PromptTemplate;
pub use session::{LoopId, Session};
pub use tool::{Tool, ToolContext, ToolError, ToolOutput, ToolProgress};
