//! The interface of tools.

use super::channel::EventSender;
use super::event::AgentEvent;
use super::session::{LoopId, Session};
use bakeoff_core::Content;
use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A tool that a model may call. Loops share it, so calls can be concurrent.
#[async_trait::async_trait]
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns name, description and the JSON Schema of the arguments.
    fn definition(&self) -> &bakeoff_core::ToolDefinition;

    /// Runs the tool. The arguments are valid by the schema.
    ///
    /// # Errors
    ///
    /// A failure; the loop sends it to the model as result of the call, see [`ToolError`].
    async fn execute(
        &self,
        arguments: serde_json::Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError>;

    /// Returns the time limit; `None` for the default of the loop.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// Context of a tool call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Id that pairs the call with its result.
    pub call_id: String,
    /// Cancelled when the result is not needed any more.
    pub cancel: CancellationToken,
    /// Reports progress of the call.
    pub progress: ToolProgress,
}

impl ToolContext {
    /// Returns a context for a call outside of a loop, such as in a test. Progress is discarded.
    pub fn detached(cancel: CancellationToken) -> ToolContext {
        let loop_id = Session::named("unattended").next_loop("call");
        let progress = ToolProgress { loop_id, events: EventSender::disabled() };
        ToolContext { call_id: String::new(), cancel, progress }
    }
}

/// Reporter for progress of a tool call.
#[derive(Debug, Clone)]
pub struct ToolProgress {
    pub(super) loop_id: LoopId,
    pub(super) events: EventSender,
}

impl ToolProgress {
    /// Sends a progress message as event of the loop.
    pub fn report(&self, text: impl Into<String>) {
        let (loop_id, text) = (self.loop_id.clone(), text.into());
        self.events.send(AgentEvent::ProgressMessage { loop_id, text });
    }
}

/// Result of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// Content for the model.
    pub content: Vec<Content>,
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> ToolOutput {
        ToolOutput { content: vec![Content::text(text)] }
    }
}

/// Failure of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The call failed. The loop sends this text to the model and continues.
    #[error("{0}")]
    Failed(String),
    /// The machine lacks resources, such as processes or files. The loop fails, because this is not a failure
    /// of the model.
    #[error("{0}")]
    Machine(String),
}
