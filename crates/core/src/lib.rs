//! Shared types of Bakeoff: ids, messages, requests, usage, money, trial results, summaries, events
//! and exit codes.
//!
//! This crate does no I/O and reads no clock. Types that reach disk implement `serde` traits.

mod cases;
mod comparison;
mod csv_quotes;
mod event;
mod exit;
mod id;
mod ids;
mod media;
mod message;
mod money;
mod request;
mod response;
mod secret;
mod summary;
mod text;
mod tokens;
mod traffic;
mod trial;
mod usage;

pub use cases::{CaseCounts, CaseList, CaseSummary, TrialStatus, TrueRate};
pub use comparison::{
    CaseChange, Comparison, ComparisonMetric, Equivalence, Finding, RequiredCases, ScoreComparison,
    Side, UnpairedCases, UnpairedTargets,
};
pub use csv_quotes::CsvQuotes;
pub use event::{Event, ProcessGroup, RunPlan};
pub use exit::ExitCode;
pub use id::{CaseId, RunId, TargetName};
pub use ids::CaseIds;
pub use media::media_tokens;
pub use message::{Content, ImageSource, Message, ToolCall};
pub use money::{NanoDollars, ParseMoneyError, Prices};
pub use request::{OutputFormat, Request, Thinking, ToolChoice, ToolDefinition};
pub use response::{FinishReason, Response};
pub use secret::{PieceRedactor, Redactor};
pub use summary::{Interval, PassK, RunStats, Score, Summary, TargetSummary};
pub use text::{one_line, printable};
pub use tokens::{UNITS_PER_TOKEN, character_units, estimate_tokens, token_units};
pub use traffic::{HttpEntry, LimitRecord, PoolState, PoolSummary};
pub use trial::{
    Attempt, CheckResult, ErrorKind, Status, Timing, ToolUse, TrialError, TrialKey, TrialResult,
    Verdict, WorkspaceFile,
};
pub use usage::{MAX_TOKENS, Usage};

/// Version of every file that Bakeoff writes; readers reject a newer one.
pub const SCHEMA_VERSION: u32 = 1;
