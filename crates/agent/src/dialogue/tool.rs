//! What a model may call.

use super::channel::EventSender;
use super::event::AgentEvent;
use super::session::{LoopId, Session};
use bakeoff_core::Content;
use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Something that a model may call. Shared by all loops that have it, so it must not mind being
/// called several times at once.
#[async_trait::async_trait]
pub trait Tool: Send + Sync + fmt::Debug {
    /// Its name, what it does, and the JSON Schema of its arguments.
    fn definition(&self) -> &bakeoff_core::Tool;

    /// Does it. The arguments fit the schema.
    ///
    /// # Errors
    ///
    /// The model is told what went wrong, and goes on.
    async fn execute(
        &self,
        arguments: serde_json::Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError>;

    /// How long it may take; the loop's own timeout when absent.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// On whose behalf a tool is called.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Pairs the call with its result.
    pub call_id: String,
    /// Cancelled when nobody waits for the result any more.
    pub cancel: CancellationToken,
    /// Tells how far it is.
    pub progress: Progress,
}

impl ToolContext {
    /// For a call that no loop makes, such as one of a test. Nobody hears of its progress.
    pub fn unattended(cancel: CancellationToken) -> ToolContext {
        let loop_id = Session::named("unattended").next_loop("call");
        let progress = Progress { loop_id, events: EventSender::nobody() };
        ToolContext { call_id: String::new(), cancel, progress }
    }
}

/// Tells how far a tool is.
#[derive(Debug, Clone)]
pub struct Progress {
    pub(super) loop_id: LoopId,
    pub(super) events: EventSender,
}

impl Progress {
    /// Tells it to whoever listens to the loop.
    pub fn tell(&self, text: impl Into<String>) {
        let (loop_id, text) = (self.loop_id.clone(), text.into());
        self.events.send(AgentEvent::ProgressMessage { loop_id, text });
    }
}

/// What a tool returns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// For the model.
    pub content: Vec<Content>,
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> ToolOutput {
        ToolOutput { content: vec![Content::text(text)] }
    }
}

/// Why a tool has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// It failed. The model is told these words, and goes on.
    #[error("{0}")]
    Failed(String),
    /// The machine cannot go on, which is nobody's fault: there are no processes or files left. The
    /// loop fails.
    #[error("{0}")]
    Machine(String),
}
