//! One request about some rows: asked, read, and settled.

use super::doubt::Doubt;
use super::ladder::{Answer, FIRST, Node, Outcome, Repair, Turns};
use super::spent::Spent;
use super::survey;
use crate::reply::{Aligned, align};
use crate::row::Row;
use crate::task::{Format, Task};
use crate::{id, prompt};
use bakeoff_core::{ErrorKind, FinishReason, NanoDollars, Request, Usage};
use bakeoff_llm::{Call, CallContext, CallError, Client, Model};
use bakeoff_pace::RunTag;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// What all answers of jobs are samples of: equal requests share their answers in the cache.
const SAMPLE: &str = "map";

/// Providers that are known to have structured output for their present models.
const STRUCTURED: [&str; 8] =
    ["anthropic", "azure", "cerebras", "gemini", "mistral", "openai", "openai-responses", "sim"];

/// Everything that requests have in common.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) client: std::sync::Arc<Client>,
    pub(super) task: Task,
    pub(super) format: Format,
    pub(super) seed: u64,
    /// By their names, in the order in which they are asked.
    pub(super) models: Vec<(String, Model)>,
    /// How often they all have their turn.
    pub(super) rounds: usize,
    /// What has turned out about them, in the same order.
    pub(super) traits: Vec<Traits>,
    pub(super) stop: CancellationToken,
}

/// What turns out about a model.
#[derive(Debug, Default)]
pub(super) struct Traits {
    /// It does not know structured output.
    is_plain: AtomicBool,
    /// It answers nobody any more, for this reason.
    refused: OnceLock<String>,
}

/// A turn of a model.
pub(super) struct Turn<'a> {
    pub(super) name: &'a str,
    model: &'a Model,
    traits: &'a Traits,
    round: usize,
}

/// How a request ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With a reply: answers, and reasons why there are none.
    Answered { outcome: Outcome, batch: Option<Answer> },
    /// Without one, and because of its rows.
    Failed(Outcome),
    /// Without one, and perhaps because of something else.
    Doubtful(Outcome, Doubt),
    /// The model will not answer anybody any more, for this reason.
    Refused(String),
    /// Somebody stopped it.
    Stopped,
}

impl Asker {
    /// Models that answer nobody any more, and why.
    pub(super) fn refused(&self) -> Vec<(String, String)> {
        let models = self.models.iter().zip(&self.traits);
        let refused = |((name, _), traits): (&(String, Model), &Traits)| {
            traits.refused.get().map(|reason| (name.clone(), reason.clone()))
        };
        models.filter_map(refused).collect()
    }

    pub(super) fn turns(&self) -> Turns {
        Turns { models: self.models.len(), rounds: self.rounds }
    }

