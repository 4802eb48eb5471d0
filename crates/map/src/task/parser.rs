//! Parsing a task file. All problems are collected, each with its position and, if possible, a suggestion.

use super::{Field, FieldType, PackSize, ShownField, Task, format};
use crate::validate;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A task file is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskError {
    /// All problems, in the order of the file. There is at least one.
    pub problems: Vec<TaskProblem>,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid task: ")?;
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for TaskError {}

/// A problem in a task file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProblem {
    /// Message.
    pub message: String,
    /// Byte range in the file.
    pub span: Range<usize>,
    /// Suggestion for a fix.
    pub hint: Option<String>,
}

type Entry<'t> = Spanned<DeValue<'t>>;

/// Keys of a task file.
pub const TASK_KEYS: [&str; 14] = [
    "instructions",
    "system",
    "show",
    "output",
    "batch",
    "format",
    "pack",
    "tokens_per_item",
    "max_tokens_per_request",
    "context_tokens",
    "max_tokens",
    "temperature",
    "structured",
    "into",
];

/// Keys of an answer field.
pub const FIELD_KEYS: [&str; 8] =
    ["type", "description", "required", "enum", "min", "max", "default", "items"];

/// Keys of an entry in `show`.
const SHOW_KEYS: [&str; 2] = ["field", "max_chars"];

/// Names that answer fields cannot have: the id of an item, and the reason why a row has no answer.
const RESERVED_NAMES: [&str; 2] = ["id", "error"];

const OUTPUT_HINT: &str = "such as [output.label] with type = \"string\"";

/// Parses a task file.
pub(super) fn parse(text: &str) -> Result<Task, TaskError> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let problems: Vec<TaskProblem> = errors
        .iter()
        .map(|error| TaskProblem {
            message: format!("not TOML: {}", error.message()),
            span: error.span().unwrap_or(0..0),
            hint: None,
        })
        .collect();
    if !problems.is_empty() {
        return Err(TaskError { problems });
    }
    let mut parser = TaskParser { problems };
    let task = parser.task(tree.get_ref());
    let mut problems = parser.problems;
    problems.sort_by_key(|problem| problem.span.start);
    match problems.is_empty() {
        true => Ok(task),
        false => Err(TaskError { problems }),
    }
}

/// Parser that collects problems. Methods return `None` after reporting one.
struct TaskParser {
    problems: Vec<TaskProblem>,
}

impl TaskParser {
    fn task(&mut self, table: &DeTable<'_>) -> Task {
        self.check_keys(table, &TASK_KEYS, "the task");
        let instructions = match table.get("instructions") {
            Some(entry) => self.string(entry, "instructions"),
            None => self.report(
                0..0,
                "the task has no `instructions`",
                Some("describe what to do with each item"),
            ),
        };
        if let (Some(text), Some(entry)) = (&instructions, table.get("instructions"))
            && text.trim().is_empty()
        {
            self.report::<()>(entry.span(), "`instructions` is empty", None);
        }
        let output = match table.get("output") {
            Some(entry) => self.fields(entry, "output"),
            None => self.report(0..0, "the task has no `output`", Some(OUTPUT_HINT)),
        };
        let mut task = Task::new(&instructions.unwrap_or_default(), output.unwrap_or_default());
        if let Some(entry) = table.get("batch") {
            task.batch = self.fields(entry, "batch").unwrap_or_default();
        }
        if let Some(entry) = table.get("show") {
            task.show = self.shown_fields(entry);
        }
        if let Some(entry) = table.get("format") {
            let format = self.string(entry, "format");
            task.format =
                format.and_then(|text| self.parsed(entry, text.parse())).unwrap_or_default();
        }
        if let Some(entry) = table.get("pack") {
            task.pack = self.pack_size(entry).unwrap_or_default();
        }
        task.system = self.optional(table, "system", TaskParser::string);
        task.into = self.optional(table, "into", TaskParser::string);
        if let (Some(into), Some(entry)) = (&task.into, table.get("into"))
            && into.trim().is_empty()
        {
            self.report::<()>(entry.span(), "`into` is empty", Some("such as \"answer\""));
        }
        task.tokens_per_item = self.optional(table, "tokens_per_item", TaskParser::count);
        task.context_tokens = self.optional(table, "context_tokens", TaskParser::count);
        task.max_tokens = self.optional(table, "max_tokens", TaskParser::count);
        task.structured = self.optional(table, "structured", TaskParser::boolean);
        task.temperature = self.optional(table, "temperature", TaskParser::number);
        if let Some(tokens) = self.optional(table, "max_tokens_per_request", TaskParser::count) {
            task.max_tokens_per_request = tokens;
        }
        for name in ["output", "batch"] {
            self.check_field_names(table, name, &task);
        }
        task
    }

