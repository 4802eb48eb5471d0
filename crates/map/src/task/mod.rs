//! What is asked about every row: the task file.

mod field;
mod fields;
mod format;
mod read;
#[cfg(test)]
mod tests;

pub use field::{Field, FieldType};
pub use fields::FIELD_KEYS;
pub use format::Format;
pub use read::{KEYS as TASK_KEYS, TaskProblem};

use std::fmt;
use std::str::FromStr;

/// Tokens of a request, prompt and reply together, when the task does not say.
const USUAL_BUDGET: u64 = 8000;

/// A task: instructions, what is shown of each row, and what each answer must look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// What to do with each item.
    pub instructions: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The fields that the model sees; all of them when absent.
    pub show: Option<Vec<Shown>>,
    /// What is answered about each item, in this order.
    pub output: Vec<Field>,
    /// What is answered once for all items of a request.
    pub batch: Vec<Field>,
    /// How the model writes its reply.
    pub format: Format,
    /// Items per request.
    pub pack: PackSize,
    /// Tokens of an answer about one item; estimated from `output` when absent.
    pub tokens_per_item: Option<u64>,
    /// Most tokens of a request with several items, prompt and reply together.
    pub max_tokens_per_request: u64,
    /// Most tokens that the model can take in one request; what needs more is not sent.
    pub context_tokens: Option<u64>,
    /// Most tokens of a reply, as the provider is told.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Whether the provider's structured output is used with JSON; where it is known to have it
    /// when absent.
    pub structured: Option<bool>,
    /// Answers are put under this key of each row; beside its fields when absent.
    pub into: Option<String>,
}

/// A field that the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its name.
    pub field: String,
    /// What is longer is cut.
    pub max_chars: Option<usize>,
}

/// Items per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PackSize {
    /// As the limits of the model suggest.
    #[default]
    Auto,
    /// At most so many.
    Items(u32),
}

impl PackSize {
    /// No model answers about more items at once.
    pub const MOST: u32 = 1000;
}

impl fmt::Display for PackSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackSize::Auto => f.write_str("auto"),
            PackSize::Items(items) => items.fmt(f),
        }
    }
}

impl FromStr for PackSize {
    type Err = String;

    fn from_str(text: &str) -> Result<PackSize, String> {
        if text == "auto" {
            return Ok(PackSize::Auto);
        }
        let items = text.parse().ok().filter(|items| (1..=PackSize::MOST).contains(items));
        items.map(PackSize::Items).ok_or_else(|| {
            format!("`{text}` is not a number of items from 1 to {}, or auto", PackSize::MOST)
        })
    }
}

impl Task {
    /// A task with these instructions and answers, and everything else as it usually is.
    pub fn new(instructions: &str, output: Vec<Field>) -> Task {
        Task {
            instructions: instructions.to_owned(),
            system: None,
            show: None,
            output,
            batch: Vec::new(),
            format: Format::Json,
            pack: PackSize::Auto,
            tokens_per_item: None,
            max_tokens_per_request: USUAL_BUDGET,
            context_tokens: None,
            max_tokens: None,
            temperature: None,
            structured: None,
            into: None,
        }
    }

    /// Reads a task file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with its place.
    pub fn parse(text: &str) -> Result<Task, Vec<TaskProblem>> {
        read::read(text)
    }

    /// Tokens of an answer about one item.
    pub fn output_tokens_per_item(&self) -> u64 {
        // The id, and what stands around it.
        const AROUND: u64 = 8;
        let fields = self.output.iter().map(Field::tokens).fold(AROUND, u64::saturating_add);
        self.tokens_per_item.unwrap_or(fields)
    }

    /// Whether replies can be written in that form. A task that is read from a file has been checked
    /// for its own; this is for one that is chosen later.
    ///
    /// # Errors
    ///
    /// Which field has a name that the form needs for itself.
    pub fn check_format(&self, format: Format) -> Result<(), String> {
        let names = self.output.iter().chain(&self.batch).map(|field| &field.name);
        match names.into_iter().find_map(|name| format::taken(self, format, name)) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    /// A name for everything that answers depend on. Which format and how many items are left out:
    /// the plan of a run has them.
    pub fn digest(&self) -> String {
        let neutral = Task { format: Format::default(), pack: PackSize::default(), ..self.clone() };
        // What is shown for debugging has every field, and only this program reads the digest.
        let hash = blake3::hash(format!("{neutral:?}").as_bytes());
        hash.to_hex().chars().take(16).collect()
    }
}
