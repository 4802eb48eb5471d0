//! Fields of `[cases]` and `[[check]]`.

use super::{Field, Section, Shape, optional, required};
use bakeoff_check::{KindInfo, ParameterInfo, ParameterType};

pub(super) const CASES: Section = Section::new(
    "What the targets are asked.",
    &[
        optional("file", Shape::Text, "A .jsonl, .json, .csv or .toml file beside the suite."),
        optional(
            "inline",
            Shape::OpenList,
            "Cases written here. Of their keys, `id`, `tags`, `checks` (checks of the case alone), and for programs `workspace` and `workspace_subdir` have a meaning of their own.",
        ),
    ],
);

/// Keys that every kind of check has.
pub(crate) const CHECK_COMMON: Section = Section::new(
    "What makes an answer right.",
    &[
        required("kind", Shape::Text, "What it looks at."),
        optional("id", Shape::Text, "Its name in results; made from its kind when absent."),
        optional("negate", Shape::Boolean, "Pass when it would fail; false when absent."),
        optional(
            "required",
            Shape::Boolean,
            "Whether the trial depends on it; true when absent. Others count for the score.",
        ),
        optional(
            "weight",
            Shape::Number { least: 0.0, most: 1e6 },
            "Its share of the score; 1 when absent.",
        ),
        optional("targets", Shape::Texts { some: true }, "Only for these targets."),
        optional("tags", Shape::Texts { some: true }, "Only for cases with one of these tags."),
    ],
);

/// The keys that a kind of check has of its own.
pub(crate) fn own_fields(kind: &KindInfo) -> Vec<Field> {
    kind.all_parameters().map(own_field).collect()
}

fn own_field(parameter: &ParameterInfo) -> Field {
    let shape = match parameter.kind {
        ParameterType::Text => Shape::Text,
        ParameterType::Template => Shape::Template,
        ParameterType::Texts | ParameterType::Templates => Shape::Texts { some: true },
        ParameterType::Boolean => Shape::Boolean,
        ParameterType::Integer { min: least, max: most } => Shape::Integer { least, most },
        ParameterType::Number { min: least, max: most } => Shape::Number { least, most },
        ParameterType::Choice(words) => Shape::Choice(words),
        ParameterType::Table | ParameterType::ValueTable => Shape::Open,
        ParameterType::TemplateTable => Shape::TextMap,
        ParameterType::Value => Shape::Any,
    };
    Field { required: parameter.required, ..optional(parameter.name, shape, parameter.about) }
}
