//! The loop of a model and its tools: ask, run the tools it calls, ask again, until it answers.
//!
//! The whole history goes out on every call, through [`bakeoff_llm`], so that each is paced,
//! retried, cached and accounted. What happens is told as it happens ([`AgentEvent`]); how it ended
//! is data ([`LoopEnd`]), and only a caller's mistake is an error ([`LoopError`]).

mod channel;
mod compaction;
mod config;
mod context;
mod end;
mod event;
mod looping;
mod session;
mod tool;
mod toolbox;

pub use channel::{EventReceiver, EventSender, event_channel};
pub use config::{AgentLoopConfig, Behalf, ContextConfig, ExecutionLimits};
pub use context::{AgentContext, AgentMessage, Extension};
pub use end::{Limit, LoopEnd, LoopError, LoopFailure, LoopStatus, last_answer};
pub use event::{AgentEvent, Role};
pub use looping::{agent_loop, agent_loop_as, agent_loop_continue, check_loop};
pub use session::{LoopId, Session};
pub use tool::{Progress, Tool, ToolContext, ToolError, ToolOutput};
