//! The suite file, described as data.
//!
//! Reading, the errors for what is written wrong, and the JSON Schema all come from these tables.

mod checks;
mod models;
mod select;
mod settings;
mod targets;

pub(crate) use checks::{CHECK_COMMON, own_fields};
pub(crate) use models::{MODEL, SIM};
pub(crate) use settings::SUITE;
pub(crate) use targets::{STEP, TARGET, TargetSort};

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Section {
    /// What it is for.
    pub(crate) about: &'static str,
    fields: &'static [Field],
    /// Keys that other tables have too.
    shared: &'static [Field],
}

impl Section {
    pub(super) const fn new(about: &'static str, fields: &'static [Field]) -> Section {
        Section { about, fields, shared: &[] }
    }

    /// Adds keys that other tables have too.
    const fn with(self, shared: &'static [Field]) -> Section {
        Section { shared, ..self }
    }

    /// Returns all keys that the table may have.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> + Clone + use<> {
        self.fields.iter().chain(self.shared)
    }

    /// Returns the key with that name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.name == name)
    }
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    /// What it means, with its default.
    pub(crate) about: &'static str,
    /// Printed with errors about its value.
    pub(crate) code: Option<&'static str>,
    /// Of `[[target]]`: the sorts of target that may have the key; all of them when empty.
    pub(crate) sorts: &'static [TargetSort],
    /// Of `[[target]]`: the sort of target that the key makes it.
    pub(crate) defines: Option<TargetSort>,
    /// What changes with its value.
    pub(crate) effect: Effect,
}

/// What changes with the value of a key, for digests of the parts of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No special effect: a setting changes no verdict, and a model key changes answers.
    Usual,
    /// Of `[suite]`: the verdict.
    Verdict,
    /// Of `[models.*]`: how the model is called, but not what it answers.
    Call,
}

impl Field {
    /// Limits the key to some sorts of target.
    const fn only_for(self, sorts: &'static [TargetSort]) -> Field {
        Field { sorts, ..self }
    }

    /// Makes the key tell the sort of its target.
    const fn defines(self, sort: TargetSort) -> Field {
        Field { defines: Some(sort), ..self }
    }

    const fn effect(self, effect: Effect) -> Field {
        Field { effect, ..self }
    }
}

/// What may be written for a key.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Text.
    Text,
    /// Text that is a template over the case's fields.
    Template,
    /// Yes or no.
    Boolean,
    /// A whole number in a range.
    Integer { least: i64, most: i64 },
    /// Any number in a range.
    Number { least: f64, most: f64 },
    /// Requests in flight: a whole number in a range, or `"min-start-max"`.
    Connections { most: u32 },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts; when `some` is true it must not be empty.
    Texts { some: bool },
    /// A list of some of these words.
    Words(&'static [&'static str]),
    /// A table from names to texts.
    TextMap,
    /// A table from names to lists of texts.
    TextLists,
    /// A table of its own.
    Table(&'static Section),
    /// Any number of tables.
    Tables(&'static Section),
    /// Tables under names that the user chooses.
    Named(&'static Section),
    /// A table whose keys are the user's.
    Open,
    /// Text, or a table whose keys are the user's.
    TextOrOpen,
    /// Any number of tables whose keys are the user's.
    OpenList,
    /// Anything.
    Any,
    /// Any number of checks; their keys depend on their kind.
    Checks,
}

pub(super) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        required: false,
        about,
        code: None,
        sorts: &[],
        defines: None,
        effect: Effect::Usual,
    }
}

pub(super) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { required: true, ..optional(name, shape, about) }
}

pub(super) const fn coded(code: &'static str, field: Field) -> Field {
    Field { code: Some(code), ..field }
}

/// Most trials of one case.
pub const MAX_TRIALS: u32 = 1000;

/// Most requests in flight that can be asked for.
pub(crate) const MAX_CONNECTIONS: u32 = 100_000;

const SECONDS: Shape = Shape::Number { least: 0.001, most: 1e9 };

/// The whole file.
pub(crate) const SUITE_FILE: Section = Section::new(
    "A Bakeoff suite: cases, targets, checks and settings.",
    &[
        optional("suite", Shape::Table(&SUITE), "Settings of the suite."),
        optional("models", Shape::Named(&MODEL), "Models under names of your own."),
        optional(
            "roles",
            Shape::TextMap,
            "Who fills which role in `bakeoff run`: a name under [models] or [sim], or provider/model.",
        ),
        optional(
            "select",
            Shape::Table(&select::SELECT),
            "Which combination of models `bakeoff select` looks for.",
        ),
        required("target", Shape::Tables(&TARGET), "What is under test."),
        required("cases", Shape::Table(&checks::CASES), "What the targets are asked."),
        optional("check", Shape::Checks, "What makes an answer right."),
        optional("sim", Shape::Named(&SIM), "Simulated models under names of your own."),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_agent::CodingAgent;
    use bakeoff_llm::PROVIDERS;

    #[test]
    fn words_of_other_crates_are_complete() {
        let Some(Shape::Choice(agents)) = TARGET.field("agent").map(|field| &field.shape) else {
            panic!("`agent` is a choice");
        };
        assert_eq!(*agents, CodingAgent::ALL.map(CodingAgent::name));
        let about = MODEL.field("provider").unwrap().about;
        for provider in PROVIDERS {
            assert!(about.contains(provider.name), "{}", provider.name);
        }
    }

    #[test]
    fn no_table_has_a_key_twice() {
        for section in [&SUITE_FILE, &SUITE, &MODEL, &SIM, &TARGET, &STEP, &CHECK_COMMON] {
            let mut names: Vec<&str> = section.fields().map(|field| field.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{}", section.about);
        }
    }
}
