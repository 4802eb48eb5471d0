//! Checks that a model judges: the calls.

use crate::attempt::describe;
use crate::judge::{Judge, Judged, cannot_say};
use bakeoff_check::{Finding, INSTRUCTIONS, Order, Pairwise, Rubric, ask_again};
use bakeoff_core::{ErrorKind, Message, NanoDollars, Request, TrialError, Usage};
use bakeoff_llm::Model;
use bakeoff_suite::CacheScope;

/// What judges have consumed.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub(crate) usage: Option<Usage>,
    known: NanoDollars,
    is_unpriced: bool,
}

impl Spent {
    fn add(&mut self, usage: Usage, cost: Option<NanoDollars>) {
        *self.usage.get_or_insert_default() += usage;
        match cost {
            Some(cost) => self.known += cost,
            None => self.is_unpriced = true,
        }
    }

    /// Money; absent when nobody was asked, or when a price is not known.
    pub(crate) fn cost(&self) -> Option<NanoDollars> {
        (self.usage.is_some() && !self.is_unpriced).then_some(self.known)
    }
}

impl Judge<'_> {
    pub(crate) async fn ask_rubric(
        &self,
        rubric: &Rubric,
        judged: Judged<'_>,
        spent: &mut Spent,
    ) -> Result<Finding, TrialError> {
        let prompt = rubric.prompt(&judged.attempt.output);
        self.verdict(&rubric.model, prompt, judged, spent, |reply| rubric.read(reply)).await
    }

    pub(crate) async fn ask_pairwise(
        &self,
        pairwise: &Pairwise,
        judged: Judged<'_>,
        spent: &mut Spent,
    ) -> Result<Finding, TrialError> {
        let mut preferences = Vec::with_capacity(2);
        for order in [Order::AnswerFirst, Order::ReferenceFirst] {
            let prompt = pairwise.prompt(&judged.attempt.output, order);
            let read = |reply: &str| Pairwise::read(reply, order);
            let model = &pairwise.model;
            preferences.push(self.verdict(model, prompt, judged, spent, read).await?);
        }
        match preferences[..] {
            [one, other] => Ok(pairwise.conclude(one, other)),
            _ => Err(cannot_say("the judge was not asked twice".to_owned())),
        }
    }

    /// Asks a judge, and once more when its reply is no verdict.
    async fn verdict<T>(
        &self,
        name: &str,
        prompt: String,
        judged: Judged<'_>,
        spent: &mut Spent,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, TrialError> {
        let model = self.suite.judges.get(name);
        let model = model.ok_or_else(|| cannot_say(format!("there is no model `{name}`")))?;
        let mut messages = vec![Message::system(INSTRUCTIONS), Message::user(prompt)];
        let reply = self.reply(model, &messages, judged, spent).await?;
        let reason = match read(&reply) {
            Ok(verdict) => return Ok(verdict),
            Err(reason) => reason,
        };
        messages.push(Message::assistant(reply));
        messages.push(Message::user(ask_again(&reason)));
        let reply = self.reply(model, &messages, judged, spent).await?;
        read(&reply).map_err(|reason| {
            let shown: String = reply.chars().take(80).collect();
            cannot_say(format!("the judge gave no verdict, asked twice: {reason}: {shown:?}"))
        })
    }

    async fn reply(
        &self,
        model: &Model,
        messages: &[Message],
        judged: Judged<'_>,
        spent: &mut Spent,
    ) -> Result<String, TrialError> {
        let request = Request { messages: messages.to_vec(), ..Request::default() };
        match self.client.call(model, request, judged.context).await {
            Ok(call) => {
                let usage = call.response.usage;
                // What this run's own cache has was paid for by this run.
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
                message: format!("the judge did not answer: {}", describe(&error.failure)),
            }),
        }
    }
}
