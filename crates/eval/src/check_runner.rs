//! Execution of the checks of an attempt.

use crate::attempt::sample;
use crate::code_check::{CodeJudge, PythonWorkers};
use crate::context::TrialContext;
use crate::model_judge::{JudgeCalls, ModelJudge};
use bakeoff_check::{
    AnyCheck, Check, CheckFinding, CheckKind, Inconclusive, combine_results, require_whole_output,
};
use bakeoff_core::{
    Attempt, CheckResult, ErrorKind, Redactor, RunId, Status, TrialError, TrialKey, TrialResult,
};
use bakeoff_llm::{CallContext, Client, Retry};
use bakeoff_pace::RunTag;
use bakeoff_suite::{Case, CheckSpec, Suite, Target};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Callback before a judge's request is retried.
pub type OnRetry<'a> = &'a (dyn Fn(&TrialKey, &Retry<'_>) + Send + Sync);

/// Applies the checks of a suite to attempts. Models and programs are used only by checks that need
/// them.
#[non_exhaustive]
pub struct CheckRunner<'a> {
    /// The suite with the checks.
    pub suite: &'a Suite,
    /// Client for judge models.
    pub client: &'a Client,
    /// Tag of the run in shared pools.
    pub run: RunTag,
    /// Id of the run, which programs of checks carry; absent outside of a run.
    pub run_id: Option<&'a RunId>,
    /// Workers for `python` checks.
    pub python: &'a PythonWorkers,
    /// Removes secrets from messages.
    pub redactor: &'a Redactor,
    /// Cancels running checks.
    pub cancel: CancellationToken,
    /// Stops retries; running requests finish.
    pub stop: CancellationToken,
    /// Called before every retry.
    pub on_retry: Option<OnRetry<'a>>,
}

impl std::fmt::Debug for CheckRunner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckRunner").field("run", &self.run).finish_non_exhaustive()
    }
}

/// An attempt to be checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgeInput<'a> {
    pub(crate) key: &'a TrialKey,
    pub(crate) case: &'a Case,
    pub(crate) attempt: &'a Attempt,
    /// Id of the check.
    pub(crate) check: &'a str,
    /// Context of the calls of all judges.
    pub(crate) context: &'a CallContext<'a>,
}

/// The result of a checked trial.
#[derive(Debug)]
pub(crate) struct CheckedTrial {
    pub(crate) result: TrialResult,
    /// Prompts and replies of judges, for the trace.
    pub(crate) judging: Vec<Value>,
}

/// Checks the attempt of a trial.
pub(crate) async fn judge_attempt(
    context: &TrialContext,
    target: &Target,
    case: &Case,
    key: TrialKey,
    attempt: Attempt,
) -> CheckedTrial {
    let on_retry = |key: &TrialKey, retry: &Retry<'_>| context.emit_retry(key, retry);
    let runner = CheckRunner {
        suite: &context.suite,
        client: &context.client,
        run: context.run,
        run_id: Some(&context.folder.id),
        python: &context.python,
        redactor: &context.redactor,
        cancel: context.abort.clone(),
        stop: context.stop.clone(),
        on_retry: Some(&on_retry),
    };
    runner.check_attempt(target, case, key, attempt).await
}

