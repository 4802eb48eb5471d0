//! Checks judged by a model: the calls.

use crate::attempt::describe_failure;
use crate::check_runner::{JudgeInput, check_error};
use bakeoff_check::judge::{Judge, JudgeCompletion, JudgeError};
use bakeoff_check::{CheckFinding, Pairwise, Rubric};
use bakeoff_core::{
    ErrorKind, FinishReason, Message, NanoDollars, Redactor, Request, TrialError, Usage,
};
use bakeoff_llm::{CallContext, Client, Model};
use bakeoff_suite::{CacheScope, Suite};
use serde_json::{Value, json};

/// Calls of the judges of a trial.
#[derive(Debug, Default)]
pub(crate) struct JudgeCalls {
    pub(crate) usage: Option<Usage>,
    /// Prompt and reply of each call, without secrets.
    pub(crate) exchanges: Vec<Value>,
    known: NanoDollars,
    is_unpriced: bool,
}

impl JudgeCalls {
    fn add(&mut self, usage: Usage, cost: Option<NanoDollars>) {
        *self.usage.get_or_insert_default() += usage;
        match cost {
            Some(cost) => self.known += cost,
            None => self.is_unpriced = true,
        }
    }

    /// Returns the cost; absent without a call, or when a price is not known.
    pub(crate) fn cost(&self) -> Option<NanoDollars> {
        (self.usage.is_some() && !self.is_unpriced).then_some(self.known)
    }
}

/// Calls judge models.
pub(crate) struct ModelJudge<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) client: &'a Client,
    pub(crate) redactor: &'a Redactor,
}

impl ModelJudge<'_> {
    pub(crate) async fn judge_rubric(
        &self,
        rubric: &Rubric,
        input: JudgeInput<'_>,
        calls: &mut JudgeCalls,
    ) -> Result<CheckFinding, TrialError> {
        let mut judge = self.judge_call(&rubric.model, input, calls)?;
        rubric.judge(&input.attempt.output, &mut judge).await.map_err(judge_error)
    }

    pub(crate) async fn judge_pairwise(
        &self,
        pairwise: &Pairwise,
        input: JudgeInput<'_>,
        calls: &mut JudgeCalls,
    ) -> Result<CheckFinding, TrialError> {
        let mut judge = self.judge_call(&pairwise.model, input, calls)?;
        pairwise.judge(&input.attempt.output, &mut judge).await.map_err(judge_error)
    }

    fn judge_call<'m>(
        &'m self,
        name: &'m str,
        input: JudgeInput<'m>,
        calls: &'m mut JudgeCalls,
    ) -> Result<JudgeCall<'m>, TrialError> {
        let model = self.suite.judges.get(name);
        let model = model.ok_or_else(|| check_error(format!("there is no model `{name}`")))?;
        let cache = self.suite.settings.cache;
        Ok(JudgeCall {
            client: self.client,
            name,
            model,
            check: input.check,
            context: input.context,
            cache,
            redactor: self.redactor,
            calls,
        })
    }
}

/// Calls of one judge model for the checks of one attempt.
struct JudgeCall<'m> {
    client: &'m Client,
    /// Name of the judge in the suite.
    name: &'m str,
    model: &'m Model,
    /// Id of the check.
    check: &'m str,
    context: &'m CallContext<'m>,
    cache: CacheScope,
    redactor: &'m Redactor,
    calls: &'m mut JudgeCalls,
}

impl JudgeCall<'_> {
    /// Records a prompt and its reply.
    fn record(&mut self, messages: &[Message], reply: &str) {
        let exchange = json!({
            "check": self.check,
            "model": self.name,
            "messages": messages,
            "reply": reply,
        });
        let text = self.redactor.scrub(exchange.to_string());
        let exchange = serde_json::from_str(&text).unwrap_or_else(|_| json!({ "text": text }));
        self.calls.exchanges.push(exchange);
    }
}

impl Judge for JudgeCall<'_> {
    type Error = TrialError;

    async fn complete(&mut self, messages: &[Message]) -> Result<JudgeCompletion, TrialError> {
        let request = Request { messages: messages.to_vec(), ..Request::default() };
        match self.client.call(self.model, request, self.context).await {
            Ok(call) => {
                let usage = call.response.usage;
                // A hit in this run's own cache was paid for by this run.
                let cost = match self.cache {
                    CacheScope::Run => self.model.cost(&usage),
                    CacheScope::Shared | CacheScope::None => call.cost,
                };
                self.calls.add(usage, cost);
                let text = call.response.text();
                self.record(messages, &text);
                Ok(JudgeCompletion {
                    text,
                    is_truncated: call.response.finish == FinishReason::Length,
                })
            }
            Err(error) => Err(TrialError {
                kind: match error.failure.kind {
                    kind @ (ErrorKind::Cancelled | ErrorKind::Budget) => kind,
                    _ => ErrorKind::Check,
                },
                message: format!("judge call failed: {}", describe_failure(&error.failure)),
            }),
        }
    }
}

fn judge_error(error: JudgeError<TrialError>) -> TrialError {
    match error {
        JudgeError::Call(error) => error,
        unparseable => check_error(unparseable.to_string()),
    }
}
