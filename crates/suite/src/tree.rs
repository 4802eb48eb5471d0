//! Reading a TOML tree by the tables of [`super::spec`], with every problem in its place.

use super::form::{self, Wrong};
use super::spec::{Field, Section, Shape};
use crate::problem::{Problems, suggest};
use bakeoff_pace::{AdaptiveBounds, Connections, ConnectionsError};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Value<'t> = Spanned<DeValue<'t>>;

/// Checks a table against its description.
pub(crate) fn validate(
    table: &DeTable<'_>,
    span: Range<usize>,
    section: &Section,
    name: &str,
    problems: &mut Problems<'_>,
) {
    validate_present(table, section, name, problems);
    for field in section.fields().filter(|field| field.required) {
        if !table.contains_key(field.name) {
            problems
                .at(span.clone(), format!("{name} has no `{}`", field.name))
                .with_hint(format!("add `{}`: {}", field.name, lower_first(field.about)));
        }
    }
}

/// Checks the keys of a table that are there; required keys may be missing.
pub(crate) fn validate_present(
    table: &DeTable<'_>,
    section: &Section,
    name: &str,
    problems: &mut Problems<'_>,
) {
    for (key, value) in table {
        match section.field(key.get_ref()) {
            Some(field) => validate_value(value, field, problems),
            None => {
                unknown_key(key, section.fields().map(|field| field.name).collect(), name, problems)
            }
        }
    }
}

fn unknown_key(
    key: &Spanned<std::borrow::Cow<'_, str>>,
    known: Vec<&str>,
    name: &str,
    problems: &mut Problems<'_>,
) {
    let problem = problems.at(key.span(), format!("unknown key `{}` in {name}", key.get_ref()));
    problem.hint = suggest(key.get_ref(), known);
}

fn validate_value(value: &Value<'_>, field: &Field, problems: &mut Problems<'_>) {
    let expected = match (&field.shape, value.get_ref()) {
        (Shape::Text | Shape::Template, DeValue::String(_))
        | (Shape::Boolean, DeValue::Boolean(_))
        | (Shape::Open | Shape::TextOrOpen, DeValue::Table(_))
        | (Shape::TextOrOpen, DeValue::String(_))
        | (Shape::Any, _) => return,
        (Shape::Integer { least, most }, DeValue::Integer(_))
            if integer(value).is_some_and(|number| (*least..=*most).contains(&number)) =>
        {
            return;
        }
        (Shape::Number { least, most }, _)
            if number(value).is_some_and(|number| (*least..=*most).contains(&number)) =>
        {
            return;
        }
        (Shape::Connections { most }, DeValue::Integer(_))
            if integer(value).is_some_and(|number| (1..=i64::from(*most)).contains(&number)) =>
        {
            return;
        }
        (Shape::Connections { most }, DeValue::String(text)) => {
            return validate_connections(text, *most, value.span(), field, problems);
        }
        (Shape::Choice(words), DeValue::String(word)) if words.contains(&word.as_ref()) => return,
        (Shape::Choice(words), DeValue::String(word)) => {
            let problem = problems.at(value.span(), format!("`{}` cannot be {word:?}", field.name));
            problem.code = field.code;
            problem.hint = suggest(word, words.iter().copied());
            return;
        }
        (Shape::Texts { some }, DeValue::Array(items))
            if items.iter().all(|item| item.get_ref().is_str()) && !(*some && items.is_empty()) =>
        {
            return;
        }
        (Shape::Words(words), DeValue::Array(items))
            if items.iter().all(|item| item.get_ref().is_str()) =>
        {
            let word = |item: &Value<'_>| item.get_ref().as_str().unwrap_or_default().to_owned();
            for item in items.iter().filter(|item| !words.contains(&word(item).as_str())) {
                let message = format!("`{}` cannot have {:?}", field.name, word(item));
                let problem = problems.at(item.span(), message);
                problem.code = field.code;
                problem.hint = suggest(&word(item), words.iter().copied());
            }
            return;
        }
        (Shape::TextMap, DeValue::Table(entries))
            if entries.values().all(|entry| entry.get_ref().is_str()) =>
        {
            return;
        }
        (Shape::TextLists, DeValue::Table(entries)) => {
            let is_list = |value: &DeValue<'_>| value.as_array().is_some_and(all_texts);
            for (key, entry) in entries.iter().filter(|(_, entry)| !is_list(entry.get_ref())) {
                let (key, found) = (key.get_ref(), describe(entry.get_ref()));
                problems
                    .at(entry.span(), format!("`{key}` must be a list of texts, not {found}"))
                    .with_hint(format!("`{}`: {}", field.name, lower_first(field.about)));
            }
            return;
        }
        (Shape::Table(section), DeValue::Table(table)) => {
            return validate(table, value.span(), section, &format!("[{}]", field.name), problems);
        }
        (Shape::Named(section), DeValue::Table(tables))
            if tables.values().all(|table| table.get_ref().is_table()) =>
        {
            for (name, table) in tables {
                if let DeValue::Table(entries) = table.get_ref() {
                    let name = format!("[{}.{}]", field.name, name.get_ref());
                    validate(entries, table.span(), section, &name, problems);
                }
            }
            return;
        }
        (Shape::Tables(section), DeValue::Array(items)) if all_tables(items) => {
            for (table, span) in tables_of(items) {
                validate(table, span, section, &format!("[[{}]]", field.name), problems);
            }
            return;
        }
        (Shape::OpenList, DeValue::Array(items)) if all_tables(items) => return,
        (Shape::Checks, DeValue::Array(items)) if all_tables(items) => {
            for (table, span) in tables_of(items) {
                validate_check(table, span, problems);
            }
            return;
        }
        (shape, _) => expectation(shape),
    };
    let found = describe(value.get_ref());
    let problem =
        problems.at(value.span(), format!("`{}` must be {expected}, not {found}", field.name));
    problem.code = field.code;
    problem.hint = Some(format!("`{}`: {}", field.name, lower_first(field.about)));
}