    /// Reports fields with names that are reserved in the reply format.
    fn check_field_names(&mut self, table: &DeTable<'_>, name: &str, task: &Task) {
        let Some(DeValue::Table(fields)) = table.get(name).map(Spanned::get_ref) else { return };
        for (key, _) in fields {
            if let Err(error) = format::check_name(task, task.format, key.get_ref()) {
                let hint = "rename the field, or set `format = \"json\"`";
                self.report::<()>(key.span(), error.to_string(), Some(hint));
            }
        }
    }

    fn shown_fields(&mut self, entry: &Entry<'_>) -> Option<Vec<ShownField>> {
        let hint = "such as [\"title\", { field = \"body\", max_chars = 500 }]";
        let DeValue::Array(entries) = entry.get_ref() else {
            return self.report(entry.span(), "`show` is not a list of fields", Some(hint));
        };
        let mut shown: Vec<ShownField> = Vec::new();
        for entry in entries {
            let next = match entry.get_ref() {
                DeValue::String(field) => ShownField { field: field.to_string(), max_chars: None },
                DeValue::Table(table) => {
                    self.check_keys(table, &SHOW_KEYS, "an entry of `show`");
                    let Some(field) = table.get("field") else {
                        let message = "an entry of `show` has no `field`";
                        self.report::<()>(entry.span(), message, Some(hint));
                        continue;
                    };
                    let field = self.string(field, "field")?;
                    let max_chars = self.optional(table, "max_chars", TaskParser::count);
                    let max_chars = max_chars.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
                    ShownField { field, max_chars }
                }
                _ => self.report(entry.span(), "invalid entry of `show`", Some(hint))?,
            };
            if shown.iter().any(|earlier| earlier.field == next.field) {
                let message = format!("duplicate field `{}` in `show`", next.field);
                self.report::<()>(entry.span(), message, None);
            }
            shown.push(next);
        }
        if shown.is_empty() {
            return self.report(
                entry.span(),
                "`show` is empty",
                Some("omit it to show all fields"),
            );
        }
        Some(shown)
    }

