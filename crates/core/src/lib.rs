//! The shared words of Bakeoff: what every other crate says when it talks about a conversation,
//! what it cost, how a trial ended and what a program run means to the shell.
//!
//! Nothing here does I/O or knows about time; types that reach disk are `serde`.

mod cases;
mod comparison;
mod event;
mod exit;
mod id;
mod ids;
mod message;
mod money;
mod request;
mod response;
mod secret;
mod summary;
mod traffic;
mod trial;
mod usage;

pub use cases::{CaseCounts, CaseList, CaseSummary, TrialStatus, TrueRate};
pub use comparison::{
    CaseChange, ComparedBy, Comparison, Equivalence, Finding, Needed, Side, Unpaired,
};
pub use event::{Event, ProcessGroup, RunPlan};
pub use exit::ExitCode;
pub use id::{CaseId, RunId, TargetName};
pub use ids::CaseIds;
pub use message::{Content, ImageSource, Message, ToolCall};
pub use money::{NanoDollars, ParseMoneyError, Prices};
pub use request::{OutputFormat, Request, Thinking, Tool, ToolChoice};
pub use response::{FinishReason, Response};
pub use secret::{PieceRedactor, Redactor};
pub use summary::{Interval, PassK, RunStats, Score, Summary, TargetSummary};
pub use traffic::{HttpEntry, LimitRecord, PoolState};
pub use trial::{
    Attempt, CheckResult, ErrorKind, LeftFile, Status, Timing, ToolUse, TrialError, TrialKey,
    TrialResult, Verdict,
};
pub use usage::Usage;

/// Version of every file that Bakeoff writes; readers refuse a newer one.
pub const SCHEMA_VERSION: u32 = 1;