fn validate_connections(
    text: &str,
    most: u32,
    span: Range<usize>,
    field: &Field,
    problems: &mut Problems<'_>,
) {
    let wrong = match text.parse() {
        Ok(Connections::Max(number) | Connections::Range(AdaptiveBounds { max: number, .. }))
            if number > most =>
        {
            format!("{number} is too large, at most {most} is possible")
        }
        Ok(_) => return,
        Err(ConnectionsError::UnknownWord { text }) => format!("{text:?} is no number"),
        Err(error) => error.to_string(),
    };
    let problem = problems.at(span, format!("`{}`: {wrong}", field.name));
    problem.code = field.code;
    problem.hint =
        Some("a number, or \"min-max\" or \"min-start-max\" with `strategy = \"adaptive\"`".into());
}

/// A check's keys depend on its kind.
fn validate_check(table: &DeTable<'_>, span: Range<usize>, problems: &mut Problems<'_>) {
    let node = Node::new(table, span);
    for wrong in form::wrong_with(&node.to_json()) {
        node.report(wrong, problems);
    }
}

fn all_texts(items: &toml::de::DeArray<'_>) -> bool {
    items.iter().all(|item| item.get_ref().is_str())
}

fn all_tables(items: &[Value<'_>]) -> bool {
    items.iter().all(|item| item.get_ref().is_table())
}

/// The tables of a list, each with its place. A list written as `[[x]]` spans no bytes of its own.
pub(crate) fn tables_of<'a, 't>(
    items: &'a [Value<'t>],
) -> impl Iterator<Item = (&'a DeTable<'t>, Range<usize>)> {
    items.iter().filter_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some((table, item.span())),
        _ => None,
    })
}

/// What a shape accepts, in words.
pub(super) fn expectation(shape: &Shape) -> String {
    match shape {
        Shape::Text | Shape::Template => "text in quotes".to_owned(),
        Shape::Boolean => "true or false".to_owned(),
        Shape::Integer { least, most: i64::MAX } => format!("a whole number of at least {least}"),
        Shape::Integer { least, most } => format!("a whole number from {least} to {most}"),
        Shape::Connections { most } => {
            format!("a whole number from 1 to {most}, or text such as \"4-20-80\"")
        }
        Shape::Number { least, most: f64::MAX } => format!("a number of at least {least}"),
        Shape::Number { least, most } => format!("a number from {least} to {most}"),
        Shape::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            words.join(" or ")
        }
        Shape::Texts { some: true } => "a list of at least one text".to_owned(),
        Shape::Texts { some: false } => "a list of texts".to_owned(),
        Shape::Words(words) => format!("a list of some of {}", words.join(", ")),
        Shape::TextMap => "a table of texts".to_owned(),
        Shape::TextLists => "a table of lists of texts".to_owned(),
        Shape::Table(_) | Shape::Open => "a table".to_owned(),
        Shape::TextOrOpen => "text in quotes or a table".to_owned(),
        Shape::Any => "a value".to_owned(),
        Shape::Named(_) => "tables under names of your own".to_owned(),
        Shape::Tables(_) | Shape::OpenList | Shape::Checks => "a list of tables".to_owned(),
    }
}