    /// Whose turn it is, and in which round.
    pub(super) fn turn(&self, turn: usize) -> Option<Turn<'_>> {
        let place = turn.checked_rem(self.models.len())?;
        let (name, model) = self.models.get(place)?;
        Some(Turn { name, model, traits: self.traits.get(place)?, round: turn / self.models.len() })
    }

    /// Makes one request about some rows.
    pub(super) async fn ask(&self, node: &Node, rows: &[&Row]) -> (Ended, Spent) {
        let mut spent = Spent::default();
        let Some(turn) = self.turn(node.turn) else { return (Ended::Stopped, spent) };
        if let Some(reason) = turn.traits.refused.get() {
            return (Ended::Refused(reason.clone()), spent);
        }
        let ids = id::ids(self.seed, rows.iter().copied());
        let item = |(row, id): (&&Row, &String)| prompt::item(&self.task, row, id);
        let items: Vec<String> = rows.iter().zip(&ids).map(item).collect();
        let request = |structured| {
            let request = prompt::request(&self.task, self.format, structured, &items);
            match &node.repair {
                Some(Repair { reply, problem }) => prompt::again(&request, reply, problem),
                None => request,
            }
        };
        let again = node.path != FIRST;
        let structured = self.is_structured(&turn);
        let mut reply = self.call(&turn, request(structured), again, &mut spent).await;
        if structured && self.may_be_plain(&reply) {
            reply = self.call(&turn, request(false), again, &mut spent).await;
            if reply.is_ok() {
                turn.traits.is_plain.store(true, Ordering::Relaxed);
            }
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let ended = self.failed(turn.name, &error, rows.len());
                if let Ended::Refused(reason) = &ended {
                    turn.traits.refused.get_or_init(|| reason.clone());
                }
                return (ended, spent);
            }
        };
        let read = self.read(&reply, &ids);
        let problem = worth_repeating(&read, &reply, self.longest_repeated(rows.len()));
        let read = read.map_err(|problem| problem + &reply.beginning());
        let repair = problem.map(|problem| Repair { reply: reply.text, problem });
        (self.settled(turn.name, read, rows.len(), repair), spent)
    }

    fn is_structured(&self, turn: &Turn<'_>) -> bool {
        let is_known = STRUCTURED.contains(&turn.model.provider());
        let is_plain = turn.traits.is_plain.load(Ordering::Relaxed);
        self.task.structured.unwrap_or(is_known && !is_plain)
    }

    /// Whether a request was refused for being structured, perhaps: not every model of a provider
    /// knows how to.
    fn may_be_plain(&self, reply: &Result<Reply, CallError>) -> bool {
        let kind = reply.as_ref().err().map(|error| error.failure.kind);
        self.task.structured.is_none() && kind == Some(ErrorKind::InvalidRequest)
    }

    /// Most tokens of a reply that is shown to the model again.
    fn longest_repeated(&self, rows: usize) -> u64 {
        const AROUND: u64 = 2000;
        let answers = self.task.output_tokens_per_item().saturating_mul(rows as u64);
        answers.saturating_mul(4).saturating_add(AROUND)
    }

    /// What a request about some rows is likely to cost.
    pub(super) fn expected(&self, node: &Node, rows: &[&Row]) -> NanoDollars {
        let Some(turn) = self.turn(node.turn) else { return NanoDollars(0) };
        let items: u64 = rows.iter().map(|row| survey::tokens(&self.task, row)).sum();
        let answers = self.task.output_tokens_per_item().saturating_mul(rows.len() as u64);
        let shown = node.repair.as_ref().map_or(0, |repair| prompt::tokens(&repair.reply));
        let overhead = survey::overhead(&self.task, self.format).saturating_add(shown);
        let input = overhead.saturating_add(items);
        let usage = Usage { input, output: answers, ..Usage::default() };
        turn.model.cost(&usage).unwrap_or(NanoDollars(0))
    }

    async fn call(
        &self,
        turn: &Turn<'_>,
        request: Request,
        again: bool,
        spent: &mut Spent,
    ) -> Result<Reply, CallError> {
        // What is asked again takes turns with what is new, as if it belonged to another run: rows
        // that others wait behind do not wait behind all of them.
        let run = RunTag(u64::from(again));
        // Whoever asks again in another round wants other answers than those in the cache.
        let trial = u32::try_from(turn.round).unwrap_or(u32::MAX);
        let stop = self.stop.clone();
        let context = CallContext { run, sample: SAMPLE, trial, stop, ..CallContext::default() };
        let call = self.client.call(turn.model, request, &context).await.inspect_err(|error| {
            spent.requests += u64::from(error.failure.kind != ErrorKind::Cancelled);
        })?;
        let Call { response, cost, cached, .. } = call;
        if cached {
            spent.cached += 1;
        } else {
            spent.requests += 1;
            spent.cost = spent.cost.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
            spent.usage += response.usage;
        }
        Ok(Reply { text: response.text(), finish: response.finish })
    }

    fn read(&self, reply: &Reply, ids: &[String]) -> Result<Aligned, String> {
        align(&reply.text, self.format, &self.task, ids).map_err(|problem| match reply.finish {
            FinishReason::Length => "it is cut off before the first whole answer".to_owned(),
            FinishReason::ContentFilter => "the provider stopped it for its content".to_owned(),
            _ if reply.text.trim().is_empty() => "it is empty".to_owned(),
            _ => problem,
        })
    }

    fn settled(
        &self,
        name: &str,
        read: Result<Aligned, String>,
        rows: usize,
        repair: Option<Repair>,
    ) -> Ended {
        let (answers, batch) = match read {
            Ok(aligned) => (aligned.answers, aligned.batch),
            Err(problem) => (vec![Err(format!("the reply cannot be read: {problem}")); rows], None),
        };
        let answers = answers.into_iter().map(|answer| match answer {
            Ok(values) => raw(&values).map_err(|error| self.named(name, &error)),
            Err(reason) => Err(self.named(name, &reason)),
        });
        let outcome = Outcome { answers: answers.collect(), divide: true, repair };
        Ended::Answered { outcome, batch: batch.and_then(|values| raw(&values).ok()) }
    }

    fn failed(&self, name: &str, error: &CallError, rows: usize) -> Ended {
        let failure = &error.failure;
        let reason = self.named(name, &error.to_string());
        let outcome = |divide| Outcome::failed(&reason, rows, divide);
        match failure.kind {
            ErrorKind::Cancelled => Ended::Stopped,
            ErrorKind::Auth | ErrorKind::Quota => Ended::Refused(error.to_string()),
            // There is no such model, or no such address.
            ErrorKind::InvalidRequest if failure.status == Some(404) => {
                Ended::Refused(error.to_string())
            }
            // Smaller requests would only be more of them.
            ErrorKind::RateLimit | ErrorKind::Transient => {
                Ended::Doubtful(outcome(false), Doubt::Trouble)
            }
            // It does not know a parameter, or is not what it is taken for.
            ErrorKind::InvalidRequest | ErrorKind::MalformedResponse => {
                Ended::Doubtful(outcome(true), Doubt::Request)
            }
            // One of the rows may be what it cannot take.
            _ => Ended::Failed(outcome(true)),
        }
    }

    /// With several models, reasons say whose they are.
    fn named(&self, name: &str, reason: &str) -> String {
        match self.models.len() {
            1 => reason.to_owned(),
            _ => format!("{name}: {reason}"),
        }
    }
}

