//! What a reply says about which item: tolerant reading, strict alignment.
//!
//! A reply is read in all forms, whichever was asked for, because models mix them. Whatever form it
//! has, an item counts only when it is complete and nothing in it says that something is missing:
//! what a cut has damaged is left out, and so is what may have parts of another item in it. Answers
//! go to their rows by id alone.

mod json;
mod thinking;
mod xml;
mod yaml;

use crate::task::{Field, FieldType, Format, Task};
use crate::validate;
use serde_json::{Map, Value};

/// Longer replies are not read: nobody asks for so much at once.
const LONGEST: usize = 4 << 20;

/// Some programs begin every text with it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Something that a reply says about an item.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    id: String,
    /// Its fields, or why they cannot be read.
    fields: Result<Map<String, Value>, String>,
}

/// Everything that a reply says.
#[derive(Debug, Clone, Default, PartialEq)]
struct Contents {
    items: Vec<Said>,
    batch: Option<Map<String, Value>>,
    /// What looks like items, but for their ids.
    nameless: usize,
    /// What stopped the reading.
    problem: Option<String>,
}

impl Contents {
    /// Adds what comes later.
    fn add(&mut self, other: Contents) {
        self.items.extend(other.items);
        self.batch = self.batch.take().or(other.batch);
        self.nameless += other.nameless;
        self.problem = self.problem.take().or(other.problem);
    }
}

/// What a reader looks for.
struct Expected<'a> {
    task: &'a Task,
    ids: &'a [String],
}

impl Expected<'_> {
    /// Whether it is the id of an item that was asked about.
    fn is_asked(&self, id: &str) -> bool {
        self.ids.iter().any(|own| own == id)
    }

    /// Whether it is a field of answers. `items` is also what lists of answers are called.
    fn is_field(&self, name: &str) -> bool {
        name != "items" && self.task.output.iter().any(|field| field.name == name)
    }

    /// The name that is meant, where it differs in letters' case alone from a single one.
    fn meant<'n>(&'n self, name: &'n str) -> &'n str {
        let fields = self.task.output.iter().map(|field| field.name.as_str());
        let mut names = fields.chain(["id"]);
        if names.clone().any(|own| own == name) {
            return name;
        }
        let mut alike = names.by_ref().filter(|own| own.eq_ignore_ascii_case(name));
        alike.next().filter(|_| alike.next().is_none()).unwrap_or(name)
    }

    /// Whether answers can hold objects, which could look like items themselves.
    fn is_nested(&self) -> bool {
        let holds_more = |kind| matches!(kind, FieldType::Object | FieldType::Array);
        let is_nested = |field: &Field| {
            field.kind == FieldType::Object
                || field.kind == FieldType::Array && holds_more(field.items)
        };
        self.task.output.iter().any(is_nested)
    }

    /// What tells that an answer has parts of another item in it: that one's id, where no id
    /// belongs. A field of the task may hold anything.
    fn stranger(&self, own: &str, given: &Map<String, Value>) -> Option<String> {
        let is_other = |id: &str| id != own && self.is_asked(id);
        let unknown = given.iter().filter(|(name, _)| *name != "id" && !self.is_field(name));
        let mut strangers = unknown.filter(|(name, value)| {
            is_other(name) || id_of(value).is_some_and(|value| is_other(&value))
        });
        let (name, _) = strangers.next()?;
        Some(format!("it has the id of another item in it, at `{name}`"))
    }
}

/// What a reply comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aligned {
    /// For each id, its answer or why there is none.
    pub(crate) answers: Vec<Result<Vec<Value>, String>>,
    /// What is said about all items together; null where it does not fit.
    pub(crate) batch: Option<Vec<Value>>,
}

