//! Reply formats, and the field names that are reserved in them.

use super::{Field, FieldType, Task};
use std::fmt;
use std::str::FromStr;

/// Format of a model's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyFormat {
    /// JSON, with structured output if the provider supports it.
    #[default]
    Json,
    /// XML.
    Xml,
    /// YAML.
    Yaml,
}

impl ReplyFormat {
    /// All formats.
    pub const ALL: [ReplyFormat; 3] = [ReplyFormat::Json, ReplyFormat::Xml, ReplyFormat::Yaml];

    /// Returns the name used in task files.
    pub fn as_str(self) -> &'static str {
        match self {
            ReplyFormat::Json => "json",
            ReplyFormat::Xml => "xml",
            ReplyFormat::Yaml => "yaml",
        }
    }
}

impl fmt::Display for ReplyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ReplyFormat {
    type Err = ParseReplyFormatError;

    fn from_str(text: &str) -> Result<ReplyFormat, ParseReplyFormatError> {
        let found = ReplyFormat::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| ParseReplyFormatError(text.to_owned()))
    }
}

/// A text is not the name of a reply format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`: expected json, xml or yaml")]
pub struct ParseReplyFormatError(String);

/// A field has a name that is reserved in the reply format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field name `{name}` is reserved in XML: <{name}> is {meaning}")]
pub struct ReservedNameError {
    name: String,
    meaning: &'static str,
}

/// Checks that a field name does not clash with an element of the reply format.
pub(super) fn check_name(
    task: &Task,
    format: ReplyFormat,
    name: &str,
) -> Result<(), ReservedNameError> {
    if format != ReplyFormat::Xml {
        return Ok(());
    }
    let is_array = |field: &Field| field.kind == FieldType::Array;
    let has_arrays = task.output.iter().chain(&task.batch).any(is_array);
    let meaning = match name {
        "item" => "an item",
        "batch" if !task.batch.is_empty() => "the element for batch values",
        "value" if has_arrays => "a value of an array",
        _ => return Ok(()),
    };
    Err(ReservedNameError { name: name.to_owned(), meaning })
}
