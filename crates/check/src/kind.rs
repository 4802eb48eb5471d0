//! What a check can look at.
//!
//! [`KINDS`] describes each kind as data: reading a suite, its schema and its documentation all
//! come from there.

use crate::Error;
use bakeoff_core::Attempt;
use regex::Regex;

/// What a check looks at, with its parameters.
#[derive(Debug, Clone)]
pub enum Kind {
    /// The trimmed output is the value.
    Equals {
        /// The value.
        value: String,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The value occurs in the output.
    Contains {
        /// The value.
        value: String,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The pattern matches somewhere in the output.
    Regex {
        /// The compiled pattern.
        pattern: Regex,
    },
    /// The output is one JSON value.
    IsJson,
    /// The program ended with this code.
    ExitCode {
        /// The code.
        code: i32,
    },
}

/// A kind of check, as documentation and as rules for reading.
#[derive(Debug)]
pub struct KindInfo {
    /// What the user writes after `kind =`.
    pub name: &'static str,
    /// What it checks, in one sentence.
    pub about: &'static str,
    /// Its own parameters.
    pub parameters: &'static [ParameterInfo],
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// Text that may be a template over the case's fields.
    Template,
    /// Yes or no.
    Boolean,
    /// A whole number.
    Integer,
}

const IGNORE_CASE: ParameterInfo = ParameterInfo {
    name: "ignore_case",
    kind: ParameterType::Boolean,
    required: false,
    about: "Upper and lower case are the same.",
};

/// Every kind of check.
pub const KINDS: &[KindInfo] = &[
    KindInfo {
        name: "contains",
        about: "The value occurs in the output.",
        parameters: &[
            ParameterInfo {
                name: "value",
                kind: ParameterType::Template,
                required: true,
                about: "What must occur.",
            },
            IGNORE_CASE,
        ],
    },
    KindInfo {
        name: "equals",
        about: "The output is the value; spaces around either do not count.",
        parameters: &[
            ParameterInfo {
                name: "value",
                kind: ParameterType::Template,
                required: true,
                about: "What the output must be.",
            },
            IGNORE_CASE,
        ],
    },
    KindInfo {
        name: "exit_code",
        about: "The program ended with this code.",
        parameters: &[ParameterInfo {
            name: "value",
            kind: ParameterType::Integer,
            required: false,
            about: "The code; 0 when absent.",
        }],
    },
    KindInfo { name: "is_json", about: "The output is one JSON value.", parameters: &[] },
    KindInfo {
        name: "regex",
        about: "The pattern matches somewhere in the output.",
        parameters: &[
            ParameterInfo {
                name: "value",
                kind: ParameterType::Template,
                required: true,
                about: "A regular expression in the syntax of Rust's `regex` crate.",
            },
            IGNORE_CASE,
        ],
    },
];

impl Kind {
    /// A [`Kind::Regex`].
    pub fn regex(pattern: &str, ignore_case: bool) -> Result<Kind, Error> {
        regex::RegexBuilder::new(pattern)
            .case_insensitive(ignore_case)
            .build()
            .map(|pattern| Kind::Regex { pattern })
            .map_err(|error| Error::BadRegex(error.to_string()))
    }

    /// Whether it holds for an attempt.
    pub(crate) fn holds(&self, attempt: &Attempt) -> bool {
        let output = attempt.output.as_str();
        match self {
            Kind::Equals { value, ignore_case } => {
                same_case(output.trim(), *ignore_case) == same_case(value.trim(), *ignore_case)
            }
            Kind::Contains { value, ignore_case } => {
                same_case(output, *ignore_case).contains(&*same_case(value, *ignore_case))
            }
            Kind::Regex { pattern } => pattern.is_match(output),
            Kind::IsJson => json_error(output).is_none(),
            Kind::ExitCode { code } => attempt.exit_code == Some(*code),
        }
    }

    /// What was found, in words, when it is not what was wanted.
    pub(crate) fn words(&self, attempt: &Attempt, holds: bool) -> String {
        let got = excerpt(&attempt.output);
        match (self, holds) {
            (Kind::Equals { .. }, true) => format!("is {got}"),
            (Kind::Equals { value, .. }, false) => {
                format!("expected {}, got {got}", excerpt(value.trim()))
            }
            (Kind::Contains { value, .. }, true) => format!("{} is in {got}", excerpt(value)),
            (Kind::Contains { value, .. }, false) => format!("no {} in {got}", excerpt(value)),
            (Kind::Regex { pattern }, true) => format!("/{pattern}/ matches {got}"),
            (Kind::Regex { pattern }, false) => format!("/{pattern}/ does not match {got}"),
            (Kind::IsJson, _) => match json_error(&attempt.output) {
                None => "is JSON".to_owned(),
                Some(error) => format!("not JSON: {error}"),
            },
            (Kind::ExitCode { code }, _) => match attempt.exit_code {
                Some(found) if holds => format!("exit code {found}"),
                Some(found) => format!("exit code {found}, expected {code}"),
                None => format!("no exit code, expected {code}"),
            },
        }
    }
}

fn json_error(text: &str) -> Option<serde_json::Error> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).err()
}

fn same_case(text: &str, ignore_case: bool) -> std::borrow::Cow<'_, str> {
    if ignore_case { text.to_lowercase().into() } else { text.into() }
}

/// Enough of a text to recognise it, on one line.
fn excerpt(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}
