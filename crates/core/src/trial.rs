//! Trials: key, attempt, checks and result.

use crate::{CaseId, FinishReason, NanoDollars, TargetName, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Key of a trial. It contains nothing specific to a process, so results merge by key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrialKey {
    /// Name of the target.
    pub target: TargetName,
    /// Id of the case.
    pub case: CaseId,
    /// Number of the trial, from 1.
    pub trial: u32,
}

/// Status of a finished trial or case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All required checks passed.
    Passed,
    /// A required check failed.
    Failed,
    /// No output to judge, because of the provider, the network or the machine.
    Error,
    /// Not run, because it was unnecessary or the budget was exhausted.
    Skipped,
}

/// Verdict on a case, a target or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At or above the threshold, regardless of missing trials.
    Passed,
    /// Below the threshold, regardless of missing trials.
    Failed,
    /// Dependent on missing trials.
    Inconclusive,
}

impl Verdict {
    /// Returns the worse of two verdicts: failed, then inconclusive, then passed.
    #[must_use]
    pub fn worst(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Failed, _) | (_, Verdict::Failed) => Verdict::Failed,
            (Verdict::Inconclusive, _) | (_, Verdict::Inconclusive) => Verdict::Inconclusive,
            (Verdict::Passed, Verdict::Passed) => Verdict::Passed,
        }
    }
}

/// Output of a target for one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Text of the model, or standard output of the program.
    pub output: String,
    /// Reason for the end of the model's response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Standard error of a program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Bytes of a program's outputs that were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
    /// Bytes dropped from `output`; if unknown, the size of the line or message that contained them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_output_bytes: u64,
    /// Bytes dropped from `transcript`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_transcript_bytes: u64,
    /// Tool uses dropped from `tool_uses` or not parseable.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_tool_uses: u64,
    /// Tool uses with dropped arguments, which are null in `tool_uses`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_tool_arguments: u64,
    /// Exit code of a program; absent when a signal terminated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Tool uses in order: calls of a model, commands of an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_uses: Vec<ToolUse>,
    /// Number of model responses in an agent loop, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Whether an agent loop was stopped by its maximum number of turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_out_of_turns: bool,
    /// Complete output of an agent, where `output` is only a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// Files in the workspace after the program ended, by path; absent for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, WorkspaceFile>>,
    /// Number of workspace files omitted from `files`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_files: u64,
    /// Path of the kept workspace within the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Tokens, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
    /// Likely cost of failed requests for which providers charge; not part of `cost`. It counts for the budget of the run.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub lost_cost: NanoDollars,
    /// Part of `cost` that was not spent because the answer was cached.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub saved: NanoDollars,
    /// Tokens of judge models; not part of `usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_usage: Option<Usage>,
    /// Cost of judge models, where prices are known; not part of `cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_cost: Option<NanoDollars>,
    /// Whether the answer came from the response cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Durations of the trial.
    pub timing: Timing,
    /// Reason why there is no output to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
}

/// Use of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Name of the tool.
    pub name: String,
    /// Arguments of the use.
    #[serde(default)]
    pub arguments: serde_json::Value,
    /// Whether the call was refused: there is no such tool, its arguments are invalid, or a limit was reached. The tool
    /// was not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

impl ToolUse {
    /// Creates a use that was not refused.
    pub fn new(name: impl Into<String>, arguments: serde_json::Value) -> ToolUse {
        ToolUse { name: name.into(), arguments, refused: false }
    }
}

/// File in a workspace after the program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceFile {
    /// Size in bytes.
    pub bytes: u64,
    /// Content; absent for a file that is not text, too large, or unchanged since before the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Durations of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Start in milliseconds since 1970.
    pub started_ms: u64,
    /// Duration of the work, without waiting for permits and retries. A cached answer keeps its
    /// original latency.
    pub latency_ms: u64,
    /// Time from start to end.
    pub elapsed_ms: u64,
    /// Retried calls.
    #[serde(default)]
    pub retries: u32,
}

/// Error that left a trial without an output to judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TrialError {
    /// Kind of error.
    pub kind: ErrorKind,
    /// Message for the user; without secrets.
    pub message: String,
}

/// Kind of a trial error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The provider throttled the call until its deadline.
    RateLimit,
    /// The account's quota is exhausted; waiting does not help.
    Quota,
    /// The rest of the run's budget does not cover the call.
    Budget,
    /// Server errors, dropped connections, an unreachable host.
    Transient,
    /// The provider rejected the request as invalid.
    InvalidRequest,
    /// The API key is missing, invalid or lacks permission.
    Auth,
    /// The conversation exceeds the context window.
    ContextOverflow,
    /// The provider rejected the content.
    ContentFilter,
    /// The trial was cancelled.
    Cancelled,
    /// The time limit was exceeded.
    Timeout,
    /// The response does not match the provider's format.
    MalformedResponse,
    /// The prompt could not be rendered from the case.
    Template,
    /// The program could not be started or monitored, or it exited with a code other than 0.
    Process,
    /// A check gave no result: it could not be built from the case, or its judge or program failed.
    Check,
    /// The trial's task panicked.
    Internal,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredCheckResult")]
pub struct CheckResult {
    /// Id of the check, not its kind.
    pub check: String,
    /// Whether the check passed, with negation applied.
    pub passed: bool,
    /// Score from 0 to 1, with negation applied; 0 or 1 unless the check is graded.
    pub score: f64,
    /// Whether the check measures a score instead of a condition.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub graded: bool,
    /// Whether the trial fails if the check fails.
    pub required: bool,
    /// Weight in the score.
    pub weight: f64,
    /// Reason of the failure; empty when the check passed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Form of a check result on disk. Versions before scores stored only whether a check passed.
#[derive(Deserialize)]
struct StoredCheckResult {
    check: String,
    passed: bool,
    score: Option<f64>,
    #[serde(default)]
    graded: bool,
    required: bool,
    weight: f64,
    #[serde(default)]
    message: String,
}

impl From<StoredCheckResult> for CheckResult {
    fn from(stored: StoredCheckResult) -> CheckResult {
        let StoredCheckResult { check, passed, score, graded, required, weight, message } = stored;
        let score = score.unwrap_or(f64::from(u8::from(passed)));
        CheckResult { check, passed, score, graded, required, weight, message }
    }
}

/// Result of a finished trial; the only input of aggregation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Key of the trial.
    pub key: TrialKey,
    /// Tags of the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Status of the trial.
    pub status: Status,
    /// Weighted mean of the scores of the checks, from 0 to 1; absent unless judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Results of the checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// Judged output.
    pub attempt: Attempt,
}

#[cfg(test)]
mod tests {
    use super::CheckResult;
    use super::Verdict::{self, Failed, Inconclusive, Passed};

    #[test]
    fn check_result_of_an_older_version_has_the_score_of_its_condition() {
        for (passed, score) in [(true, 1.0), (false, 0.0)] {
            let json = format!(r#"{{"check":"c","passed":{passed},"required":true,"weight":2.0}}"#);
            let found: CheckResult = serde_json::from_str(&json).unwrap();
            assert_eq!((found.score, found.graded, found.weight), (score, false, 2.0));
        }
    }

    #[test]
    fn worst_verdict_is_failed_then_inconclusive() {
        let over = |verdicts: &[Verdict]| verdicts.iter().copied().fold(Passed, Verdict::worst);
        assert_eq!(over(&[]), Passed);
        assert_eq!(over(&[Passed, Passed]), Passed);
        assert_eq!(over(&[Passed, Inconclusive]), Inconclusive);
        assert_eq!(over(&[Inconclusive, Failed, Passed]), Failed);
    }
}