    fn pack_size(&mut self, entry: &Entry<'_>) -> Option<PackSize> {
        let text = match entry.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            _ => String::new(),
        };
        self.parsed(entry, text.parse())
    }

    /// Parses the tables under `[output]` or `[batch]`, in the order of the file.
    fn fields(&mut self, entry: &Entry<'_>, name: &str) -> Option<Vec<Field>> {
        let DeValue::Table(table) = entry.get_ref() else {
            let message = format!("`{name}` is not a table");
            return self.report(entry.span(), message, Some(OUTPUT_HINT));
        };
        if table.is_empty() {
            return self.report(entry.span(), format!("`{name}` has no fields"), Some(OUTPUT_HINT));
        }
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Some(entries.into_iter().filter_map(|(key, field)| self.field(key, field)).collect())
    }

    fn field(&mut self, key: &Spanned<Cow<'_, str>>, entry: &Entry<'_>) -> Option<Field> {
        let name = key.get_ref().as_ref();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_plain || name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            let hint = "use letters, digits and underscores, and no digit first";
            return self.report(key.span(), format!("invalid field name `{name}`"), Some(hint));
        }
        if RESERVED_NAMES.contains(&name) {
            let hint = "every item has an `id`, and every row an `error`; rename the field";
            return self.report(key.span(), format!("field name `{name}` is reserved"), Some(hint));
        }
        let DeValue::Table(table) = entry.get_ref() else {
            let hint = "such as { type = \"string\" }";
            return self.report(entry.span(), format!("`{name}` is not a table"), Some(hint));
        };
        self.check_keys(table, &FIELD_KEYS, &format!("`{name}`"));
        let kind = match table.get("type") {
            Some(kind) => self.field_type(kind, "type")?,
            None => {
                let message = format!("`{name}` has no `type`");
                return self.report(key.span(), message, Some(&all_types()));
            }
        };
        let mut field = Field::new(name, kind);
        field.description = self.optional(table, "description", TaskParser::string);
        field.required = self.optional(table, "required", TaskParser::boolean).unwrap_or(true);
        field.min = self.optional(table, "min", TaskParser::number);
        field.max = self.optional(table, "max", TaskParser::number);
        if let Some(items) = table.get("items") {
            field.items = self.field_type(items, "items")?;
        }
        self.check_bounds(&field, table);
        if let Some(options) = table.get("enum") {
            field.options = self.options(&field, options);
        }
        if let Some(default) = table.get("default") {
            field.default = self.field_value(&field, default, "default");
        }
        Some(field)
    }

    fn check_bounds(&mut self, field: &Field, table: &DeTable<'_>) {
        let has_size = !matches!(field.kind, FieldType::Boolean | FieldType::Object);
        for (name, bound) in [("min", field.min), ("max", field.max)] {
            let (Some(bound), Some(entry)) = (bound, table.get(name)) else { continue };
            let is_length = !field.kind.is_number();
            if !has_size {
                let message = format!("`{name}` does not apply to type {}", field.kind);
                self.report::<()>(entry.span(), message, None);
            } else if is_length && (bound < 0.0 || bound.fract() != 0.0) {
                self.report::<()>(entry.span(), format!("`{name}` is not a length"), None);
            }
        }
        if let (Some(min), Some(max), Some(entry)) = (field.min, field.max, table.get("max"))
            && (min > max || field.kind == FieldType::Integer && min.ceil() > max.floor())
        {
            let message = match min > max {
                true => "`max` is below `min`",
                false => "no integer lies between `min` and `max`",
            };
            self.report::<()>(entry.span(), message, None);
        }
        if let (Some(entry), false) = (table.get("items"), field.kind == FieldType::Array) {
            self.report::<()>(entry.span(), "`items` applies only to type array", None);
        }
    }

    fn options(&mut self, field: &Field, entry: &Entry<'_>) -> Option<Vec<Value>> {
        if matches!(field.kind, FieldType::Array | FieldType::Object) {
            let message = format!("`enum` does not apply to type {}", field.kind);
            return self.report(entry.span(), message, None);
        }
        let DeValue::Array(options) = entry.get_ref() else {
            let hint = "such as [\"yes\", \"no\"]";
            return self.report(entry.span(), "`enum` is not a list", Some(hint));
        };
        if options.is_empty() {
            return self.report(entry.span(), "`enum` is empty", None);
        }
        let mut values: Vec<Value> = Vec::new();
        for option in options {
            let Some(value) = self.field_value(field, option, "enum") else { continue };
            if values.iter().any(|earlier| validate::is_equal(earlier, &value)) {
                let message = format!("duplicate value {value} in `enum`");
                self.report::<()>(option.span(), message, None);
            }
            values.push(value);
        }
        Some(values)
    }

    /// Parses a value that must be a valid answer of the field.
    fn field_value(&mut self, field: &Field, entry: &Entry<'_>, name: &str) -> Option<Value> {
        let value = to_json(entry);
        match validate::check_value(field, &value) {
            Ok(()) => Some(value),
            Err(reason) => self.report(entry.span(), format!("`{name}` {reason}"), None),
        }
    }

    fn field_type(&mut self, entry: &Entry<'_>, name: &str) -> Option<FieldType> {
        let text = self.string(entry, name)?;
        let found = FieldType::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.or_else(|| {
            let hint = suggest(&text, &FieldType::ALL.map(FieldType::as_str));
            self.report(entry.span(), format!("unknown type `{text}`"), Some(&hint))
        })
    }

    /// Reports keys that are not known.
    fn check_keys(&mut self, table: &DeTable<'_>, known: &[&str], name: &str) {
        for (key, _) in table {
            let key_name = key.get_ref().as_ref();
            if !known.contains(&key_name) {
                let message = format!("unknown key `{key_name}` in {name}");
                self.report::<()>(key.span(), message, Some(&suggest(key_name, known)));
            }
        }
    }

    fn optional<T>(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        parse: fn(&mut Self, &Entry<'_>, &str) -> Option<T>,
    ) -> Option<T> {
        table.get(name).and_then(|entry| parse(self, entry, name))
    }

    fn string(&mut self, entry: &Entry<'_>, name: &str) -> Option<String> {
        match entry.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.report(entry.span(), format!("`{name}` is not a string"), None),
        }
    }

    fn boolean(&mut self, entry: &Entry<'_>, name: &str) -> Option<bool> {
        match entry.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.report(entry.span(), format!("`{name}` is not true or false"), None),
        }
    }

    fn number(&mut self, entry: &Entry<'_>, name: &str) -> Option<f64> {
        let number = to_json(entry).as_f64();
        number.or_else(|| self.report(entry.span(), format!("`{name}` is not a number"), None))
    }

    fn count(&mut self, entry: &Entry<'_>, name: &str) -> Option<u64> {
        let number = to_json(entry).as_u64().filter(|number| *number > 0);
        let message = format!("`{name}` is not a whole number above 0");
        number.or_else(|| self.report(entry.span(), message, None))
    }

    fn parsed<T>(
        &mut self,
        entry: &Entry<'_>,
        result: Result<T, impl std::error::Error>,
    ) -> Option<T> {
        result.map_or_else(|error| self.report(entry.span(), error.to_string(), None), Some)
    }

    fn report<T>(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        hint: Option<&str>,
    ) -> Option<T> {
        let hint = hint.map(str::to_owned);
        self.problems.push(TaskProblem { message: message.into(), span, hint });
        None
    }
}

fn all_types() -> String {
    let all = FieldType::ALL.map(|kind| format!("`{kind}`"));
    format!("one of {}", all.join(", "))
}

/// Suggests the most similar known name, or lists all.
fn suggest(name: &str, known: &[&str]) -> String {
    const MIN_SIMILARITY: f64 = 0.7;
    let best = known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None => {
            let all: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("one of {}", all.join(", "))
        }
    }
}

/// Converts TOML to JSON. Dates and times become strings.
fn to_json(entry: &Entry<'_>) -> Value {
    match entry.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(to_json).collect()),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), to_json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}
