//! Parsing replies: tolerant reading of the text, strict matching of items to rows.
//!
//! A reply is read in all formats, not just the requested one, because models mix them. An item counts
//! only if it is complete and shows no sign of loss: items damaged by a cut are left out, and so are
//! items that may contain parts of another one. Answers are matched to rows by id alone.
//!
//! Problem texts are sent to the model in re-ask prompts ([`crate::prompt::reask`]). They are thereby
//! part of cache keys, so changing one makes cached responses useless.

mod json;
mod thinking;
mod xml;
mod yaml;

use crate::task::{Field, FieldType, ReplyFormat, Task};
use crate::validate;
use serde_json::{Map, Value};

/// Maximum size of a reply. No request needs a longer one.
const MAX_REPLY_BYTES: usize = 4 << 20;

/// Byte order mark, with which some programs start every text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// An item found in a reply.
#[derive(Debug, Clone, PartialEq)]
struct ReplyItem {
    id: String,
    /// The fields, or the reason why they cannot be read.
    fields: Result<Map<String, Value>, String>,
}

/// Everything found in a reply.
#[derive(Debug, Clone, Default, PartialEq)]
struct ReplyContents {
    items: Vec<ReplyItem>,
    batch: Option<Map<String, Value>>,
    /// Number of items without an id.
    nameless: usize,
    /// First problem that stopped the reading.
    problem: Option<String>,
}

impl ReplyContents {
    /// Appends the contents of a later part.
    fn append(&mut self, other: ReplyContents) {
        self.items.extend(other.items);
        self.batch = self.batch.take().or(other.batch);
        self.nameless += other.nameless;
        self.problem = self.problem.take().or(other.problem);
    }
}

/// The ids and fields that a reader looks for.
struct ReplySpec<'a> {
    task: &'a Task,
    ids: &'a [String],
}

impl ReplySpec<'_> {
    /// Returns whether an item of the request has this id.
    fn has_id(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }

    /// Returns whether this is the name of an answer field. `items` never is, because lists of answers
    /// have that name.
    fn is_field(&self, name: &str) -> bool {
        name != "items" && self.task.output.iter().any(|field| field.name == name)
    }

    /// Returns the field name that differs just in case, if there is exactly one; otherwise the name itself.
    fn canonical_name<'n>(&'n self, name: &'n str) -> &'n str {
        let fields = self.task.output.iter().map(|field| field.name.as_str());
        let mut names = fields.chain(["id"]);
        if names.clone().any(|known| known == name) {
            return name;
        }
        let mut similar = names.by_ref().filter(|known| known.eq_ignore_ascii_case(name));
        similar.next().filter(|_| similar.next().is_none()).unwrap_or(name)
    }

    /// Returns whether answers can contain objects, which could be mistaken for items.
    fn is_nested(&self) -> bool {
        let is_container = |kind| matches!(kind, FieldType::Object | FieldType::Array);
        let is_nested = |field: &Field| {
            field.kind == FieldType::Object
                || field.kind == FieldType::Array && is_container(field.items)
        };
        self.task.output.iter().any(is_nested)
    }

    /// Detects parts of another item in an answer: its id outside of the fields of the task, which may
    /// have any value.
    fn foreign_id_problem(&self, own: &str, fields: &Map<String, Value>) -> Option<String> {
        let is_foreign = |id: &str| id != own && self.has_id(id);
        let unknown = fields.iter().filter(|(name, _)| *name != "id" && !self.is_field(name));
        let mut foreign = unknown.filter(|(name, value)| {
            is_foreign(name) || parse_id(value).is_some_and(|value| is_foreign(&value))
        });
        let (name, _) = foreign.next()?;
        Some(format!("it has the id of another item in it, at `{name}`"))
    }
}

/// A parsed reply, matched to the ids of the request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlignedReply {
    /// The answer for each id, or the reason why there is none.
    pub(crate) answers: Vec<Result<Vec<Value>, ReplyItemError>>,
    /// The batch values; null for invalid ones.
    pub(crate) batch: Option<Vec<Value>>,
}

/// Reason why a readable reply has no valid answer for an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplyItemError {
    /// The reply has no item with the id.
    Missing {
        /// Number of items with ids that are not in the request.
        unknown_ids: usize,
    },
    /// The reply has different answers for the item.
    Conflicting,
    /// The answer is unreadable or violates the task.
    Invalid(String),
}

impl std::fmt::Display for ReplyItemError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplyItemError::Missing { unknown_ids: 0 } => {
                f.write_str("the reply has no answer for it")
            }
            ReplyItemError::Missing { unknown_ids } => {
                write!(f, "the reply has no answer for it, and {unknown_ids} for unknown ids")
            }
            ReplyItemError::Conflicting => {
                f.write_str("the reply has several different answers for it")
            }
            ReplyItemError::Invalid(problem) => f.write_str(problem),
        }
    }
}

