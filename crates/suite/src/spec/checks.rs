//! Keys of `[cases]` and `[[check]]`.

use super::{Field, Section, ValueType, optional, required};
use bakeoff_check::{KindInfo, ParameterInfo, ParameterType};

pub(super) const CASES: Section = Section::new(
    "Inputs of the targets",
    &[
        optional(
            "file",
            ValueType::Text,
            "Case file (.jsonl, .json, .csv or .toml), relative to the suite file",
        ),
        optional(
            "inline",
            ValueType::OpenTables,
            "Inline cases. Reserved keys: `id`, `tags`, `checks` (checks of this case only), `messages` (chat history before the prompt of a model), `attachments` (images, PDF and audio files), `trials`, `threshold`, and for programs `workspace` and `workspace_subdir`.",
        ),
    ],
);

/// Keys of all check kinds.
pub(crate) const CHECK_COMMON: Section = Section::new(
    "Condition that an output must meet",
    &[
        required("kind", ValueType::Text, "Check kind"),
        optional("id", ValueType::Text, "Name in results [default: derived from the kind]"),
        optional("negate", ValueType::Boolean, "Invert the result [default: false]"),
        optional(
            "required",
            ValueType::Boolean,
            "Whether the trial fails with this check; other checks only count for the score [default: true]",
        ),
        optional(
            "weight",
            ValueType::Number { min: 0.0, max: 1e6 },
            "Weight in the score [default: 1]",
        ),
        optional(
            "targets",
            ValueType::TextList { non_empty: true },
            "Names of the targets to check [default: all]",
        ),
        optional(
            "tags",
            ValueType::TextList { non_empty: true },
            "Tags of the cases to check; a case needs one of them [default: all cases]",
        ),
    ],
);

/// Common keys of the checks in a group of kind `any`; the others apply to the group.
pub(crate) const MEMBER_KEYS: [&str; 3] = ["kind", "id", "negate"];

/// Returns the keys specific to a check kind.
pub(crate) fn kind_fields(kind: &KindInfo) -> Vec<Field> {
    kind.all_parameters().map(parameter_field).collect()
}

fn parameter_field(parameter: &ParameterInfo) -> Field {
    let value_type = match parameter.kind {
        ParameterType::Text => ValueType::Text,
        ParameterType::Template => ValueType::Template,
        ParameterType::Texts | ParameterType::Templates => ValueType::TextList { non_empty: true },
        ParameterType::Boolean => ValueType::Boolean,
        ParameterType::Integer { min, max } => ValueType::Integer { min, max },
        ParameterType::Number { min, max } => ValueType::Number { min, max },
        ParameterType::Choice(words) => ValueType::Choice(words),
        ParameterType::Table | ParameterType::ValueTable => ValueType::OpenTable,
        ParameterType::TemplateTable => ValueType::TextMap,
        ParameterType::Value => ValueType::Any,
        ParameterType::Checks => ValueType::Checks,
    };
    Field { required: parameter.required, ..optional(parameter.name, value_type, parameter.about) }
}
