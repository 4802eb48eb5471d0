//! Kinds of checks, described as data.
//!
//! Reading a suite, its JSON Schema and its documentation all come from these descriptions.

/// A kind of check, as documentation and as rules for reading.
#[derive(Debug)]
pub struct KindInfo {
    /// What the user writes after `kind =`.
    pub name: &'static str,
    /// What it checks, in one sentence.
    pub about: &'static str,
    /// Its own parameters.
    pub parameters: &'static [ParameterInfo],
    /// Whether it can look at a part of the output: [`EXTRACT`] then belongs to its parameters.
    pub extracts: bool,
    /// Whether only programs have what it looks at.
    pub for_programs: bool,
    /// A check of this kind as it is written in a suite, without `[[check]]`.
    pub example: &'static str,
}

impl KindInfo {
    /// A kind that looks at anything but the output's text.
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        parameters: &'static [ParameterInfo],
        example: &'static str,
    ) -> KindInfo {
        KindInfo { name, about, parameters, extracts: false, for_programs: false, example }
    }

    /// A kind that looks at what only programs have.
    pub(crate) const fn of_programs(
        name: &'static str,
        about: &'static str,
        parameters: &'static [ParameterInfo],
        example: &'static str,
    ) -> KindInfo {
        let kind = KindInfo::new(name, about, parameters, example);
        KindInfo { for_programs: true, ..kind }
    }

    /// A kind that looks at the output's text, or at a part of it.
    pub(crate) const fn of_text(
        name: &'static str,
        about: &'static str,
        parameters: &'static [ParameterInfo],
        example: &'static str,
    ) -> KindInfo {
        let kind = KindInfo::new(name, about, parameters, example);
        KindInfo { extracts: true, ..kind }
    }

    /// All parameters, the common ones of [`EXTRACT`] included.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static ParameterInfo> + use<> {
        let common: &[ParameterInfo] = if self.extracts { EXTRACT } else { &[] };
        self.parameters.iter().chain(common)
    }
}

/// A parameter of a kind.
#[derive(Debug)]
pub struct ParameterInfo {
    /// Its key.
    pub name: &'static str,
    /// What may be written there.
    pub kind: ParameterType,
    /// Whether it must be there.
    pub required: bool,
    /// What it means.
    pub about: &'static str,
}

/// What may be written for a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterType {
    /// Text as it is.
    Text,
    /// Text that may be a template over the case's fields.
    Template,
    /// At least one text, as they are.
    Texts,
    /// At least one text that may be a template.
    Templates,
    /// Yes or no.
    Boolean,
    /// A whole number in a range.
    Integer {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// Any number in a range.
    Number {
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table as it is.
    Table,
    /// Anything; texts in it may be templates.
    Value,
    /// A table; texts in it may be templates.
    ValueTable,
    /// A table of texts that may be templates.
    TemplateTable,
}

/// Parameters of every kind that can look at a part of the output.
pub const EXTRACT: &[ParameterInfo] = &[
    optional(
        "extract",
        ParameterType::Choice(&["code_block", "json"]),
        "Look only at the first code block, or at the first JSON object or list, of the output.",
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

pub(crate) const IGNORE_CASE: ParameterInfo =
    optional("ignore_case", ParameterType::Boolean, "Upper and lower case are the same.");

/// A count of things.
pub(crate) const COUNT: ParameterType = ParameterType::Integer { least: 0, most: 1_000_000_000 };