/// What was written, in words.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(answer) => answer.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

pub(super) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// Typed reading of a table that has been validated.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a, 't> {
    table: &'a DeTable<'t>,
    /// Where the table is.
    pub(crate) span: Range<usize>,
}

/// A value and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

impl<'a, 't> Node<'a, 't> {
    pub(crate) fn new(table: &'a DeTable<'t>, span: Range<usize>) -> Node<'a, 't> {
        Node { table, span }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value<'t>> {
        self.table.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<At<&'a str>> {
        let value = self.get(name)?;
        Some(At { value: value.get_ref().as_str()?, span: value.span() })
    }

    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        self.get(name)?.get_ref().as_bool()
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        integer(self.get(name)?)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        number(self.get(name)?)
    }

    /// A number exactly as it was written, for what must not pass through floating point.
    pub(crate) fn decimal(&self, name: &str) -> Option<At<&'a str>> {
        let value = self.get(name)?;
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return None,
        };
        Some(At { value: text, span: value.span() })
    }

    pub(crate) fn texts(&self, name: &str) -> Option<Vec<At<&'a str>>> {
        let items = self.get(name)?.get_ref().as_array()?;
        let text = |item: &'a Value<'t>| {
            item.get_ref().as_str().map(|value| At { value, span: item.span() })
        };
        items.iter().map(text).collect()
    }

    pub(crate) fn text_map(&self, name: &str) -> Vec<(String, String)> {
        let entries = self.get(name).and_then(|value| value.get_ref().as_table());
        entries
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| {
                Some((key.get_ref().to_string(), value.get_ref().as_str()?.to_owned()))
            })
            .collect()
    }

    pub(crate) fn table(&self, name: &str) -> Option<Node<'a, 't>> {
        let value = self.get(name)?;
        Some(Node { table: value.get_ref().as_table()?, span: value.span() })
    }

    pub(crate) fn tables(&self, name: &str) -> Vec<Node<'a, 't>> {
        let items = self.get(name).and_then(|value| value.get_ref().as_array());
        let items: &'a [Value<'t>] = items.map_or(&[], |items| items);
        tables_of(items).map(|(table, span)| Node { table, span }).collect()
    }

    /// The tables under names of the user's choice.
    pub(crate) fn named(&self, name: &str) -> Vec<(At<&'a str>, Node<'a, 't>)> {
        let entries = self.get(name).and_then(|value| value.get_ref().as_table());
        entries
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| {
                let name = At { value: key.get_ref().as_ref(), span: key.span() };
                let table = value.get_ref().as_table()?;
                Some((name, Node { table, span: value.span() }))
            })
            .collect()
    }

    /// The keys of the table, in the order of the file.
    pub(crate) fn keys(&self) -> Vec<At<&'a str>> {
        let key = |key: &'a Spanned<std::borrow::Cow<'t, str>>| At {
            value: key.get_ref().as_ref(),
            span: key.span(),
        };
        let mut keys: Vec<_> = self.table.iter().map(|(name, _)| key(name)).collect();
        keys.sort_by_key(|key| key.span.start);
        keys
    }

    /// Adds what is wrong with a table of checks, in its place.
    pub(crate) fn report(&self, wrong: Wrong, problems: &mut Problems<'_>) {
        let entry = wrong.key.as_ref().and_then(|name| {
            self.table.iter().find(|(key, _)| key.get_ref().as_ref() == name.as_str())
        });
        let span = match entry {
            Some((key, _)) if wrong.is_unknown => key.span(),
            Some((_, value)) => value.span(),
            None => self.span.clone(),
        };
        problems.at(span, wrong.message).hint = wrong.hint;
    }

    /// The table itself.
    pub(crate) fn entries(&self) -> &'a DeTable<'t> {
        self.table
    }

    /// The whole table as JSON.
    pub(crate) fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        table_to_json(self.table)
    }
}

fn integer(value: &Value<'_>) -> Option<i64> {
    let number = value.get_ref().as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(_) => integer(value).map(|number| number as f64),
        _ => None,
    }
}

pub(crate) fn table_to_json(table: &DeTable<'_>) -> serde_json::Map<String, serde_json::Value> {
    table.iter().map(|(key, value)| (key.get_ref().to_string(), value_to_json(value))).collect()
}

fn value_to_json(value: &Value<'_>) -> serde_json::Value {
    match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(_) => integer(value).into(),
        DeValue::Float(_) => number(value).into(),
        DeValue::Boolean(answer) => (*answer).into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(value_to_json).collect(),
        DeValue::Table(table) => table_to_json(table).into(),
    }
}
