//! Mapping of items in memory.
//!
//! The same packing, ids, reply parsing and escalation as in a [`Job`](super::Job), without files: nothing
//! is journaled, and answers are returned in the order of the items.

use super::escalation::{Escalation, RowAnswer};
use super::pack_feeder::POLL_INTERVAL;
use super::request::{ModelState, RequestContext};
use super::request_set::{CompletedRequest, RequestResults, RequestSet};
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
/// let config = ClientConfig::default().simulated_models([bakeoff_map::simulated_models()]);
/// let client = Arc::new(Client::new(config));
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
    let context = Arc::new(context);
    let runner = ItemsRunner {
        requests: RequestSet::new(Arc::clone(&context)),
        context,
        packs,
        active: HashMap::new(),
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

/// State of a running call of [`map_items`].
struct ItemsRunner {
    context: Arc<RequestContext>,
    /// Packs not started yet.
    packs: VecDeque<Pack>,
    active: HashMap<u64, (Arc<Pack>, Escalation)>,
    requests: RequestSet,
    /// Results by the index of the item.
    answers: Vec<Option<Result<Answer, ItemError>>>,
    /// Reason why no more requests are sent.
    stop: Option<String>,
}

impl ItemsRunner {
    async fn run(mut self) -> Vec<Result<Answer, ItemError>> {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.start_queued();
            while self.stop.is_none() && self.requests.can_start_pack() {
                let Some(pack) = self.packs.pop_front() else { break };
                self.start_pack(pack);
                self.start_queued();
            }
            if self.requests.in_flight() == 0 {
                if self.stop.is_none() {
                    let settled = self.requests.settle_idle();
                    self.apply(settled);
                }
                if self.stop.is_some() || (self.packs.is_empty() && !self.requests.has_queued()) {
                    break;
                }
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(report) = self.requests.next_report() => {
                    let settled = report.and_then(|(report, _)| self.requests.settle(report));
                    self.apply(settled);
                }
                _ = poll.tick() => {}
            }
        }
        self.finish()
    }

    fn start_pack(&mut self, pack: Pack) {
        if let Some(reason) = &pack.rejection {
            for row in &pack.rows {
                self.set(row.index, Err(ItemError::TooLarge(reason.clone())));
            }
            return;
        }
        let (escalation, first) = Escalation::new(pack.rows.len(), self.context.round_plan());
        self.requests.queue(pack.number, first);
        self.active.insert(pack.number, (Arc::new(pack), escalation));
    }

    fn start_queued(&mut self) {
        if self.stop.is_some() {
            self.requests.clear_queue();
        }
        while let Some((number, request)) = self.requests.next_queued() {
            let Some((pack, _)) = self.active.get(&number) else { continue };
            self.requests.start(request, Arc::clone(pack), None);
        }
    }

    /// Records completed requests, or stops.
    fn apply(&mut self, settled: RequestResults) {
        match settled {
            Ok(completed) => completed.into_iter().for_each(|request| self.record(request)),
            Err(reason) => self.stop(reason),
        }
    }

    /// Records the results of a request and queues the requests that follow from them.
    fn record(&mut self, completed: CompletedRequest) {
        let number = completed.pack;
        let Some((_, escalation)) = self.active.get_mut(&number) else { return };
        for request in escalation.record(&completed.request, completed.results) {
            self.requests.queue(number, request);
        }
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
