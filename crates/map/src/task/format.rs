//! The forms in which models reply, and the names that each needs for itself.

use super::{Field, FieldType, Task};
use std::fmt;
use std::str::FromStr;

/// How the model writes its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// JSON, with the provider's structured output where it has it.
    #[default]
    Json,
    /// XML.
    Xml,
    /// YAML.
    Yaml,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Json, Format::Xml, Format::Yaml];

    /// As it is written in a task.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Xml => "xml",
            Format::Yaml => "yaml",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let found = Format::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is no format; write json, xml or yaml"))
    }
}

/// Why a field of that name cannot be told from what the form itself consists of.
pub(super) fn taken(task: &Task, format: Format, name: &str) -> Option<String> {
    if format != Format::Xml {
        return None;
    }
    let is_list = |field: &Field| field.kind == FieldType::Array;
    let has_lists = task.output.iter().chain(&task.batch).any(is_list);
    let meaning = match name {
        "item" => "an item",
        "batch" if !task.batch.is_empty() => "what is said once for all items",
        "value" if has_lists => "a value of a list",
        _ => return None,
    };
    Some(format!("a field cannot be called `{name}` in XML, where <{name}> is {meaning}"))
}
