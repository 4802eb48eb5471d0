//! One attempt of one target at one case: its name, what it produced and how it was judged.

use crate::{CaseId, FinishReason, NanoDollars, TargetName, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of a trial. Nothing in it belongs to one process, so results merge by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrialKey {
    /// Name of the target.
    pub target: TargetName,
    /// Id of the case.
    pub case: CaseId,
    /// Which attempt, from 1.
    pub trial: u32,
}

/// How a trial or a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All required checks passed.
    Passed,
    /// A required check failed.
    Failed,
    /// There is nothing to judge: the provider, the network or the machine got in the way.
    Error,
    /// It was not needed, or there was no budget for it.
    Skipped,
}

/// What can be said of a case, a target or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At or above its threshold, however the missing trials would have ended.
    Passed,
    /// Below its threshold, however the missing trials would have ended.
    Failed,
    /// It depends on trials that are missing.
    Inconclusive,
}

impl Verdict {
    /// The verdict over several: one failure fails, else one doubt is a doubt.
    #[must_use]
    pub fn worst(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Failed, _) | (_, Verdict::Failed) => Verdict::Failed,
            (Verdict::Inconclusive, _) | (_, Verdict::Inconclusive) => Verdict::Inconclusive,
            (Verdict::Passed, Verdict::Passed) => Verdict::Passed,
        }
    }
}

/// What a target produced for one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The answer: a model's text, a program's standard output.
    pub output: String,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// A program's standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Bytes of a program's outputs that were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
    /// Bytes of the answer that `output` has no room for; where it is not known how many, of what
    /// they came in.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_output_bytes: u64,
    /// Bytes that `transcript` has no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_transcript_bytes: u64,
    /// Uses of tools that `tool_uses` has no room for, or that nobody could read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_tool_uses: u64,
    /// Uses of tools whose arguments were not kept; they are null there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_tool_arguments: u64,
    /// A program's exit code; absent when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Tools that were used, in order: a model's calls, an agent's commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_uses: Vec<ToolUse>,
    /// How often an agent's model spoke, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// All that an agent printed, where the answer is only a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// What a program left in its workspace, by path; absent for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, LeftFile>>,
    /// Files in the workspace that `files` has no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_files: u64,
    /// Where the workspace was kept, within the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Tokens, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Money, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
    /// The part of `cost` that was not paid because a cache had the answer.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub saved: NanoDollars,
    /// Tokens of the models that judged it, where there are any; not part of `usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_usage: Option<Usage>,
    /// Money for the models that judged it, where their prices are known; not part of `cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_cost: Option<NanoDollars>,
    /// The answer came from the response cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// How long it took.
    pub timing: Timing,
    /// Why there is nothing to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
}

/// A tool that was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Its name.
    pub name: String,
    /// What it was given.
    #[serde(default)]
    pub arguments: serde_json::Value,
}

/// A file in a workspace after the program has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftFile {
    /// Its size in bytes.
    pub bytes: u64,
    /// What is in it; absent when it is no text, is too large, or was there before and has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How long a trial took and how long it waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// When it started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The work itself, without waiting for permits and retries; what a cache answered took what it
    /// took when it was made.
    pub latency_ms: u64,
    /// From start to end.
    pub elapsed_ms: u64,
    /// Calls that were made again.
    #[serde(default)]
    pub retries: u32,
}

/// Why a trial has nothing to judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TrialError {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// What happened, for people; without secrets.
    pub message: String,
}

/// Kinds of trouble that keep a trial from being judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The provider throttled it until its deadline.
    RateLimit,
    /// The account has nothing left; waiting does not help.
    Quota,
    /// Server errors, dropped connections, an unreachable host.
    Transient,
    /// The provider refuses the request as it is.
    InvalidRequest,
    /// The key is missing, wrong or not allowed to.
    Auth,
    /// The conversation is longer than the model can read.
    ContextOverflow,
    /// The provider refuses the content.
    ContentFilter,
    /// Somebody stopped it.
    Cancelled,
    /// It took longer than it may.
    Timeout,
    /// The answer is not what the provider's format promises.
    MalformedResponse,
    /// The prompt could not be made from the case.
    Template,
    /// The program could not be started or watched.
    Process,
    /// A check could not say: it could not be made from the case, or its judge or program failed.
    Check,
    /// The trial's task broke.
    Internal,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check's id, not its kind.
    pub check: String,
    /// Its finding, with negation applied.
    pub passed: bool,
    /// Whether the trial depends on it.
    pub required: bool,
    /// Its share of the score.
    pub weight: f64,
    /// Why it failed; empty when it passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One finished trial: all that aggregation ever reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Which trial.
    pub key: TrialKey,
    /// How it ended.
    pub status: Status,
    /// Weighted share of the checks that passed, from 0 to 1; absent unless judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What each check found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// What was judged.
    pub attempt: Attempt,
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, Failed, Inconclusive, Passed};

    #[test]
    fn one_failure_fails_and_one_doubt_is_a_doubt() {
        let over = |verdicts: &[Verdict]| verdicts.iter().copied().fold(Passed, Verdict::worst);
        assert_eq!(over(&[]), Passed);
        assert_eq!(over(&[Passed, Passed]), Passed);
        assert_eq!(over(&[Passed, Inconclusive]), Inconclusive);
        assert_eq!(over(&[Inconclusive, Failed, Passed]), Failed);
    }
}
