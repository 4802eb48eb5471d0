//! The task: instructions and answer fields, read from a task file.

mod field;
mod format;
mod parser;
#[cfg(test)]
mod tests;

pub use field::{Field, FieldType};
pub use format::{ParseReplyFormatError, ReplyFormat, ReservedNameError};
pub use parser::{FIELD_KEYS, TASK_KEYS, TaskError, TaskProblem};

use std::fmt;
use std::str::FromStr;

/// Default maximum of tokens of a request, prompt and reply together.
pub(crate) const DEFAULT_REQUEST_TOKENS: u64 = 8000;

/// Instructions, the input fields that the model sees, and the fields of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Instructions for each item.
    pub instructions: String,
    /// System prompt.
    pub system: Option<String>,
    /// Input fields that the model sees; all if absent.
    pub show: Option<Vec<ShownField>>,
    /// Fields of the answer for each item, in this order.
    pub output: Vec<Field>,
    /// Fields given once for all items of a request.
    pub batch: Vec<Field>,
    /// Format of the reply.
    pub format: ReplyFormat,
    /// Items per request.
    pub pack: PackSize,
    /// Tokens of the answer for one item; estimated from `output` if absent.
    pub tokens_per_item: Option<u64>,
    /// Maximum tokens of a request with several items, prompt and reply together.
    pub max_tokens_per_request: u64,
    /// Context window of the model in tokens. Larger requests are not sent.
    pub context_tokens: Option<u64>,
    /// Maximum tokens of a reply, as sent to the provider.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Whether to use the provider's structured output with JSON; if absent, where it is known to be
    /// supported.
    pub structured: Option<bool>,
    /// Key of each row under which its answer is put; beside the row's fields if absent.
    pub into: Option<String>,
}

/// An input field that the model sees.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownField {
    /// Name of the field.
    pub field: String,
    /// Maximum number of characters; longer values are cut.
    pub max_chars: Option<usize>,
}

impl fmt::Debug for ShownField {
    /// Formats the field under the name `Shown`, because [`Task::digest`] hashes this text and journals
    /// hold digests with that name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Shown");
        shown.field("field", &self.field).field("max_chars", &self.max_chars).finish()
    }
}

/// Number of items per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PackSize {
    /// Chosen from the limits of the model.
    #[default]
    Auto,
    /// At most this number.
    Items(u32),
}

impl PackSize {
    /// Maximum number of items. No model handles more in one request.
    pub const MAX_ITEMS: u32 = 1000;
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
    type Err = ParsePackSizeError;

    fn from_str(text: &str) -> Result<PackSize, ParsePackSizeError> {
        if text == "auto" {
            return Ok(PackSize::Auto);
        }
        let items = text.parse().ok().filter(|items| (1..=PackSize::MAX_ITEMS).contains(items));
        items.map(PackSize::Items).ok_or_else(|| ParsePackSizeError(text.to_owned()))
    }
}

/// A text is not a pack size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid pack size `{0}`: expected 1 to {max} or `auto`", max = PackSize::MAX_ITEMS)]
pub struct ParsePackSizeError(String);

impl Default for Task {
    /// Returns a task without instructions and answer fields.
    fn default() -> Task {
        Task::new("", Vec::new())
    }
}

impl Task {
    /// Creates a task with default settings.
    pub fn new(instructions: &str, output: Vec<Field>) -> Task {
        Task {
            instructions: instructions.to_owned(),
            system: None,
            show: None,
            output,
            batch: Vec::new(),
            format: ReplyFormat::Json,
            pack: PackSize::Auto,
            tokens_per_item: None,
            max_tokens_per_request: DEFAULT_REQUEST_TOKENS,
            context_tokens: None,
            max_tokens: None,
            temperature: None,
            structured: None,
            into: None,
        }
    }

    /// Parses a task file.
    ///
    /// # Errors
    ///
    /// Fails with all problems of the file, each with its position.
    pub fn parse(text: &str) -> Result<Task, TaskError> {
        parser::parse(text)
    }

    /// Returns the tokens of the answer for one item.
    pub fn output_tokens_per_item(&self) -> u64 {
        // The id and its delimiters.
        const ID_TOKENS: u64 = 8;
        let fields = self.output.iter().map(Field::estimate_tokens);
        self.tokens_per_item.unwrap_or_else(|| fields.fold(ID_TOKENS, u64::saturating_add))
    }

    /// Checks that replies can be written in a format.
    ///
    /// Parsing checks the format of the task file; this is for a format chosen later.
    ///
    /// # Errors
    ///
    /// Fails if the name of a field is reserved in the format.
    pub fn check_format(&self, format: ReplyFormat) -> Result<(), ReservedNameError> {
        let mut names = self.output.iter().chain(&self.batch).map(|field| &field.name);
        names.try_for_each(|name| format::check_name(self, format, name))
    }

    /// Returns a digest of everything that answers depend on, except format and pack size, which are
    /// part of the plan of a job.
    pub fn digest(&self) -> String {
        let neutral =
            Task { format: ReplyFormat::default(), pack: PackSize::default(), ..self.clone() };
        // The `Debug` text has every field. Its names are part of the journal format: see the test that
        // pins a digest.
        let hash = blake3::hash(format!("{neutral:?}").as_bytes());
        hash.to_hex().chars().take(16).collect()
    }
}
