//! Sending one request for some rows, and interpreting its reply.

use super::escalation::{FIRST_PATH, InvalidReply, PackRequest, RoundPlan, RowAnswer, RowResults};
use super::failures::FailureCause;
use super::scan;
use super::usage::RequestUsage;
use crate::reply::{AlignedReply, align};
use crate::row::Row;
use crate::task::{ReplyFormat, Task};
use crate::{id, prompt};
use bakeoff_core::{ErrorKind, FinishReason, NanoDollars, Request, Usage, estimate_tokens};
use bakeoff_llm::{Call, CallContext, CallError, Client, Model};
use bakeoff_pace::RunTag;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// Cache sample of all jobs. It is the same for all, so that equal requests share cached responses.
const SAMPLE: &str = "map";

/// Providers whose current models support structured output.
const STRUCTURED_PROVIDERS: [&str; 8] =
    ["anthropic", "azure", "cerebras", "gemini", "mistral", "openai", "openai-responses", "sim"];

/// Settings and state shared by all requests of a job.
#[derive(Debug)]
pub(super) struct RequestContext {
    pub(super) client: std::sync::Arc<Client>,
    pub(super) task: Task,
    pub(super) format: ReplyFormat,
    pub(super) seed: u64,
    /// Display names and models, in the order of use.
    pub(super) models: Vec<(String, Model)>,
    /// Number of rounds through all models.
    pub(super) rounds: usize,
    /// State of each model, in the same order.
    pub(super) model_states: Vec<ModelState>,
    pub(super) stop: CancellationToken,
}

/// What requests have shown about a model.
#[derive(Debug, Default)]
pub(super) struct ModelState {
    /// The model does not support structured output.
    lacks_structured_output: AtomicBool,
    /// Reason why the model accepts no more requests.
    unavailable: OnceLock<String>,
}

/// One model in one round.
pub(super) struct ModelRound<'a> {
    pub(super) name: &'a str,
    model: &'a Model,
    state: &'a ModelState,
    round: usize,
}

/// The likely cost of a request.
pub(super) struct RequestEstimate<'a> {
    /// Name of the model.
    pub(super) model: &'a str,
    pub(super) cost: NanoDollars,
}

/// Outcome of a request.
#[derive(Debug)]
pub(super) enum RequestOutcome {
    /// The model replied. Rows may still have no answer.
    Answered { results: RowResults, batch: Option<RowAnswer> },
    /// The request failed because of its rows.
    Failed(RowResults),
    /// The request failed, possibly for a reason other than its rows.
    Unclear(RowResults, FailureCause),
    /// The model accepts no more requests; holds the reason.
    ModelUnavailable(String),
    /// The request was cancelled.
    Cancelled,
}

impl RequestContext {
    /// Returns the models that accept no more requests, with the reasons.
    pub(super) fn unavailable_models(&self) -> Vec<(String, String)> {
        let models = self.models.iter().zip(&self.model_states);
        let unavailable = |((name, _), state): (&(String, Model), &ModelState)| {
            state.unavailable.get().map(|reason| (name.clone(), reason.clone()))
        };
        models.filter_map(unavailable).collect()
    }

    /// Returns the number of model rounds.
    pub(super) fn round_plan(&self) -> RoundPlan {
        RoundPlan { models: self.models.len(), rounds: self.rounds }
    }