#[derive(Debug)]
struct Reply {
    text: String,
    finish: FinishReason,
}

impl Reply {
    /// Its first words, for people who wonder why it cannot be read.
    fn beginning(&self) -> String {
        const MOST: usize = 80;
        let words = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(MOST) {
            Some((end, _)) => format!(" (\u{201c}{}…\u{201d})", &words[..end]),
            None if words.is_empty() => String::new(),
            None => format!(" (\u{201c}{words}\u{201d})"),
        }
    }
}

/// What is wrong with a reply that the model should see again: it cannot be read, or it is about one
/// row and wrong. What was cut off would be cut off again, what is very long costs more than asking
/// about fewer rows, and there is nothing to show of nothing.
fn worth_repeating(read: &Result<Aligned, String>, reply: &Reply, longest: u64) -> Option<String> {
    let is_cut = matches!(reply.finish, FinishReason::Length | FinishReason::ContentFilter);
    let is_too_long = prompt::tokens(&reply.text) > longest;
    if is_cut || is_too_long || reply.text.trim().is_empty() {
        return None;
    }
    match read {
        Err(problem) => Some(problem.clone()),
        Ok(aligned) => match aligned.answers.as_slice() {
            [Err(reason)] => Some(reason.clone()),
            _ => None,
        },
    }
}

fn raw(values: &[Value]) -> Result<Vec<Box<RawValue>>, String> {
    values.iter().map(|value| to_raw_value(value).map_err(|error| error.to_string())).collect()
}
