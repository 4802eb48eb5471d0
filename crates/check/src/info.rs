//! Descriptions of the kinds of checks.
//!
//! The suite reader, the JSON Schema and the documentation are derived from them.

/// The description of a kind of check.
#[derive(Debug)]
pub struct KindInfo {
    /// The name after `kind =`.
    pub name: &'static str,
    /// What it checks, in one sentence.
    pub about: &'static str,
    /// Parameters of this kind.
    pub parameters: &'static [ParameterInfo],
    /// Whether it can test a part of the output; it then also has the [`EXTRACT_PARAMETERS`].
    pub extracts: bool,
    /// Whether it applies to program targets only.
    pub for_programs: bool,
    /// An example as in a suite file, without `[[check]]`.
    pub example: &'static str,
}

impl KindInfo {
    /// A kind that does not test the output's text.
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        parameters: &'static [ParameterInfo],
        example: &'static str,
    ) -> KindInfo {
        KindInfo { name, about, parameters, extracts: false, for_programs: false, example }
    }

    /// A kind for program targets.
    pub(crate) const fn for_program(
        name: &'static str,
        about: &'static str,
        parameters: &'static [ParameterInfo],
        example: &'static str,
    ) -> KindInfo {
        let kind = KindInfo::new(name, about, parameters, example);
        KindInfo { for_programs: true, ..kind }
    }

    /// A kind that tests the output's text or a part of it.
    pub(crate) const fn for_text(
        name: &'static str,
        about: &'static str,
        parameters: &'static [ParameterInfo],
        example: &'static str,
    ) -> KindInfo {
        let kind = KindInfo::new(name, about, parameters, example);
        KindInfo { extracts: true, ..kind }
    }

    /// Returns all parameters, including [`EXTRACT_PARAMETERS`] where they apply.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static ParameterInfo> + use<> {
        let common: &[ParameterInfo] = if self.extracts { EXTRACT_PARAMETERS } else { &[] };
        self.parameters.iter().chain(common)
    }
}

/// A parameter of a kind.
#[derive(Debug)]
pub struct ParameterInfo {
    /// The key.
    pub name: &'static str,
    /// The values it accepts.
    pub kind: ParameterType,
    /// Whether it must be present.
    pub required: bool,
    /// What it means.
    pub about: &'static str,
}

/// The values that a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterType {
    /// A string.
    Text,
    /// A string, rendered as a template over the case's fields.
    Template,
    /// A non-empty list of strings.
    Texts,
    /// A non-empty list of templates.
    Templates,
    /// A boolean.
    Boolean,
    /// An integer in a range.
    Integer {
        /// Lower bound.
        min: i64,
        /// Upper bound.
        max: i64,
    },
    /// A number in a range.
    Number {
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table.
    Table,
    /// Any value; its strings are templates.
    Value,
    /// A table; its strings are templates.
    ValueTable,
    /// A table of templates.
    TemplateTable,
    /// A non-empty list of checks, whose parameters depend on their kinds.
    Checks,
}

/// Parameters of every kind that can test a part of the output.
pub const EXTRACT_PARAMETERS: &[ParameterInfo] = &[
    optional(
        "extract",
        ParameterType::Choice(&["code_block", "json"]),
        "Test only the first code block, or the first JSON object or list, of the output.",
    ),
    optional(
        "language",
        ParameterType::Text,
        "With `extract = \"code_block\"`: only blocks of this language.",
    ),
];

pub(crate) const fn optional(
    name: &'static str,
    kind: ParameterType,
    about: &'static str,
) -> ParameterInfo {
    ParameterInfo { name, kind, required: false, about }
}

pub(crate) const fn required(
    name: &'static str,
    kind: ParameterType,
    about: &'static str,
) -> ParameterInfo {
    ParameterInfo { name, kind, required: true, about }
}

pub(crate) const IGNORE_CASE: ParameterInfo = optional(
    "ignore_case",
    ParameterType::Boolean,
    "Ignore the difference between upper and lower case.",
);

/// A non-negative count.
pub(crate) const COUNT: ParameterType = ParameterType::Integer { min: 0, max: 1_000_000_000 };
