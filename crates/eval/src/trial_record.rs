//! A trial in FastSkill's format with additional fields: an entry of `aggregated.json`, and `result.json`.

use bakeoff_core::{Attempt, CheckResult, NanoDollars, Status, Timing, TrialKey, TrialResult};
use serde::Serialize;

/// One trial.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TrialRecord {
    pub(crate) trial_id: u32,
    pub(crate) status: Status,
    command_count: Option<usize>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    check_results: Vec<CheckRecord>,
    error_message: Option<String>,
    score: Option<f64>,
    cost_nanodollars: Option<NanoDollars>,
    /// Values that depend on the clock.
    stats: Timing,
}

#[derive(Debug, Clone, Serialize)]
struct CheckRecord {
    check_name: String,
    passed: bool,
    score: f64,
    message: Option<String>,
    required: bool,
    weight: f64,
}

/// Contents of `result.json`.
#[derive(Debug, Serialize)]
pub(crate) struct ResultFile<'a> {
    #[serde(flatten)]
    record: TrialRecord,
    key: &'a TrialKey,
    checks: &'a [CheckResult],
    attempt: &'a Attempt,
}

impl ResultFile<'_> {
    pub(crate) fn new(result: &TrialResult) -> ResultFile<'_> {
        ResultFile {
            record: TrialRecord::new(result),
            key: &result.key,
            checks: &result.checks,
            attempt: &result.attempt,
        }
    }
}

impl TrialRecord {
    pub(crate) fn new(result: &TrialResult) -> TrialRecord {
        let attempt = &result.attempt;
        let is_agent = attempt.transcript.is_some() || !attempt.tool_uses.is_empty();
        let check = |check: &CheckResult| CheckRecord {
            check_name: check.check.clone(),
            passed: check.passed,
            score: check.score,
            message: (!check.message.is_empty()).then(|| check.message.clone()),
            required: check.required,
            weight: check.weight,
        };
        TrialRecord {
            trial_id: result.key.trial,
            status: result.status,
            command_count: is_agent.then(|| bakeoff_check::command_count(attempt)),
            input_tokens: attempt.usage.map(|usage| usage.prompt()),
            output_tokens: attempt.usage.map(|usage| usage.output),
            check_results: result.checks.iter().map(check).collect(),
            error_message: attempt.error.as_ref().map(|error| error.message.clone()),
            score: result.score,
            cost_nanodollars: attempt.cost,
            stats: attempt.timing,
        }
    }
}
