//! What a reply says about which item: tolerant reading, strict alignment.
//!
//! A reply is read in all forms, whichever was asked for, because models mix them. Whatever form it
//! has, an item counts only when it is complete: what a cut has damaged is left out. Answers go to
//! their rows by id alone.

mod json;
mod xml;
mod yaml;

use crate::task::{Field, Format, Task};
use crate::validate;
use serde_json::{Map, Value};

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
    /// What stopped the reading.
    problem: Option<String>,
}

/// What a reply comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aligned {
    /// For each id, its answer or why there is none.
    pub(crate) answers: Vec<Result<Vec<Value>, String>>,
    /// What is said about all items together, as far as it fits.
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
    let contents = read(text, format, task, ids)?;
    let unknown = contents.items.iter().filter(|said| !ids.contains(&said.id)).count();
    let answers = ids.iter().map(|id| one(id, &contents.items, &task.output, unknown)).collect();
    let batch = contents.batch.filter(|_| !task.batch.is_empty());
    let batch = batch.and_then(|given| validate::answer(&task.batch, &given).ok());
    Ok(Aligned { answers, batch })
}

/// The answer about one item. Several that are equal are one; several that are not are none.
fn one(id: &str, said: &[Said], fields: &[Field], unknown: usize) -> Result<Vec<Value>, String> {
    let mut answers = said.iter().filter(|said| said.id == id).map(|said| match &said.fields {
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
/// in XML says two things.
fn read(text: &str, format: Format, task: &Task, ids: &[String]) -> Result<Contents, String> {
    let others = Format::ALL.into_iter().filter(|other| *other != format);
    let mut all = Contents::default();
    for format in [format].into_iter().chain(others) {
        let contents = match format {
            Format::Json => json::read(text, ids),
            Format::Xml => xml::read(text, task),
            Format::Yaml => yaml::read(text),
        };
        all.items.extend(contents.items);
        all.batch = all.batch.or(contents.batch);
        // What is wrong is told about the form that was asked for.
        all.problem = all.problem.or(contents.problem);
    }
    match all.items.is_empty() {
        false => Ok(all),
        true => Err(all.problem.unwrap_or_else(|| "there are no items in it".to_owned())),
    }
}

/// The id of an item, whatever stands around it.
fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_ascii_lowercase()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