/// Parses a reply to a request with these ids.
///
/// # Errors
///
/// Fails with the problem found by the reader of the requested format if the reply has no items.
pub(crate) fn align(
    text: &str,
    format: ReplyFormat,
    task: &Task,
    ids: &[String],
) -> Result<AlignedReply, String> {
    if text.len() > MAX_REPLY_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_REPLY_BYTES >> 20));
    }
    let text = thinking::strip(text.trim_start_matches(BYTE_ORDER_MARK))?;
    let spec = ReplySpec { task, ids };
    let mut contents = read(text, format, &spec)?;
    for item in &mut contents.items {
        let fields = item.fields.as_ref().ok();
        let problem = fields.and_then(|fields| spec.foreign_id_problem(&item.id, fields));
        if let Some(problem) = problem {
            item.fields = Err(problem);
        }
    }
    let unknown_ids = contents.items.iter().filter(|item| !ids.contains(&item.id)).count();
    let answer = |id: &String| find_answer(id, &contents.items, &task.output, unknown_ids);
    let answers = ids.iter().map(answer).collect();
    let batch = contents.batch.filter(|_| !task.batch.is_empty());
    let batch = batch.map(|fields| batch_values(&task.batch, &fields));
    Ok(AlignedReply { answers, batch })
}

/// Validates the batch values one by one. They are never re-asked, so an invalid one does not affect
/// the others.
fn batch_values(fields: &[Field], given: &Map<String, Value>) -> Vec<Value> {
    let value =
        |field: &Field| validate::validate_field(field, given.get(&field.name)).unwrap_or_default();
    fields.iter().map(value).collect()
}

/// Returns the answer for an id. Equal answers count as one; different ones conflict.
///
/// Items without any answer field are mentions, and are ignored if there is another item with the id.
fn find_answer(
    id: &str,
    items: &[ReplyItem],
    fields: &[Field],
    unknown_ids: usize,
) -> Result<Vec<Value>, ReplyItemError> {
    let matching = || items.iter().filter(|item| item.id == id);
    let is_mention = |item: &ReplyItem| {
        let given = item.fields.as_ref();
        given.is_ok_and(|given| !fields.iter().any(|field| given.contains_key(&field.name)))
    };
    let has_only_mentions = matching().all(is_mention);
    let answers = matching().filter(|item| has_only_mentions || !is_mention(item));
    let mut answers = answers.map(|item| match &item.fields {
        Ok(given) => validate::validate_answer(fields, given),
        Err(problem) => Err(problem.clone()),
    });
    let Some(first) = answers.next() else { return Err(ReplyItemError::Missing { unknown_ids }) };
    match answers.all(|other| other == first) {
        true => first.map_err(ReplyItemError::Invalid),
        false => Err(ReplyItemError::Conflicting),
    }
}

/// Reads a reply in all formats and merges what they find: if JSON and XML differ, the answers conflict.
///
/// If answers can contain objects, which are written as JSON in any format, the requested format is enough.
fn read(text: &str, requested: ReplyFormat, spec: &ReplySpec<'_>) -> Result<ReplyContents, String> {
    let others = ReplyFormat::ALL.into_iter().filter(|other| *other != requested);
    let mut all = ReplyContents::default();
    for format in [requested].into_iter().chain(others) {
        let is_requested = format == requested;
        let contents = match format {
            ReplyFormat::Json => json::read(text, is_requested, spec),
            ReplyFormat::Xml => xml::read(text, spec),
            ReplyFormat::Yaml => yaml::read(text, spec),
        };
        // Only the problem of the requested format, which is read first, is reported.
        let problem = if is_requested { contents.problem.clone() } else { all.problem.take() };
        all.append(contents);
        all.problem = problem;
        let is_found = !all.items.is_empty() || all.nameless > 0 || all.problem.is_some();
        if spec.is_nested() && is_found {
            break;
        }
    }
    if all.items.iter().any(|item| item.fields.is_ok()) {
        return Ok(all);
    }
    if all.items.is_empty() && all.nameless > 0 {
        return Err("no item has an id".to_owned());
    }
    let broken = all.items.into_iter().find_map(|item| item.fields.err());
    Err(all.problem.or(broken).unwrap_or_else(|| no_items_problem(requested).to_owned()))
}

/// Returns the problem of a reply without any item.
fn no_items_problem(format: ReplyFormat) -> &'static str {
    match format {
        ReplyFormat::Json => "there is no JSON object with items in it",
        ReplyFormat::Xml => "there is no <item> in it",
        ReplyFormat::Yaml => "there is no list of items in it",
    }
}

/// Parses an id: strips white space and quotes, and converts it to lower case.
fn parse_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            // A quote at one end only is a sign of damage and stays.
            let strip_quotes = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
            let unquoted = ['`', '"', '\''].into_iter().find_map(strip_quotes);
            Some(unquoted.unwrap_or(text).to_ascii_lowercase())
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod damage;
#[cfg(test)]
mod extra_text;
#[cfg(test)]
mod long_replies;
#[cfg(test)]
mod tests;