    /// Returns the model round with this index.
    pub(super) fn model_round(&self, index: usize) -> Option<ModelRound<'_>> {
        let position = index.checked_rem(self.models.len())?;
        let (name, model) = self.models.get(position)?;
        let state = self.model_states.get(position)?;
        Some(ModelRound { name, model, state, round: index / self.models.len() })
    }

    /// Sends one request for some rows.
    pub(super) async fn send(
        &self,
        request: &PackRequest,
        rows: &[&Row],
    ) -> (RequestOutcome, RequestUsage) {
        let mut usage = RequestUsage::default();
        let Some(target) = self.model_round(request.model_round) else {
            return (RequestOutcome::Cancelled, usage);
        };
        if let Some(reason) = target.state.unavailable.get() {
            return (RequestOutcome::ModelUnavailable(reason.clone()), usage);
        }
        let ids = id::ids(self.seed, rows.iter().copied());
        let item = |(row, id): (&&Row, &String)| prompt::item_line(&self.task, row, id);
        let items: Vec<String> = rows.iter().zip(&ids).map(item).collect();
        let build = |is_structured| {
            let built = prompt::build_request(&self.task, self.format, is_structured, &items);
            match &request.reask {
                Some(InvalidReply { reply, problem }) => prompt::reask(&built, reply, problem),
                None => built,
            }
        };
        let is_first = request.path == FIRST_PATH;
        let is_structured = self.is_structured(&target);
        let mut reply = self.call(&target, build(is_structured), is_first, &mut usage).await;
        if is_structured && self.may_lack_structured_output(&reply) {
            reply = self.call(&target, build(false), is_first, &mut usage).await;
            if reply.is_ok() {
                target.state.lacks_structured_output.store(true, Ordering::Relaxed);
            }
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let outcome = self.failure_outcome(&target, &error, rows.len());
                if let RequestOutcome::ModelUnavailable(reason) = &outcome {
                    target.state.unavailable.get_or_init(|| reason.clone());
                }
                return (outcome, usage);
            }
        };
        let parsed = self.parse(&reply, &ids);
        let problem = reask_problem(&parsed, &reply, self.max_reask_tokens(rows.len()));
        let parsed = parsed.map_err(|problem| problem + &reply.excerpt());
        let invalid_reply = problem.map(|problem| InvalidReply { reply: reply.text, problem });
        (self.reply_outcome(target.name, parsed, rows.len(), invalid_reply), usage)
    }

    fn is_structured(&self, target: &ModelRound<'_>) -> bool {
        let is_known = STRUCTURED_PROVIDERS.contains(&target.model.provider());
        let is_lacking = target.state.lacks_structured_output.load(Ordering::Relaxed);
        self.task.structured.unwrap_or(is_known && !is_lacking)
    }

    /// Returns whether a request may have been rejected because it was structured: not every model of a
    /// provider supports structured output.
    fn may_lack_structured_output(&self, reply: &Result<ModelReply, CallError>) -> bool {
        let kind = reply.as_ref().err().map(|error| error.failure.kind);
        self.task.structured.is_none() && kind == Some(ErrorKind::InvalidRequest)
    }

    /// Returns the maximum length in tokens of a reply that is sent back in a re-ask.
    fn max_reask_tokens(&self, rows: usize) -> u64 {
        const MARGIN: u64 = 2000;
        let answers = self.task.output_tokens_per_item().saturating_mul(rows as u64);
        answers.saturating_mul(4).saturating_add(MARGIN)
    }

    /// Returns the likely cost of a request for some rows.
    pub(super) fn estimate_cost(
        &self,
        request: &PackRequest,
        rows: &[&Row],
    ) -> RequestEstimate<'_> {
        let Some(target) = self.model_round(request.model_round) else {
            return RequestEstimate { model: "", cost: NanoDollars(0) };
        };
        let items: u64 = rows.iter().map(|row| scan::item_tokens(&self.task, row)).sum();
        let answers = self.task.output_tokens_per_item().saturating_mul(rows.len() as u64);
        let reask = request.reask.as_ref();
        let repeated = reask.map_or(0, |invalid| estimate_tokens(&invalid.reply));
        let overhead = scan::overhead_tokens(&self.task, self.format).saturating_add(repeated);
        let input = overhead.saturating_add(items);
        let usage = Usage { input, output: answers, ..Usage::default() };
        let cost = target.model.cost(&usage).unwrap_or(NanoDollars(0));
        RequestEstimate { model: target.name, cost }
    }

    async fn call(
        &self,
        target: &ModelRound<'_>,
        request: Request,
        is_first: bool,
        usage: &mut RequestUsage,
    ) -> Result<ModelReply, CallError> {
        // Follow-up requests have their own run tag, so that the pool alternates between them and first
        // requests. Otherwise they would queue behind all new packs while finished packs wait for them.
        let run = RunTag(u64::from(!is_first));
        // A later round wants new responses, not those in the cache.
        let trial = u32::try_from(target.round).unwrap_or(u32::MAX);
        let stop = self.stop.clone();
        let context = CallContext::default().run(run).sample(SAMPLE).trial(trial).stop(stop);
        let call =
            self.client.call(target.model, request, &context).await.inspect_err(|error| {
                usage.requests += u64::from(error.failure.kind != ErrorKind::Cancelled);
                usage.lost += error.lost;
            })?;
        let Call { response, cost, cached, lost, .. } = call;
        usage.lost += lost;
        if cached {
            usage.cached += 1;
        } else {
            usage.requests += 1;
            usage.add_cost(cost);
            usage.tokens += response.usage;
        }
        Ok(ModelReply { text: response.text(), finish: response.finish })
    }

    fn parse(&self, reply: &ModelReply, ids: &[String]) -> Result<AlignedReply, String> {
        align(&reply.text, self.format, &self.task, ids).map_err(|problem| match reply.finish {
            FinishReason::Length => "it is cut off before the first whole answer".to_owned(),
            FinishReason::ContentFilter => "the provider stopped it for its content".to_owned(),
            _ if reply.text.trim().is_empty() => "it is empty".to_owned(),
            _ => problem,
        })
    }

    fn reply_outcome(
        &self,
        name: &str,
        parsed: Result<AlignedReply, String>,
        rows: usize,
        invalid_reply: Option<InvalidReply>,
    ) -> RequestOutcome {
        let (answers, batch) = match parsed {
            Ok(aligned) => {
                let answers = aligned.answers.into_iter();
                let answers = answers.map(|answer| match answer {
                    Ok(values) => to_raw(&values),
                    Err(error) => Err(error.to_string()),
                });
                (answers.collect(), aligned.batch)
            }
            Err(problem) => (vec![Err(format!("the reply cannot be read: {problem}")); rows], None),
        };
        let answers = answers.into_iter();
        let answers = answers.map(|answer| answer.map_err(|reason| self.attribute(name, &reason)));
        let results = RowResults { answers: answers.collect(), can_split: true, invalid_reply };
        RequestOutcome::Answered { results, batch: batch.and_then(|values| to_raw(&values).ok()) }
    }

    fn failure_outcome(
        &self,
        target: &ModelRound<'_>,
        error: &CallError,
        rows: usize,
    ) -> RequestOutcome {
        let failure = &error.failure;
        let reason = self.attribute(target.name, &error.to_string());
        let is_stopped = self.client.pool(target.model).is_ok_and(|pool| pool.stopped().is_some());
        let results = |can_split| RowResults::failed(&reason, rows, can_split);
        match failure.kind {
            ErrorKind::Cancelled => RequestOutcome::Cancelled,
            _ if is_stopped => RequestOutcome::ModelUnavailable(error.to_string()),
            // Unknown model or endpoint.
            ErrorKind::InvalidRequest if failure.status == Some(404) => {
                RequestOutcome::ModelUnavailable(error.to_string())
            }
            // Smaller requests would only be more requests.
            ErrorKind::RateLimit | ErrorKind::Transient => {
                RequestOutcome::Unclear(results(false), FailureCause::Provider)
            }
            // A parameter that the model does not support, or an endpoint that is no model provider.
            ErrorKind::InvalidRequest | ErrorKind::MalformedResponse => {
                RequestOutcome::Unclear(results(true), FailureCause::Settings)
            }
            // A single row may be the cause.
            _ => RequestOutcome::Failed(results(true)),
        }
    }

    /// Prefixes a reason with the model's name if there are several models.
    fn attribute(&self, name: &str, reason: &str) -> String {
        match self.models.len() {
            1 => reason.to_owned(),
            _ => format!("{name}: {reason}"),
        }
    }
}

