//! Reading the fields of answers: their types, options, bounds and defaults.

use super::read::{Entry, OUTPUT_HINT, Reader, json, suggest};
use super::{Field, FieldType};
use crate::validate;
use serde_json::Value;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Everything that can be said of a field.
pub const FIELD_KEYS: [&str; 8] =
    ["type", "description", "required", "enum", "min", "max", "default", "items"];

/// Names that answers cannot have: the id of an item, and why there is no answer.
const TAKEN: [&str; 2] = ["id", "error"];

impl Reader<'_> {
    /// The tables under `[output]` or `[batch]`, in the order in which they are written.
    pub(super) fn fields(&mut self, entry: &Entry<'_>, name: &str) -> Option<Vec<Field>> {
        let DeValue::Table(table) = entry.get_ref() else {
            return self.say(entry.span(), format!("`{name}` is not a table"), Some(OUTPUT_HINT));
        };
        if table.is_empty() {
            return self.say(entry.span(), format!("`{name}` has no fields"), Some(OUTPUT_HINT));
        }
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Some(entries.into_iter().filter_map(|(key, field)| self.field(key, field)).collect())
    }

    fn field(&mut self, key: &Spanned<Cow<'_, str>>, entry: &Entry<'_>) -> Option<Field> {
        let name = key.get_ref().as_ref();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_plain || name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            let hint = "letters, digits and underscores, and no digit first";
            return self.say(key.span(), format!("`{name}` cannot be a field"), Some(hint));
        }
        if TAKEN.contains(&name) {
            let hint = "every item has an `id`, and every row an `error`; take another name";
            return self.say(key.span(), format!("the name `{name}` is taken"), Some(hint));
        }
        let DeValue::Table(table) = entry.get_ref() else {
            let hint = "such as { type = \"string\" }";
            return self.say(entry.span(), format!("`{name}` is not a table"), Some(hint));
        };
        self.only(table, &FIELD_KEYS, &format!("`{name}`"));
        let kind = match table.get("type") {
            Some(kind) => self.kind(kind, "type")?,
            None => {
                return self.say(key.span(), format!("`{name}` has no `type`"), Some(&all_types()));
            }
        };
        let mut field = Field::new(name, kind);
        field.description = self.optional(table, "description", Reader::text);
        field.required = self.optional(table, "required", Reader::boolean).unwrap_or(true);
        field.min = self.optional(table, "min", Reader::number);
        field.max = self.optional(table, "max", Reader::number);
        if let Some(items) = table.get("items") {
            field.items = self.kind(items, "items")?;
        }
        self.bounds(&field, table);
        if let Some(options) = table.get("enum") {
            field.options = self.options(&field, options);
        }
        if let Some(default) = table.get("default") {
            field.default = self.fitting(&field, default, "default");
        }
        Some(field)
    }

    fn bounds(&mut self, field: &Field, table: &DeTable<'_>) {
        let has_size = !matches!(field.kind, FieldType::Boolean | FieldType::Object);
        for (name, bound) in [("min", field.min), ("max", field.max)] {
            let (Some(bound), Some(entry)) = (bound, table.get(name)) else { continue };
            let is_length = !field.kind.is_number();
            if !has_size {
                self.say::<()>(entry.span(), format!("a {} has no `{name}`", field.kind), None);
            } else if is_length && (bound < 0.0 || bound.fract() != 0.0) {
                self.say::<()>(entry.span(), format!("`{name}` is not a length"), None);
            }
        }
        if let (Some(least), Some(most), Some(entry)) = (field.min, field.max, table.get("max"))
            && (least > most || field.kind == FieldType::Integer && least.ceil() > most.floor())
        {
            let message = match least > most {
                true => "`max` is below `min`",
                false => "there is no whole number from `min` to `max`",
            };
            self.say::<()>(entry.span(), message, None);
        }
        if let (Some(entry), false) = (table.get("items"), field.kind == FieldType::Array) {
            self.say::<()>(entry.span(), "`items` is for arrays", None);
        }
    }

    fn options(&mut self, field: &Field, entry: &Entry<'_>) -> Option<Vec<Value>> {
        if matches!(field.kind, FieldType::Array | FieldType::Object) {
            let message = format!("an {} has no `enum`", field.kind);
            return self.say(entry.span(), message, None);
        }
        let DeValue::Array(options) = entry.get_ref() else {
            let hint = "such as [\"yes\", \"no\"]";
            return self.say(entry.span(), "`enum` is not a list", Some(hint));
        };
        if options.is_empty() {
            return self.say(entry.span(), "`enum` is empty", None);
        }
        let mut read: Vec<Value> = Vec::new();
        for option in options {
            let Some(value) = self.fitting(field, option, "enum") else { continue };
            if read.iter().any(|earlier| validate::same(earlier, &value)) {
                self.say::<()>(option.span(), format!("{value} comes twice in `enum`"), None);
            }
            read.push(value);
        }
        Some(read)
    }

    /// A value that must itself be a good answer.
    fn fitting(&mut self, field: &Field, entry: &Entry<'_>, name: &str) -> Option<Value> {
        let value = json(entry);
        match validate::strictly(field, &value) {
            Ok(()) => Some(value),
            Err(reason) => self.say(entry.span(), format!("`{name}` {reason}"), None),
        }
    }

    fn kind(&mut self, entry: &Entry<'_>, name: &str) -> Option<FieldType> {
        let word = self.text(entry, name)?;
        let found = FieldType::ALL.into_iter().find(|kind| kind.as_str() == word);
        let message = format!("`{word}` is no type");
        found.or_else(|| {
            let hint = suggest(&word, &FieldType::ALL.map(FieldType::as_str));
            self.say(entry.span(), message, Some(&hint))
        })
    }
}

fn all_types() -> String {
    let all = FieldType::ALL.map(|kind| format!("`{kind}`"));
    format!("one of {}", all.join(", "))
}
