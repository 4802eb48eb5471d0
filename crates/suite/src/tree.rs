//! Validation and typed reading of a TOML tree by the tables of [`super::spec`].

use super::check_fields::{self, CheckProblem};
use super::spec::{Field, Section, ValueType};
use crate::problem::{Problems, suggest};
use bakeoff_pace::{AdaptiveBounds, Connections, ConnectionsError};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Value<'t> = Spanned<DeValue<'t>>;

/// Validates a table against its description.
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

/// Validates the keys that a table has; required keys may be missing.
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
    let expected = match (&field.value_type, value.get_ref()) {
        (ValueType::Text | ValueType::Template, DeValue::String(_))
        | (ValueType::Boolean, DeValue::Boolean(_))
        | (ValueType::OpenTable | ValueType::TextOrTable, DeValue::Table(_))
        | (ValueType::TextOrTable, DeValue::String(_))
        | (ValueType::Any, _) => return,
        (ValueType::Integer { min, max }, DeValue::Integer(_))
            if integer(value).is_some_and(|number| (*min..=*max).contains(&number)) =>
        {
            return;
        }
        (ValueType::Number { min, max }, _)
            if number(value).is_some_and(|number| (*min..=*max).contains(&number)) =>
        {
            return;
        }
        (ValueType::Connections { max }, DeValue::Integer(_))
            if integer(value).is_some_and(|number| (1..=i64::from(*max)).contains(&number)) =>
        {
            return;
        }
        (ValueType::Connections { max }, DeValue::String(text)) => {
            return validate_connections(text, *max, value.span(), field, problems);
        }
        (ValueType::Choice(words), DeValue::String(word)) if words.contains(&word.as_ref()) => {
            return;
        }
        (ValueType::AnyCaseChoice(words), DeValue::String(word))
            if words.iter().any(|known| known.eq_ignore_ascii_case(word)) =>
        {
            return;
        }
        (ValueType::Choice(words) | ValueType::AnyCaseChoice(words), DeValue::String(word)) => {
            let problem = problems.at(value.span(), format!("`{}` cannot be {word:?}", field.name));
            problem.code = field.code;
            problem.hint = suggest(word, words.iter().copied());
            return;
        }
        (ValueType::TextList { non_empty }, DeValue::Array(items))
            if items.iter().all(|item| item.get_ref().is_str())
                && !(*non_empty && items.is_empty()) =>
        {
            return;
        }
        (ValueType::ChoiceList(words), DeValue::Array(items))
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
        (ValueType::TextMap, DeValue::Table(entries))
            if entries.values().all(|entry| entry.get_ref().is_str()) =>
        {
            return;
        }
        (ValueType::TextListMap, DeValue::Table(entries)) => {
            let is_list = |value: &DeValue<'_>| value.as_array().is_some_and(all_texts);
            for (key, entry) in entries.iter().filter(|(_, entry)| !is_list(entry.get_ref())) {
                let (key, found) = (key.get_ref(), describe(entry.get_ref()));
                problems
                    .at(entry.span(), format!("`{key}` must be a list of strings, not {found}"))
                    .with_hint(format!("`{}`: {}", field.name, lower_first(field.about)));
            }
            return;
        }
        (ValueType::Table(section), DeValue::Table(table)) => {
            return validate(table, value.span(), section, &format!("[{}]", field.name), problems);
        }
        (ValueType::NamedTables(section), DeValue::Table(tables))
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
        (ValueType::Tables(section), DeValue::Array(items)) if all_tables(items) => {
            for (table, span) in tables_of(items) {
                validate(table, span, section, &format!("[[{}]]", field.name), problems);
            }
            return;
        }
        (ValueType::OpenTables, DeValue::Array(items)) if all_tables(items) => return,
        (ValueType::Checks, DeValue::Array(items)) if all_tables(items) => {
            for (table, span) in tables_of(items) {
                validate_check(table, span, problems);
            }
            return;
        }
        (value_type, _) => expectation(value_type),
    };
    let found = describe(value.get_ref());
    let problem =
        problems.at(value.span(), format!("`{}` must be {expected}, not {found}", field.name));
    problem.code = field.code;
    problem.hint = Some(format!("`{}`: {}", field.name, lower_first(field.about)));
}

fn validate_connections(
    text: &str,
    max: u32,
    span: Range<usize>,
    field: &Field,
    problems: &mut Problems<'_>,
) {
    let message = match text.parse() {
        Ok(Connections::Max(number) | Connections::Range(AdaptiveBounds { max: number, .. }))
            if number > max =>
        {
            format!("{number} is greater than the maximum {max}")
        }
        Ok(_) => return,
        Err(ConnectionsError::UnknownWord { text }) => format!("{text:?} is not a number"),
        Err(error) => error.to_string(),
    };
    let problem = problems.at(span, format!("`{}`: {message}", field.name));
    problem.code = field.code;
    problem.hint = Some(
        "use a number, or \"min-max\" or \"min-start-max\" with `strategy = \"adaptive\"`".into(),
    );
}

/// Validates a check, whose keys depend on its kind.
fn validate_check(table: &DeTable<'_>, span: Range<usize>, problems: &mut Problems<'_>) {
    let node = Node::new(table, span);
    for problem in check_fields::problems(&node.to_json()) {
        node.report(problem, problems);
    }
}