/// Reads a reply about these ids.
///
/// # Errors
///
/// When nothing in it looks like an item: what a reader of the form that was asked for says.
pub(crate) fn align(
    text: &str,
    format: Format,
    task: &Task,
    ids: &[String],
) -> Result<Aligned, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    let text = thinking::behind(text.trim_start_matches(BYTE_ORDER_MARK))?;
    let expected = Expected { task, ids };
    let mut contents = read(text, format, &expected)?;
    for said in &mut contents.items {
        let stranger =
            said.fields.as_ref().ok().and_then(|given| expected.stranger(&said.id, given));
        if let Some(reason) = stranger {
            said.fields = Err(reason);
        }
    }
    let unknown = contents.items.iter().filter(|said| !ids.contains(&said.id)).count();
    let answers = ids.iter().map(|id| one(id, &contents.items, &task.output, unknown)).collect();
    let batch = contents.batch.filter(|_| !task.batch.is_empty());
    let batch = batch.map(|given| facts(&task.batch, &given));
    Ok(Aligned { answers, batch })
}

/// What is said about all items together. Nobody asks again about these, so each stands for itself.
fn facts(fields: &[Field], given: &Map<String, Value>) -> Vec<Value> {
    let fact = |field: &Field| validate::one(field, given.get(&field.name)).unwrap_or_default();
    fields.iter().map(fact).collect()
}

/// The answer about one item. Several that are equal are one; several that are not are none. Where an
/// item is only mentioned, with nothing that was asked for, that is an answer if it is all there is.
fn one(id: &str, said: &[Said], fields: &[Field], unknown: usize) -> Result<Vec<Value>, String> {
    let own = || said.iter().filter(|said| said.id == id);
    let is_mention = |said: &Said| {
        let given = said.fields.as_ref();
        given.is_ok_and(|given| !fields.iter().any(|field| given.contains_key(&field.name)))
    };
    let is_all = own().all(is_mention);
    let answers = own().filter(|said| is_all || !is_mention(said));
    let mut answers = answers.map(|said| match &said.fields {
        Ok(given) => validate::answer(fields, given),
        Err(reason) => Err(reason.clone()),
    });
    let Some(first) = answers.next() else {
        return Err(match unknown {
            0 => "the reply has no answer for it".to_owned(),
            _ => format!("the reply has no answer for it, and {unknown} for ids that nobody has"),
        });
    };
    match answers.all(|other| other == first) {
        true => first,
        false => Err("the reply has several different answers for it".to_owned()),
    }
}

/// Everything that any of the forms finds. All of them count: what says one thing in JSON and another
/// in XML says two things. Only where answers can hold objects, which may be JSON in any form, the
/// form that was asked for is enough.
fn read(text: &str, asked: Format, expected: &Expected<'_>) -> Result<Contents, String> {
    let others = Format::ALL.into_iter().filter(|other| *other != asked);
    let mut all = Contents::default();
    for format in [asked].into_iter().chain(others) {
        let contents = match format {
            Format::Json => json::read(text, format == asked, expected),
            Format::Xml => xml::read(text, expected),
            Format::Yaml => yaml::read(text, expected),
        };
        // What is wrong is told about the form that was asked for, which comes first.
        let problem = if format == asked { contents.problem.clone() } else { all.problem.take() };
        all.add(contents);
        all.problem = problem;
        let is_there = !all.items.is_empty() || all.nameless > 0 || all.problem.is_some();
        if expected.is_nested() && is_there {
            break;
        }
    }
    if all.items.iter().any(|said| said.fields.is_ok()) {
        return Ok(all);
    }
    if all.items.is_empty() && all.nameless > 0 {
        return Err("no item has an id".to_owned());
    }
    let broken = all.items.into_iter().find_map(|said| said.fields.err());
    Err(all.problem.or(broken).unwrap_or_else(|| nothing(asked).to_owned()))
}

/// What is missing when there is nothing at all.
fn nothing(format: Format) -> &'static str {
    match format {
        Format::Json => "there is no JSON object with items in it",
        Format::Xml => "there is no <item> in it",
        Format::Yaml => "there is no list of items in it",
    }
}

/// The id of an item, whatever stands around it.
fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            // A mark at one end alone is a sign of damage.
            let within = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
            let quoted = ['`', '"', '\''].into_iter().find_map(within);
            Some(quoted.unwrap_or(text).to_ascii_lowercase())
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod damage;
#[cfg(test)]
mod habits;
#[cfg(test)]
mod long;
#[cfg(test)]
mod tests;
