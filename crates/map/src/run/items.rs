//! Mapping of items in memory.
//!
//! The same packing, ids, reply parsing and escalation as in a [`Job`](super::Job), without files: nothing
//! is journaled, and answers are returned in the order of the items.

use super::escalation::{Escalation, PackRequest, RowAnswer, RowResults};
use super::failures::{DeferredFailures, FailureCause, FailureDecision};
use super::pack_feed;
use super::request::{ModelState, RequestContext, RequestOutcome};
use super::runner::rows_of;
use super::scan::{self, InputScan};
use crate::answer::{Answer, ItemError};
use crate::error::Error;
use crate::pack::{Pack, Packer};
use crate::pack_size::choose_pack_size;
use crate::row::{Row, RowFields};
use crate::task::{PackSize, Task};
use bakeoff_llm::{Client, Model};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Name of the only field of an item that is not an object.
const VALUE_FIELD: &str = "value";

/// Sends all items to a model, several per request, and returns an answer or an error for each item, in the
/// order of the items.
///
/// An item that serializes to an object has the object's fields; any other item, such as a string, has one
/// field named `value`. Settings of the task that concern output files (`batch`, `into`) are ignored. All
/// items and answers are held in memory; use a [`Job`](crate::Job) for large files and for resuming.
///
/// Dropping the future cancels all requests.
///
/// ```
/// use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
/// use bakeoff_map::{Field, FieldType, Task, map_items};
/// use std::sync::Arc;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let client = Arc::new(Client::new(ClientConfig::default()));
/// let model = Model::resolve(&ModelConfig::named("sim", "map"), &|_| None)?;
/// let task = Task::new("Copy each name.", vec![Field::new("copy", FieldType::String)]);
/// let answers = map_items(&client, &model, &task, ["Ada", "Grace"]).await?;
/// assert_eq!(answers[1].as_ref().map(|answer| &answer["copy"]), Ok(&"Grace".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Fails before the first request if an item cannot be serialized, or if the task or the limits of the model
/// are invalid. Failures of requests are errors of the affected items.
pub async fn map_items<T: Serialize>(
    client: &Arc<Client>,
    model: &Model,
    task: &Task,
    items: impl IntoIterator<Item = T>,
) -> Result<Vec<Result<Answer, ItemError>>, Error> {
    client.pool(model)?;
    let task = Task { batch: Vec::new(), ..task.clone() };
    let format = task.format;
    task.check_format(format)?;
    let rows = items.into_iter().zip(0..).map(|(item, index)| row(index, &item));
    let rows: Vec<Row> = rows.collect::<Result<_, Error>>()?;
    let scan = InputScan::of_rows(rows.iter().map(Ok), &[], &task)?;
    let items = match task.pack {
        PackSize::Items(items) => items,
        PackSize::Auto => {
            choose_pack_size(&model.limits(), None, scan.token_sizes(&task, format)).items
        }
    };
    let limits = scan::pack_limits(&task, format, items, model.limits().tpm);
    limits.check_prompt()?;
    let answers = vec![None; rows.len()];
    let mut packer = Packer::new(limits);
    let mut packs = VecDeque::new();
    for row in rows {
        let tokens = scan::item_tokens(&task, &row);
        packs.extend(packer.push(row, tokens));
        packs.extend(packer.take_oversized());
    }
    packs.extend(packer.finish());
    let context = RequestContext {
        client: Arc::clone(client),
        task,
        format,
        seed: 0,
        models: vec![(model.name().to_owned(), model.clone())],
        rounds: 1,
        model_states: vec![ModelState::default()],
        stop: CancellationToken::new(),
    };
    let runner = ItemsRunner {
        context: Arc::new(context),
        packs,
        active: HashMap::new(),
        queue: VecDeque::new(),
        requests: JoinSet::new(),
        failures: DeferredFailures::default(),
        answers,
        stop: None,
    };
    Ok(runner.run().await)
}

/// Converts an item into a row.
fn row(index: u64, item: &impl Serialize) -> Result<Row, Error> {
    let item_error = |source| Error::Item { index, source };
    let json: Box<RawValue> = to_raw_value(item).map_err(item_error)?;
    let fields = match json.get().starts_with('{') {
        true => serde_json::from_str::<RowFields>(json.get()).map_err(item_error)?.0,
        false => vec![(VALUE_FIELD.to_owned(), json)],
    };
    Ok(Row { index, fields })
}

/// Return value of a request task.
struct ItemsReport {
    pack: u64,
    request: PackRequest,
    outcome: RequestOutcome,
    /// Whether the response came from the provider, not from the cache.
    is_fresh: bool,
}

/// A request with its results.
struct FinishedRequest {
    pack: u64,
    request: PackRequest,
    results: RowResults,
}

/// State of a running call of [`map_items`].
struct ItemsRunner {
    context: Arc<RequestContext>,
    /// Packs not started yet.
    packs: VecDeque<Pack>,
    active: HashMap<u64, (Arc<Pack>, Escalation)>,
    /// Requests not started yet.
    queue: VecDeque<(u64, PackRequest)>,
    requests: JoinSet<ItemsReport>,
    failures: DeferredFailures<FinishedRequest>,
    /// Results by the index of the item.
    answers: Vec<Option<Result<Answer, ItemError>>>,
    /// Reason why no more requests are sent.
    stop: Option<String>,
}