fn all_texts(items: &toml::de::DeArray<'_>) -> bool {
    items.iter().all(|item| item.get_ref().is_str())
}

fn all_tables(items: &[Value<'_>]) -> bool {
    items.iter().all(|item| item.get_ref().is_table())
}

/// Returns the tables of a list with their spans. A list written as `[[x]]` spans no bytes of its own.
pub(crate) fn tables_of<'a, 't>(
    items: &'a [Value<'t>],
) -> impl Iterator<Item = (&'a DeTable<'t>, Range<usize>)> {
    items.iter().filter_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some((table, item.span())),
        _ => None,
    })
}

/// Describes the values of a type, for messages.
pub(super) fn expectation(value_type: &ValueType) -> String {
    match value_type {
        ValueType::Text | ValueType::Template => "a string".to_owned(),
        ValueType::Boolean => "true or false".to_owned(),
        ValueType::Integer { min, max: i64::MAX } => format!("an integer of at least {min}"),
        ValueType::Integer { min, max } => format!("an integer from {min} to {max}"),
        ValueType::Connections { max } => {
            format!("an integer from 1 to {max}, or a string such as \"4-20-80\"")
        }
        ValueType::Number { min, max: f64::MAX } => format!("a number of at least {min}"),
        ValueType::Number { min, max } => format!("a number from {min} to {max}"),
        ValueType::Choice(words) | ValueType::AnyCaseChoice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            words.join(" or ")
        }
        ValueType::TextList { non_empty: true } => "a non-empty list of strings".to_owned(),
        ValueType::TextList { non_empty: false } => "a list of strings".to_owned(),
        ValueType::ChoiceList(words) => format!("a list of some of {}", words.join(", ")),
        ValueType::TextMap => "a table of strings".to_owned(),
        ValueType::TextListMap => "a table of lists of strings".to_owned(),
        ValueType::Table(_) | ValueType::OpenTable => "a table".to_owned(),
        ValueType::TextOrTable => "a string or a table".to_owned(),
        ValueType::Any => "a value".to_owned(),
        ValueType::NamedTables(_) => "a table of named tables".to_owned(),
        ValueType::Tables(_) | ValueType::OpenTables | ValueType::Checks => {
            "a list of tables".to_owned()
        }
    }
}

/// Describes a value, for messages.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string {text:?}"),
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
    // Acronyms such as `JSONPath` keep their case.
    if text.chars().nth(1).is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// Validated table with typed access to its values.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a, 't> {
    table: &'a DeTable<'t>,
    /// Position of the table.
    pub(crate) span: Range<usize>,
}

/// String of the suite file with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceText<'a> {
    pub(crate) value: &'a str,
    pub(crate) span: Range<usize>,
}

impl<'a, 't> Node<'a, 't> {
    pub(crate) fn new(table: &'a DeTable<'t>, span: Range<usize>) -> Node<'a, 't> {
        Node { table, span }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value<'t>> {
        self.table.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<SourceText<'a>> {
        let value = self.get(name)?;
        Some(SourceText { value: value.get_ref().as_str()?, span: value.span() })
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

    /// Returns a number as written in the file, for values that must not pass through floating point.
    pub(crate) fn decimal(&self, name: &str) -> Option<SourceText<'a>> {
        let value = self.get(name)?;
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return None,
        };
        Some(SourceText { value: text, span: value.span() })
    }

    pub(crate) fn texts(&self, name: &str) -> Option<Vec<SourceText<'a>>> {
        let items = self.get(name)?.get_ref().as_array()?;
        let text = |item: &'a Value<'t>| {
            item.get_ref().as_str().map(|value| SourceText { value, span: item.span() })
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

    /// Returns the tables with user-defined names.
    pub(crate) fn named(&self, name: &str) -> Vec<(SourceText<'a>, Node<'a, 't>)> {
        let entries = self.get(name).and_then(|value| value.get_ref().as_table());
        entries
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| {
                let name = SourceText { value: key.get_ref().as_ref(), span: key.span() };
                let table = value.get_ref().as_table()?;
                Some((name, Node { table, span: value.span() }))
            })
            .collect()
    }

    /// Returns the keys of the table in file order.
    pub(crate) fn keys(&self) -> Vec<SourceText<'a>> {
        let key = |key: &'a Spanned<std::borrow::Cow<'t, str>>| SourceText {
            value: key.get_ref().as_ref(),
            span: key.span(),
        };
        let mut keys: Vec<_> = self.table.iter().map(|(name, _)| key(name)).collect();
        keys.sort_by_key(|key| key.span.start);
        keys
    }

    /// Reports a problem of a check at the position of its key.
    pub(crate) fn report(&self, problem: CheckProblem, problems: &mut Problems<'_>) {
        let entry = problem.key.as_ref().and_then(|name| {
            self.table.iter().find(|(key, _)| key.get_ref().as_ref() == name.as_str())
        });
        let span = match entry {
            Some((key, _)) if problem.is_unknown_key => key.span(),
            Some((_, value)) => value.span(),
            None => self.span.clone(),
        };
        problems.at(span, problem.message).hint = problem.hint;
    }

    /// Returns the table.
    pub(crate) fn entries(&self) -> &'a DeTable<'t> {
        self.table
    }

    /// Returns the table as JSON.
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
