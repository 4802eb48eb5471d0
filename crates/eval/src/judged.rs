//! Checks that a model judges: the calls.

use crate::attempt::describe;
use crate::judge::{Judge, Judged, cannot_say};
use crate::suite::CacheScope;
use bakeoff_check::judge::{JudgeCompletion, JudgeError};
use bakeoff_check::{CheckFinding, Pairwise, Rubric};
use bakeoff_core::{ErrorKind, FinishReason, Message, NanoDollars, Request, TrialError, Usage};
use bakeoff_llm::{CallContext, Client, Model};

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
    ) -> Result<CheckFinding, TrialError> {
        let mut judge = self.judge_model(&rubric.model, judged, spent)?;
        rubric.judge(&judged.attempt.output, &mut judge).await.map_err(judge_error)
    }

    pub(crate) async fn ask_pairwise(
        &self,
        pairwise: &Pairwise,
        judged: Judged<'_>,
        spent: &mut Spent,
    ) -> Result<CheckFinding, TrialError> {
        let mut judge = self.judge_model(&pairwise.model, judged, spent)?;
        pairwise.judge(&judged.attempt.output, &mut judge).await.map_err(judge_error)
    }

    fn judge_model<'m>(
        &'m self,
        name: &str,
        judged: Judged<'m>,
        spent: &'m mut Spent,
    ) -> Result<JudgeModel<'m>, TrialError> {
        let model = self.suite.judges.get(name);
        let model = model.ok_or_else(|| cannot_say(format!("there is no model `{name}`")))?;
        let cache = self.suite.settings.cache;
        Ok(JudgeModel { client: self.client, model, context: judged.context, cache, spent })
    }
}

/// A judge's model for the checks of one attempt.
struct JudgeModel<'m> {
    client: &'m Client,
    model: &'m Model,
    context: &'m CallContext<'m>,
    cache: CacheScope,
    spent: &'m mut Spent,
}

impl bakeoff_check::judge::Judge for JudgeModel<'_> {
    type Error = TrialError;

    async fn complete(&mut self, messages: &[Message]) -> Result<JudgeCompletion, TrialError> {
        let request = Request { messages: messages.to_vec(), ..Request::default() };
        match self.client.call(self.model, request, self.context).await {
            Ok(call) => {
                let usage = call.response.usage;
                // What this run's own cache has was paid for by this run.
                let cost = match self.cache {
                    CacheScope::Run => self.model.cost(&usage),
                    CacheScope::Shared | CacheScope::None => call.cost,
                };
                self.spent.add(usage, cost);
                Ok(JudgeCompletion {
                    text: call.response.text(),
                    is_truncated: call.response.finish == FinishReason::Length,
                })
            }
            Err(error) => Err(TrialError {
                kind: match error.failure.kind {
                    ErrorKind::Cancelled => ErrorKind::Cancelled,
                    _ => ErrorKind::Check,
                },
                message: format!("judge call failed: {}", describe(&error.failure)),
            }),
        }
    }
}

fn judge_error(error: JudgeError<TrialError>) -> TrialError {
    match error {
        JudgeError::Call(error) => error,
        unparseable => cannot_say(unparseable.to_string()),
    }
}