/// Text of a response and the reason why it ended.
#[derive(Debug)]
struct ModelReply {
    text: String,
    finish: FinishReason,
}

impl ModelReply {
    /// Returns the beginning of the reply, in quotes, for error messages.
    fn excerpt(&self) -> String {
        const MAX_CHARS: usize = 80;
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!(" (\u{201c}{}…\u{201d})", &text[..end]),
            None if text.is_empty() => String::new(),
            None => format!(" (\u{201c}{text}\u{201d})"),
        }
    }
}

/// Returns the problem to re-ask about: the reply is unreadable, or it covers a single row and the
/// answer is invalid.
///
/// Returns `None` for replies that were cut off, which would be cut off again, for replies that are so
/// long that smaller requests cost less, and for empty ones.
fn reask_problem(
    parsed: &Result<AlignedReply, String>,
    reply: &ModelReply,
    max_tokens: u64,
) -> Option<String> {
    let is_cut = matches!(reply.finish, FinishReason::Length | FinishReason::ContentFilter);
    let is_too_long = estimate_tokens(&reply.text) > max_tokens;
    if is_cut || is_too_long || reply.text.trim().is_empty() {
        return None;
    }
    match parsed {
        Err(problem) => Some(problem.clone()),
        Ok(aligned) => match aligned.answers.as_slice() {
            [Err(error)] => Some(prompt::describe_item_error(error)),
            _ => None,
        },
    }
}

fn to_raw(values: &[Value]) -> Result<Vec<Box<RawValue>>, String> {
    values.iter().map(|value| to_raw_value(value).map_err(|error| error.to_string())).collect()
}
