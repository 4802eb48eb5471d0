//! Checks judged by a model: the calls.

use crate::attempt::describe_failure;
use crate::judge::{JudgeInput, check_error};
use bakeoff_check::{Finding, INSTRUCTIONS, Order, Pairwise, Rubric, ask_again};
use bakeoff_core::{ErrorKind, Message, NanoDollars, Request, TrialError, Usage};
use bakeoff_llm::{Client, Model};
use bakeoff_suite::{CacheScope, Suite};

/// Usage and cost of the judges of a trial.
#[derive(Debug, Default)]
pub(crate) struct JudgeSpending {
    pub(crate) usage: Option<Usage>,
    known: NanoDollars,
    is_unpriced: bool,
}

impl JudgeSpending {
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
}

impl ModelJudge<'_> {
    pub(crate) async fn judge_rubric(
        &self,
        rubric: &Rubric,
        input: JudgeInput<'_>,
        spent: &mut JudgeSpending,
    ) -> Result<Finding, TrialError> {
        let prompt = rubric.prompt(&input.attempt.output);
        self.verdict(&rubric.model, prompt, input, spent, |reply| rubric.read(reply)).await
    }

    pub(crate) async fn judge_pairwise(
        &self,
        pairwise: &Pairwise,
        input: JudgeInput<'_>,
        spent: &mut JudgeSpending,
    ) -> Result<Finding, TrialError> {
        let mut preferences = Vec::with_capacity(2);
        for order in [Order::AnswerFirst, Order::ReferenceFirst] {
            let prompt = pairwise.prompt(&input.attempt.output, order);
            let read = |reply: &str| Pairwise::read(reply, order);
            let model = &pairwise.model;
            preferences.push(self.verdict(model, prompt, input, spent, read).await?);
        }
        match preferences[..] {
            [one, other] => Ok(pairwise.conclude(one, other)),
            _ => Err(check_error("the judge was not called twice".to_owned())),
        }
    }

    /// Calls a judge, and re-asks it once when its reply is not a verdict.
    async fn verdict<T>(
        &self,
        name: &str,
        prompt: String,
        input: JudgeInput<'_>,
        spent: &mut JudgeSpending,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, TrialError> {
        let model = self.suite.judges.get(name);
        let model = model.ok_or_else(|| check_error(format!("there is no model `{name}`")))?;
        let mut messages = vec![Message::system(INSTRUCTIONS), Message::user(prompt)];
        let reply = self.reply(model, &messages, input, spent).await?;
        let reason = match read(&reply) {
            Ok(verdict) => return Ok(verdict),
            Err(reason) => reason,
        };
        messages.push(Message::assistant(reply));
        messages.push(Message::user(ask_again(&reason)));
        let reply = self.reply(model, &messages, input, spent).await?;
        read(&reply).map_err(|reason| {
            let shown: String = reply.chars().take(80).collect();
            check_error(format!("judge reply unparseable after re-asking: {reason}: {shown:?}"))
        })
    }

    async fn reply(
        &self,
        model: &Model,
        messages: &[Message],
        input: JudgeInput<'_>,
        spent: &mut JudgeSpending,
    ) -> Result<String, TrialError> {
        let request = Request { messages: messages.to_vec(), ..Request::default() };
        match self.client.call(model, request, input.context).await {
            Ok(call) => {
                let usage = call.response.usage;
                // A hit in this run's own cache was paid for by this run.
                let cost = match self.suite.settings.cache {
                    CacheScope::Run => model.cost(&usage),
                    CacheScope::Shared | CacheScope::None => call.cost,
                };
                spent.add(usage, cost);
                Ok(call.response.text())
            }
            Err(error) => Err(TrialError {
                kind: match error.failure.kind {
                    ErrorKind::Cancelled => ErrorKind::Cancelled,
                    _ => ErrorKind::Check,
                },
                message: format!("the judge call failed: {}", describe_failure(&error.failure)),
            }),
        }
    }
}