impl<'a> CheckRunner<'a> {
    /// Creates a runner outside of a run: without run id, cancellation and callback.
    pub fn new(
        suite: &'a Suite,
        client: &'a Client,
        python: &'a PythonWorkers,
        redactor: &'a Redactor,
    ) -> CheckRunner<'a> {
        CheckRunner {
            suite,
            client,
            run: RunTag::default(),
            run_id: None,
            python,
            redactor,
            cancel: CancellationToken::new(),
            stop: CancellationToken::new(),
            on_retry: None,
        }
    }

    /// Checks one attempt. A check without a result makes the trial an error, never a failure.
    pub fn run_checks<'j>(
        &'j self,
        target: &'j Target,
        case: &'j Case,
        key: TrialKey,
        attempt: Attempt,
    ) -> BoxFuture<'j, TrialResult> {
        Box::pin(async move { self.check_attempt(target, case, key, attempt).await.result })
    }

    async fn check_attempt(
        &self,
        target: &Target,
        case: &Case,
        key: TrialKey,
        mut attempt: Attempt,
    ) -> CheckedTrial {
        let mut calls = JudgeCalls::default();
        let error = attempt.error.take();
        let checks = self.check(target, case, &key, &attempt, error, &mut calls).await;
        attempt.judge_usage = calls.usage;
        attempt.judge_cost = calls.cost();
        let tags = case.tags.clone();
        let result = match checks {
            Ok(checks) => {
                let mut combined = combine_results(&checks);
                // Without checks, a program passes if it exits with 0.
                if checks.is_empty() && attempt.exit_code != Some(0) {
                    combined.status = Status::Failed;
                    combined.score = 0.0;
                }
                let score = Some(combined.score);
                TrialResult { key, tags, status: combined.status, score, checks, attempt }
            }
            Err(error) => {
                attempt.error = Some(error);
                let (status, checks) = (Status::Error, Vec::new());
                TrialResult { key, tags, status, score: None, checks, attempt }
            }
        };
        CheckedTrial { result, judging: calls.exchanges }
    }

    /// Returns the results of all checks, or an error: that of the attempt, or of the first check without a
    /// result.
    async fn check(
        &self,
        target: &Target,
        case: &Case,
        key: &TrialKey,
        attempt: &Attempt,
        error: Option<TrialError>,
        calls: &mut JudgeCalls,
    ) -> Result<Vec<CheckResult>, TrialError> {
        let own = self.suite.case_checks(case).map_err(|error| check_error(error.to_string()))?;
        let applies = |check: &&CheckSpec| {
            check.applies_to(target.base()) && check.applies_to_tags(&case.tags)
        };
        let specs: Vec<&CheckSpec> = self.suite.checks.iter().chain(&own).filter(applies).collect();
        if let Some(error) = error.filter(|error| !is_checked(error, attempt, &specs)) {
            return Err(error);
        }
        let on_retry = |retry: &Retry<'_>| {
            if let Some(on_retry) = self.on_retry {
                on_retry(key, retry);
            }
        };
        // A sample of its own: a target may send the same request as a judge.
        let sample = format!("{}\0judges", sample(target, key));
        let context = CallContext::default()
            .run(self.run)
            .sample(&sample)
            .trial(key.trial)
            .cancel(self.cancel.clone())
            .stop(self.stop.clone())
            .on_retry(&on_retry);
        let mut results = Vec::new();
        for spec in specs {
            let check = spec
                .for_case(&case.fields)
                .map_err(|reason| check_error(format!("check `{}`: {reason}", spec.id)))?;
            let input = JudgeInput { key, case, attempt, check: &spec.id, context: &context };
            let result =
                self.run_check(&check, input, calls).await.map_err(|error| TrialError {
                    message: self.redactor.scrub(format!("check `{}`: {}", spec.id, error.message)),
                    ..error
                })?;
            results.push(result);
        }
        Ok(results)
    }

    async fn run_check(
        &self,
        check: &Check,
        input: JudgeInput<'_>,
        calls: &mut JudgeCalls,
    ) -> Result<CheckResult, TrialError> {
        let unable = |reason: Inconclusive| check_error(reason.to_string());
        // Models and programs do not judge a truncated output.
        if !matches!(check.kind, CheckKind::Local(_) | CheckKind::Any(_)) {
            require_whole_output(input.attempt).map_err(unable)?;
        }
        let finding = match &check.kind {
            CheckKind::Any(group) => return self.run_any(check, group, input, calls).await,
            CheckKind::Local(_) => return check.run(input.attempt).map_err(unable),
            CheckKind::Rubric(rubric) => self.models().judge_rubric(rubric, input, calls).await?,
            CheckKind::Pairwise(pairwise) => {
                self.models().judge_pairwise(pairwise, input, calls).await?
            }
            CheckKind::Program(program) => {
                self.code().run_program(program, check.min_score, input).await?
            }
            CheckKind::Python(python) => {
                self.code().run_python(python, check.min_score, input).await?
            }
        };
        // The finding may repeat a secret from the output.
        let message = self.redactor.scrub(finding.message);
        Ok(check.conclude(CheckFinding { message, ..finding }))
    }

    /// Runs the checks of a group until one decides it. A check without a result matters only if no other
    /// passes.
    async fn run_any(
        &self,
        check: &Check,
        group: &AnyCheck,
        input: JudgeInput<'_>,
        calls: &mut JudgeCalls,
    ) -> Result<CheckResult, TrialError> {
        let (mut results, mut error) = (Vec::new(), None);
        for member in &group.members {
            // Boxed, because a group may contain groups.
            match Box::pin(self.run_check(member, input, calls)).await {
                Ok(result) => results.push(result),
                Err(found) if found.kind != ErrorKind::Check => return Err(found),
                Err(found) => error = error.or(Some(found)),
            }
            if results.last().is_some_and(AnyCheck::is_decided_by) {
                break;
            }
        }
        let finding = AnyCheck::combine(&results);
        match error {
            Some(error) if !finding.holds => Err(error),
            _ => Ok(check.conclude(finding)),
        }
    }

    fn models(&self) -> ModelJudge<'_> {
        ModelJudge { suite: self.suite, client: self.client, redactor: self.redactor }
    }

    fn code(&self) -> CodeJudge<'_> {
        CodeJudge {
            suite: self.suite,
            run_id: self.run_id,
            python: self.python,
            cancel: &self.cancel,
        }
    }
}

/// Returns whether a check takes the place of an error: the error is an exit code other than 0, and a check
/// tests it, or there are no checks, so that the exit code decides.
fn is_checked(error: &TrialError, attempt: &Attempt, specs: &[&CheckSpec]) -> bool {
    let is_exit_code =
        error.kind == ErrorKind::Process && attempt.exit_code.is_some_and(|code| code != 0);
    is_exit_code && (specs.is_empty() || specs.iter().any(|spec| spec.examines_exit_code()))
}

/// Returns the error of a check without a result.
pub(crate) fn check_error(message: String) -> TrialError {
    TrialError { kind: ErrorKind::Check, message }
}
