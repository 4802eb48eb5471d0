//! From an attempt to a result.

use crate::case::Case;
use crate::suite::Target;
use crate::trial::Trials;
use bakeoff_check::judge;
use bakeoff_core::{Attempt, CheckResult, ErrorKind, Status, TrialError, TrialKey, TrialResult};

impl Trials {
    pub(crate) async fn judge(
        &self,
        target: &Target,
        case: &Case,
        key: TrialKey,
        mut attempt: Attempt,
    ) -> TrialResult {
        let applicable = || self.suite.checks.iter().filter(|check| check.applies_to(&target.name));
        let checks: Result<Vec<CheckResult>, String> = applicable()
            .map(|spec| match spec.for_case(&case.fields) {
                Ok(check) => Ok(check.run(&attempt)),
                Err(reason) => Err(format!("check `{}`: {reason}", spec.id)),
            })
            .collect();
        if attempt.error.is_none()
            && let Err(message) = &checks
        {
            attempt.error =
                Some(TrialError { kind: ErrorKind::Template, message: message.clone() });
        }
        if attempt.error.is_some() {
            return TrialResult {
                key,
                status: Status::Error,
                score: None,
                checks: Vec::new(),
                attempt,
            };
        }
        let checks = checks.unwrap_or_default();
        let mut judgement = judge(&checks);
        // A program that nothing checks is judged by its exit code.
        if applicable().next().is_none() && attempt.exit_code != Some(0) {
            judgement.status = Status::Failed;
            judgement.score = 0.0;
        }
        TrialResult { key, status: judgement.status, score: Some(judgement.score), checks, attempt }
    }
}