impl ItemsRunner {
    async fn run(mut self) -> Vec<Result<Answer, ItemError>> {
        let mut poll = tokio::time::interval(pack_feed::POLL_INTERVAL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.start_queued();
            while self.stop.is_none() && self.can_start_pack() {
                let Some(pack) = self.packs.pop_front() else { break };
                self.start_pack(pack);
                self.start_queued();
            }
            if self.requests.is_empty() {
                let decision = self.failures.decide_idle();
                if self.stop.is_none() {
                    self.apply(decision);
                }
                if self.stop.is_some() || (self.packs.is_empty() && self.queue.is_empty()) {
                    break;
                }
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(report) = self.requests.join_next() => {
                    self.process(report);
                    while let Some(report) = self.requests.try_join_next() {
                        self.process(report);
                    }
                }
                _ = poll.tick() => {}
            }
        }
        self.finish()
    }

    fn can_start_pack(&self) -> bool {
        let RequestContext { client, models, .. } = &*self.context;
        pack_feed::pools_have_capacity(client, models, self.requests.len())
    }

    fn start_pack(&mut self, pack: Pack) {
        if let Some(reason) = &pack.rejection {
            for row in &pack.rows {
                self.set(row.index, Err(ItemError::TooLarge(reason.clone())));
            }
            return;
        }
        let (escalation, first) = Escalation::new(pack.rows.len(), self.context.round_plan());
        self.queue.push_back((pack.number, first));
        self.active.insert(pack.number, (Arc::new(pack), escalation));
    }

    fn start_queued(&mut self) {
        if self.stop.is_some() {
            self.queue.clear();
        }
        while let Some((number, request)) = self.queue.pop_front() {
            let Some((pack, _)) = self.active.get(&number) else { continue };
            let (context, pack) = (Arc::clone(&self.context), Arc::clone(pack));
            self.requests.spawn(async move {
                let (outcome, usage) = context.send(&request, &rows_of(&request, &pack)).await;
                ItemsReport { pack: number, request, outcome, is_fresh: usage.requests > 0 }
            });
        }
    }

    /// Processes the outcome of a request. There is one model, so every round is the last.
    fn process(&mut self, report: Result<ItemsReport, tokio::task::JoinError>) {
        // A panic is a bug in this program.
        let Ok(ItemsReport { pack, request, outcome, is_fresh }) = report else {
            self.stop("a request task panicked; please report this bug".to_owned());
            return;
        };
        match outcome {
            RequestOutcome::Answered { results, .. } => {
                self.record(FinishedRequest { pack, request, results });
                let failures = match is_fresh {
                    true => self.failures.record_answer(),
                    false => self.failures.record_earlier_answer(),
                };
                self.apply(FailureDecision::Accept(failures));
            }
            RequestOutcome::Unclear(results, cause) => {
                let failed = FinishedRequest { pack, request, results };
                let decision = self.failures.record_failure(failed, cause);
                self.apply(decision);
            }
            RequestOutcome::Failed(results) => {
                self.record(FinishedRequest { pack, request, results });
            }
            RequestOutcome::ModelUnavailable(reason) => self.stop(reason),
            RequestOutcome::Cancelled => {}
        }
    }

    fn apply(&mut self, decision: FailureDecision<FinishedRequest>) {
        match decision {
            FailureDecision::Defer => {}
            FailureDecision::Accept(failures) => {
                for (failure, cause) in failures {
                    match cause == FailureCause::Provider && !failure.request.is_provider_retry {
                        true => {
                            let request =
                                PackRequest { is_provider_retry: true, ..failure.request };
                            self.queue.push_back((failure.pack, request));
                        }
                        false => self.record(failure),
                    }
                }
            }
            FailureDecision::Abort(last) => {
                let reason = last.results.first_reason().unwrap_or_default();
                self.stop(format!("all requests fail: {reason}"));
            }
        }
    }

    /// Records the results of a request and queues the requests that follow from them.
    fn record(&mut self, FinishedRequest { pack: number, request, results }: FinishedRequest) {
        let Some((_, escalation)) = self.active.get_mut(&number) else { return };
        let next = escalation.record(&request, results);
        self.queue.extend(next.into_iter().map(|request| (number, request)));
        if escalation.is_finished()
            && let Some((pack, escalation)) = self.active.remove(&number)
        {
            for (row, answer) in pack.rows.iter().zip(escalation.into_answers()) {
                let answer = answer.map(|values| self.answer(&values));
                self.set(row.index, answer.map_err(ItemError::NoAnswer));
            }
        }
    }

    fn answer(&self, values: &RowAnswer) -> Answer {
        let value = |json: &RawValue| serde_json::from_str(json.get()).unwrap_or(Value::Null);
        let names = self.context.task.output.iter().map(|field| field.name.clone());
        let fields: Map<String, Value> = names.zip(values.iter().map(|json| value(json))).collect();
        Answer::from(fields)
    }

    fn set(&mut self, index: u64, answer: Result<Answer, ItemError>) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(slot) = self.answers.get_mut(index) {
            *slot = Some(answer);
        }
    }

    /// Starts no more requests. The first reason is kept.
    fn stop(&mut self, reason: String) {
        self.stop.get_or_insert(reason);
        self.context.stop.cancel();
    }

    /// Returns the results. Answers in unfinished packs are kept.
    fn finish(mut self) -> Vec<Result<Answer, ItemError>> {
        for (pack, escalation) in std::mem::take(&mut self.active).into_values() {
            for (row, answer) in pack.rows.iter().zip(escalation.into_answers()) {
                if let Ok(values) = answer {
                    let answer = self.answer(&values);
                    self.set(row.index, Ok(answer));
                }
            }
        }
        let reason = self.stop.unwrap_or_else(|| "no request was sent".to_owned());
        let unprocessed = || Err(ItemError::NotProcessed(reason.clone()));
        self.answers.into_iter().map(|answer| answer.unwrap_or_else(unprocessed)).collect()
    }
}
