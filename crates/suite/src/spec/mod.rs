//! Description of the suite file as data.
//!
//! Reading, validation messages and the JSON Schema are derived from these tables.

mod checks;
mod models;
mod select;
mod settings;
mod targets;

pub(crate) use checks::{CHECK_COMMON, MEMBER_KEYS, kind_fields};
#[cfg(test)]
pub(crate) use models::LIMITS;
pub(crate) use models::{MODEL, SIM};
pub(crate) use settings::SUITE;
pub(crate) use targets::{STEP, TARGET, TARGET_DEFAULTS, TargetType};

/// Table of the file.
#[derive(Debug)]
pub(crate) struct Section {
    /// Purpose of the table.
    pub(crate) about: &'static str,
    fields: &'static [Field],
    /// Keys shared with other tables.
    shared: &'static [Field],
    /// Key of these that the table does not have.
    excluded: Option<&'static str>,
}

impl Section {
    pub(super) const fn new(about: &'static str, fields: &'static [Field]) -> Section {
        Section { about, fields, shared: &[], excluded: None }
    }

    /// Adds keys shared with other tables.
    const fn with(self, shared: &'static [Field]) -> Section {
        Section { shared, ..self }
    }

    /// Returns a table with the same keys except one.
    const fn without(self, key: &'static str, about: &'static str) -> Section {
        Section { about, excluded: Some(key), ..self }
    }

    /// Returns all keys of the table.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> + Clone + use<> {
        let excluded = self.excluded;
        self.fields.iter().chain(self.shared).filter(move |field| Some(field.name) != excluded)
    }

    /// Returns the key with that name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.name == name)
    }
}

/// Key of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) value_type: ValueType,
    pub(crate) required: bool,
    /// Help text with the default. Used in hints and as the description in the JSON Schema.
    pub(crate) about: &'static str,
    /// Error code printed with problems of the value.
    pub(crate) code: Option<&'static str>,
    /// Target types that allow the key of `[[target]]`; empty for all.
    pub(crate) target_types: &'static [TargetType],
    /// Target type that the key of `[[target]]` implies.
    pub(crate) implies: Option<TargetType>,
    /// Effect of the value on results.
    pub(crate) effect: Effect,
}

/// Effect of a key's value on results, for the digests of suite parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Default: a key of `[suite]` changes no verdict, a key of a model changes outputs.
    Default,
    /// A key of `[suite]` that changes verdicts.
    Verdict,
    /// A key of `[models.*]` that changes how the model is called, but not its outputs.
    Call,
}

impl Field {
    /// Limits the key to some target types.
    const fn only_for(self, target_types: &'static [TargetType]) -> Field {
        Field { target_types, ..self }
    }

    /// Makes the key imply a target type.
    const fn implies(self, target_type: TargetType) -> Field {
        Field { implies: Some(target_type), ..self }
    }

    const fn effect(self, effect: Effect) -> Field {
        Field { effect, ..self }
    }
}

/// Type of the value of a key.
#[derive(Debug)]
pub(crate) enum ValueType {
    /// String.
    Text,
    /// String that is a template with case fields.
    Template,
    /// `true` or `false`.
    Boolean,
    /// Integer in a range.
    Integer { min: i64, max: i64 },
    /// Number in a range.
    Number { min: f64, max: f64 },
    /// Requests in flight: integer up to `max`, or `"min-start-max"`.
    Connections { max: u32 },
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// One of these strings, in upper or lower case.
    AnyCaseChoice(&'static [&'static str]),
    /// List of strings.
    TextList { non_empty: bool },
    /// List of some of these strings.
    ChoiceList(&'static [&'static str]),
    /// Table with user-defined keys and string values.
    TextMap,
    /// Table with user-defined keys and lists of strings.
    TextListMap,
    /// Table.
    Table(&'static Section),
    /// List of tables.
    Tables(&'static Section),
    /// Tables with user-defined names.
    NamedTables(&'static Section),
    /// Table with arbitrary content.
    OpenTable,
    /// String, or table with arbitrary content.
    TextOrTable,
    /// List of tables with arbitrary content.
    OpenTables,
    /// Any value.
    Any,
    /// List of checks, whose keys depend on the check kind.
    Checks,
}

pub(super) const fn optional(
    name: &'static str,
    value_type: ValueType,
    about: &'static str,
) -> Field {
    Field {
        name,
        value_type,
        required: false,
        about,
        code: None,
        target_types: &[],
        implies: None,
        effect: Effect::Default,
    }
}

pub(super) const fn required(
    name: &'static str,
    value_type: ValueType,
    about: &'static str,
) -> Field {
    Field { required: true, ..optional(name, value_type, about) }
}

pub(super) const fn coded(code: &'static str, field: Field) -> Field {
    Field { code: Some(code), ..field }
}

/// Maximum number of trials per case.
pub const MAX_TRIALS: u32 = 1000;

/// Maximum value for the number of requests in flight.
pub(crate) const MAX_CONNECTIONS: u32 = 100_000;

/// Returns the words of a choice.
const fn choice_words<T, const N: usize>(choices: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = choices[index].0;
        index += 1;
    }
    words
}

/// Returns the value of a word of a choice, in upper or lower case. The validation reports what is not a word.
pub(crate) fn choice<T: Copy>(choices: &[(&str, T)], word: &str) -> Option<T> {
    choices.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

const SECONDS: ValueType = ValueType::Number { min: 0.001, max: 1e9 };

/// The suite file.
pub(crate) const SUITE_FILE: Section = Section::new(
    "Bakeoff suite: cases, targets, checks and settings",
    &[
        optional("suite", ValueType::Table(&SUITE), "Suite settings"),
        optional("models", ValueType::NamedTables(&MODEL), "Models by user-defined name"),
        optional(
            "roles",
            ValueType::TextMap,
            "Model assigned to each role in `bakeoff run`: a name under [models] or [sim], or provider/model",
        ),
        optional(
            "select",
            ValueType::Table(&select::SELECT),
            "Search space and method of `bakeoff select`",
        ),
        // Required without [matrix], which the reader of targets checks.
        optional("target", ValueType::Tables(&TARGET), "Systems under test"),
        optional(
            "target_defaults",
            ValueType::Table(&TARGET_DEFAULTS),
            "Keys of all targets that do not set them, as far as their type allows them",
        ),
        optional(
            "matrix",
            ValueType::Table(&targets::MATRIX),
            "Additional targets: all combinations of prompts and models",
        ),
        required("cases", ValueType::Table(&checks::CASES), "Inputs of the targets"),
        optional("check", ValueType::Checks, "Conditions that an output must meet"),
        optional("sim", ValueType::NamedTables(&SIM), "Simulated models by user-defined name"),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_agent::CodingAgent;
    use bakeoff_llm::PROVIDERS;

    #[test]
    fn agent_and_provider_names_are_complete() {
        let Some(ValueType::Choice(agents)) = TARGET.field("agent").map(|field| &field.value_type)
        else {
            panic!("`agent` is a choice");
        };
        assert_eq!(*agents, CodingAgent::ALL.map(CodingAgent::name));
        let about = MODEL.field("provider").unwrap().about;
        for provider in PROVIDERS {
            assert!(about.contains(provider.name), "{}", provider.name);
        }
    }

    #[test]
    fn keys_of_a_table_are_unique() {
        for section in
            [&SUITE_FILE, &SUITE, &MODEL, &SIM, &TARGET, &TARGET_DEFAULTS, &STEP, &CHECK_COMMON]
        {
            let mut names: Vec<&str> = section.fields().map(|field| field.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{}", section.about);
        }
    }
}
