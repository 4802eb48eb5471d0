//! Records of a session file.

use crate::strategy::Verdict;
use bakeoff_agent::{AgentMessage, LoopId, LoopStatus, RecordedReply};
use bakeoff_core::{FinishReason, NanoDollars, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum SessionRecord {
    SessionStarted {
        schema_version: u32,
        session_id: String,
        system_prompt: String,
    },
    RaceStarted {
        prompts: Vec<AgentMessage>,
        loop_ids: Vec<LoopId>,
        strategy: String,
        settings: Value,
    },
    BranchEnded(BranchRecord),
    /// A judge is about to be called.
    JudgeStarted {
        loop_id: LoopId,
    },
    JudgeReplied(RecordedReply),
    /// The race can be resumed.
    RaceInterrupted {
        total_usage: Usage,
        /// As in `RaceEnded`.
        loops: u32,
    },
    RaceEnded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selected_index: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        total_usage: Usage,
        /// Number of loops in the session, including judges.
        loops: u32,
    },
}

#[derive(Serialize, Deserialize)]
pub(super) struct BranchRecord {
    pub(super) config_index: usize,
    pub(super) loop_id: LoopId,
    pub(super) status: LoopStatus,
    pub(super) new_messages: Vec<AgentMessage>,
    pub(super) usage: Usage,
    #[serde(default, rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<NanoDollars>,
    #[serde(default)]
    pub(super) unaccounted_calls: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) refused_calls: Vec<usize>,
    pub(super) elapsed_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) finish: Option<FinishReason>,
}
