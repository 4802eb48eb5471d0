//! From an attempt to a result.

use crate::attempt::sample;
use crate::code::Python;
use crate::judged::Spent;
use crate::trial::Trials;
use bakeoff_check::{CannotSay, Check, Finding, Kind, judge, whole_output};
use bakeoff_core::{
    Attempt, CheckResult, ErrorKind, Redactor, RunId, Status, TrialError, TrialKey, TrialResult,
};
use bakeoff_llm::{CallContext, Client, Ordinals, Retry};
use bakeoff_pace::RunTag;
use bakeoff_suite::Case;
use bakeoff_suite::{CheckSpec, Suite, Target};
use tokio_util::sync::CancellationToken;

/// Told before a judge's call is made again.
pub type OnRetry<'a> = &'a (dyn Fn(&TrialKey, &Retry<'_>) + Send + Sync);

/// Judges attempts by a suite's checks. Models and programs are asked only by checks that need
/// them.
pub struct Judge<'a> {
    /// Whose checks.
    pub suite: &'a Suite,
    /// Calls the models that judge.
    pub client: &'a Client,
    /// On behalf of which run.
    pub run: RunTag,
    /// Its id, which programs that judge carry; absent when there is no run.
    pub run_id: Option<&'a RunId>,
    /// Workers for `python` checks.
    pub python: &'a Python,
    /// What must not show in messages.
    pub redactor: &'a Redactor,
    /// Ends what is under way.
    pub cancel: CancellationToken,
    /// Lets what is under way finish, and tries nothing again.
    pub stop: CancellationToken,
    /// Told before every retry.
    pub on_retry: Option<OnRetry<'a>>,
}

impl std::fmt::Debug for Judge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("run", &self.run).finish_non_exhaustive()
    }
}

/// One attempt on the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged<'a> {
    pub(crate) key: &'a TrialKey,
    pub(crate) case: &'a Case,
    pub(crate) attempt: &'a Attempt,
    /// For the calls of all its judges.
    pub(crate) context: &'a CallContext<'a>,
}

impl Trials {
    pub(crate) async fn judge(
        &self,
        target: &Target,
        case: &Case,
        key: TrialKey,
        attempt: Attempt,
    ) -> TrialResult {
        let on_retry = |key: &TrialKey, retry: &Retry<'_>| self.tell_retry(key, retry);
        let judge = Judge {
            suite: &self.suite,
            client: &self.client,
            run: self.run,
            run_id: Some(&self.folder.id),
            python: &self.python,
            redactor: &self.redactor,
            cancel: self.abort.clone(),
            stop: self.stop.clone(),
            on_retry: Some(&on_retry),
        };
        judge.judge(target, case, key, attempt).await
    }
}

impl Judge<'_> {
    /// Judges one attempt. What a check cannot say makes the trial an error, never a failure.
    pub async fn judge(
        &self,
        target: &Target,
        case: &Case,
        key: TrialKey,
        mut attempt: Attempt,
    ) -> TrialResult {
        let mut spent = Spent::default();
        let checks = match attempt.error.take() {
            Some(error) => Err(error),
            None => self.check(target, case, &key, &attempt, &mut spent).await,
        };
        attempt.judge_usage = spent.usage;
        attempt.judge_cost = spent.cost();
        match checks {
            Ok(checks) => {
                let mut judgement = judge(&checks);
                // A program that nothing checks is judged by its exit code.
                if checks.is_empty() && attempt.exit_code != Some(0) {
                    judgement.status = Status::Failed;
                    judgement.score = 0.0;
                }
                let score = Some(judgement.score);
                TrialResult { key, status: judgement.status, score, checks, attempt }
            }
            Err(error) => {
                attempt.error = Some(error);
                TrialResult { key, status: Status::Error, score: None, checks: Vec::new(), attempt }
            }
        }
    }

    /// What every check found; the error of the first that cannot say.
    async fn check(
        &self,
        target: &Target,
        case: &Case,
        key: &TrialKey,
        attempt: &Attempt,
        spent: &mut Spent,
    ) -> Result<Vec<CheckResult>, TrialError> {
        let own = self.suite.own_checks(case).map_err(cannot_say)?;
        let applies = |check: &&CheckSpec| {
            check.applies_to(target.base()) && check.applies_to_tags(&case.tags)
        };
        let on_retry = |retry: &Retry<'_>| {
            if let Some(told) = self.on_retry {
                told(key, retry);
            }
        };
        // Not the target's own sample: a target may ask the same as a judge.
        let sample = format!("{}\0judges", sample(target, key));
        let context = CallContext {
            run: self.run,
            sample: &sample,
            trial: key.trial,
            ordinals: Ordinals::default(),
            cancel: self.cancel.clone(),
            stop: self.stop.clone(),
            on_retry: Some(&on_retry),
            on_delta: None,
        };
        let judged = Judged { key, case, attempt, context: &context };
        let mut results = Vec::new();
        for spec in self.suite.checks.iter().chain(&own).filter(applies) {
            let check = spec
                .for_case(&case.fields)
                .map_err(|reason| cannot_say(format!("check `{}`: {reason}", spec.id)))?;
            let result = self.ask(&check, judged, spent).await.map_err(|error| TrialError {
                message: self.redactor.scrub(format!("check `{}`: {}", spec.id, error.message)),
                ..error
            })?;
            results.push(result);
        }
        Ok(results)
    }

    async fn ask(
        &self,
        check: &Check,
        judged: Judged<'_>,
        spent: &mut Spent,
    ) -> Result<CheckResult, TrialError> {
        let unable = |reason: CannotSay| cannot_say(reason.to_string());
        // Nobody else is asked about a part of an answer.
        if !matches!(check.kind, Kind::Plain(_)) {
            whole_output(judged.attempt).map_err(unable)?;
        }
        let finding = match &check.kind {
            Kind::Plain(_) => return check.run(judged.attempt).map_err(unable),
            Kind::Rubric(rubric) => self.ask_rubric(rubric, judged, spent).await?,
            Kind::Pairwise(pairwise) => self.ask_pairwise(pairwise, judged, spent).await?,
            Kind::Program(program) => self.ask_program(program, judged).await?,
            Kind::Python(python) => self.ask_python(python, judged).await?,
        };
        // What others say may repeat a key that they were shown.
        let words = self.redactor.scrub(finding.words);
        Ok(check.conclude(Finding { words, ..finding }))
    }
}

/// A check that cannot say whether the answer is right.
pub(crate) fn cannot_say(message: String) -> TrialError {
    TrialError { kind: ErrorKind::Check, message }
}
