//! Reading a task file: every problem with its place and, where there is one, a suggestion.

use super::{PackSize, Shown, Task, format};
use serde_json::Value;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something that is wrong with a task file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProblem {
    /// What.
    pub message: String,
    /// The bytes of the file that are meant.
    pub span: Range<usize>,
    /// What to write instead.
    pub hint: Option<String>,
}

pub(super) type Entry<'t> = Spanned<DeValue<'t>>;

/// Everything that can stand in a task.
pub const KEYS: [&str; 14] = [
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
const SHOWN_KEYS: [&str; 2] = ["field", "max_chars"];

pub(super) fn read(text: &str) -> Result<Task, Vec<TaskProblem>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut problems: Vec<TaskProblem> = errors
        .iter()
        .map(|error| TaskProblem {
            message: format!("not TOML: {}", error.message()),
            span: error.span().unwrap_or(0..0),
            hint: None,
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut reader = Reader { problems: &mut problems };
    let task = reader.task(tree.get_ref());
    problems.sort_by_key(|problem| problem.span.start);
    match (task, problems.is_empty()) {
        (Some(task), true) => Ok(task),
        _ => Err(problems),
    }
}

pub(super) struct Reader<'p> {
    problems: &'p mut Vec<TaskProblem>,
}

impl Reader<'_> {
    fn task(&mut self, table: &DeTable<'_>) -> Option<Task> {
        self.only(table, &KEYS, "the task");
        let instructions = match table.get("instructions") {
            Some(entry) => self.text(entry, "instructions"),
            None => {
                self.say(0..0, "the task has no `instructions`", Some("what to do with each item"))
            }
        };
        if let (Some(text), Some(entry)) = (&instructions, table.get("instructions"))
            && text.trim().is_empty()
        {
            self.say::<()>(entry.span(), "`instructions` are empty", None);
        }
        let output = match table.get("output") {
            Some(entry) => self.fields(entry, "output"),
            None => self.say(0..0, "the task has no `output`", Some(OUTPUT_HINT)),
        };
        let mut task = Task::new(&instructions.unwrap_or_default(), output.unwrap_or_default());
        if let Some(entry) = table.get("batch") {
            task.batch = self.fields(entry, "batch").unwrap_or_default();
        }
        if let Some(entry) = table.get("show") {
            task.show = self.shown(entry);
        }
        if let Some(entry) = table.get("format") {
            let format = self.text(entry, "format");
            task.format =
                format.and_then(|word| self.word(entry, word.parse())).unwrap_or_default();
        }
        if let Some(entry) = table.get("pack") {
            task.pack = self.pack(entry).unwrap_or_default();
        }
        task.system = self.optional(table, "system", Reader::text);
        task.into = self.optional(table, "into", Reader::text);
        if let (Some(into), Some(entry)) = (&task.into, table.get("into"))
            && into.trim().is_empty()
        {
            self.say::<()>(entry.span(), "`into` is empty", Some("such as \"answer\""));
        }
        task.tokens_per_item = self.optional(table, "tokens_per_item", Reader::count);
        task.context_tokens = self.optional(table, "context_tokens", Reader::count);
        task.max_tokens = self.optional(table, "max_tokens", Reader::count);
        task.structured = self.optional(table, "structured", Reader::boolean);
        task.temperature = self.optional(table, "temperature", Reader::number);
        if let Some(tokens) = self.optional(table, "max_tokens_per_request", Reader::count) {
            task.max_tokens_per_request = tokens;
        }
        for name in ["output", "batch"] {
            self.names(table, name, &task);
        }
        Some(task)
    }

    /// Refuses fields whose names the format needs.
    fn names(&mut self, table: &DeTable<'_>, name: &str, task: &Task) {
        let Some(DeValue::Table(fields)) = table.get(name).map(Spanned::get_ref) else { return };
        for (key, _) in fields {
            if let Some(problem) = format::taken(task, task.format, key.get_ref()) {
                let hint = "take another name, or `format = \"json\"`";
                self.say::<()>(key.span(), problem, Some(hint));
            }
        }
    }

    fn shown(&mut self, entry: &Entry<'_>) -> Option<Vec<Shown>> {
        let hint = "such as [\"title\", { field = \"body\", max_chars = 500 }]";
        let DeValue::Array(entries) = entry.get_ref() else {
            return self.say(entry.span(), "`show` is not a list of fields", Some(hint));
        };
        let mut shown: Vec<Shown> = Vec::new();
        for entry in entries {
            let next = match entry.get_ref() {
                DeValue::String(field) => Shown { field: field.to_string(), max_chars: None },
                DeValue::Table(table) => {
                    self.only(table, &SHOWN_KEYS, "a field to show");
                    let Some(field) = table.get("field") else {
                        self.say::<()>(entry.span(), "a field to show has no `field`", Some(hint));
                        continue;
                    };
                    let field = self.text(field, "field")?;
                    let most = self.optional(table, "max_chars", Reader::count);
                    let max_chars = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
                    Shown { field, max_chars }
                }
                _ => self.say(entry.span(), "not a field to show", Some(hint))?,
            };
            if shown.iter().any(|earlier| earlier.field == next.field) {
                let message = format!("`{}` is shown twice", next.field);
                self.say::<()>(entry.span(), message, None);
            }
            shown.push(next);
        }
        if shown.is_empty() {
            return self.say(entry.span(), "`show` is empty", Some("leave it out to show all"));
        }
        Some(shown)
    }

    fn pack(&mut self, entry: &Entry<'_>) -> Option<PackSize> {
        let word = match entry.get_ref() {
            DeValue::String(word) => word.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            _ => String::new(),
        };
        self.word(entry, word.parse())
    }

    pub(super) fn only(&mut self, table: &DeTable<'_>, known: &[&str], name: &str) {
        for (key, _) in table {
            let word = key.get_ref().as_ref();
            if !known.contains(&word) {
                let message = format!("unknown key `{word}` in {name}");
                self.say::<()>(key.span(), message, Some(&suggest(word, known)));
            }
        }
    }

    pub(super) fn optional<T>(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        read: fn(&mut Self, &Entry<'_>, &str) -> Option<T>,
    ) -> Option<T> {
        table.get(name).and_then(|entry| read(self, entry, name))
    }

    pub(super) fn text(&mut self, entry: &Entry<'_>, name: &str) -> Option<String> {
        match entry.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.say(entry.span(), format!("`{name}` is not a text"), None),
        }
    }

    pub(super) fn boolean(&mut self, entry: &Entry<'_>, name: &str) -> Option<bool> {
        match entry.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.say(entry.span(), format!("`{name}` is not true or false"), None),
        }
    }

    pub(super) fn number(&mut self, entry: &Entry<'_>, name: &str) -> Option<f64> {
        let number = json(entry).as_f64();
        number.or_else(|| self.say(entry.span(), format!("`{name}` is not a number"), None))
    }

    fn count(&mut self, entry: &Entry<'_>, name: &str) -> Option<u64> {
        let number = json(entry).as_u64().filter(|number| *number > 0);
        let message = format!("`{name}` is not a whole number above 0");
        number.or_else(|| self.say(entry.span(), message, None))
    }

    fn word<T>(&mut self, entry: &Entry<'_>, read: Result<T, String>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(message) => self.say(entry.span(), message, None),
        }
    }

    pub(super) fn say<T>(
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

pub(super) const OUTPUT_HINT: &str = "such as [output.label] with type = \"string\"";

/// The most similar of the known words, or all of them.
pub(super) fn suggest(word: &str, known: &[&str]) -> String {
    const SIMILAR: f64 = 0.7;
    let best = known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None => {
            let all: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            format!("known here: {}", all.join(", "))
        }
    }
}

/// TOML as JSON; times are texts.
pub(super) fn json(entry: &Entry<'_>) -> Value {
    match entry.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(json).collect()),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}
