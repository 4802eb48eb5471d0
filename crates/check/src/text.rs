//! Checks of the output's words.

use crate::distance::levenshtein;
use crate::info::{COUNT, IGNORE_CASE, KindInfo, ParameterType, optional, required};
use crate::parameters::{Bounds, Parameters, missing};
use crate::similarity::Metric;
use crate::words::{excerpt, same_case};
use crate::{CannotSay, Error, Finding};
use regex::Regex;

/// Most bytes of a compiled pattern: what repeats a repetition is refused, and quickly.
const MOST_PATTERN: usize = 4 << 20;

/// What the words of the output must be like.
#[derive(Debug, Clone)]
pub enum Text {
    /// The trimmed output is the value.
    Equals {
        /// The value.
        value: String,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The values occur in the output.
    Contains {
        /// The values.
        values: Vec<String>,
        /// All of them, or one at least.
        all: bool,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The pattern matches somewhere in the output.
    Regex(Regex),
    /// The trimmed output begins, or ends, with the value.
    Edge {
        /// The value.
        value: String,
        /// The end and not the beginning.
        end: bool,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The number of characters.
    Length(Bounds),
    /// The number of words.
    WordCount(Bounds),
    /// The output is the value but for so many edits.
    Levenshtein {
        /// The value.
        value: String,
        /// Most edits.
        max: usize,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The output is like the value.
    Similarity {
        /// The reference.
        value: String,
        /// How it is measured.
        metric: Metric,
        /// The least similarity.
        min: f64,
    },
}

pub(crate) const EQUALS: KindInfo = KindInfo::of_text(
    "equals",
    "The output is the value; spaces around either do not count.",
    &[required("value", ParameterType::Template, "What the output must be."), IGNORE_CASE],
    "kind = \"equals\"\nvalue = \"{{ expected }}\"\nignore_case = true",
);

pub(crate) const CONTAINS: KindInfo = KindInfo::of_text(
    "contains",
    "The value occurs in the output.",
    &[required("value", ParameterType::Template, "What must occur."), IGNORE_CASE],
    "kind = \"contains\"\nvalue = \"{{ expected }}\"",
);

pub(crate) const CONTAINS_ANY: KindInfo = KindInfo::of_text(
    "contains_any",
    "At least one of the values occurs in the output.",
    &[required("values", ParameterType::Templates, "What may occur."), IGNORE_CASE],
    "kind = \"contains_any\"\nvalues = [\"{{ expected }}\", \"the City of Light\"]",
);

pub(crate) const CONTAINS_ALL: KindInfo = KindInfo::of_text(
    "contains_all",
    "All the values occur in the output, in any order.",
    &[required("values", ParameterType::Templates, "What must occur."), IGNORE_CASE],
    "kind = \"contains_all\"\nvalues = [\"{{ expected }}\", \"{{ country }}\"]",
);

pub(crate) const REGEX: KindInfo = KindInfo::of_text(
    "regex",
    "The pattern matches somewhere in the output.",
    &[
        required(
            "value",
            ParameterType::Template,
            "A regular expression in the syntax of Rust's `regex` crate.",
        ),
        IGNORE_CASE,
    ],
    "kind = \"regex\"\nvalue = '\\b{{ expected }}\\b'",
);

pub(crate) const STARTS_WITH: KindInfo = KindInfo::of_text(
    "starts_with",
    "The output begins with the value; spaces before it do not count.",
    &[required("value", ParameterType::Template, "Its beginning."), IGNORE_CASE],
    "kind = \"starts_with\"\nvalue = \"The capital of {{ country }}\"",
);

pub(crate) const ENDS_WITH: KindInfo = KindInfo::of_text(
    "ends_with",
    "The output ends with the value; spaces after it do not count.",
    &[required("value", ParameterType::Template, "Its end."), IGNORE_CASE],
    "kind = \"ends_with\"\nvalue = \"{{ expected }}.\"",
);

pub(crate) const LENGTH: KindInfo = KindInfo::of_text(
    "length",
    "The output has so many characters; at least one bound is needed.",
    &[optional("min", COUNT, "The fewest."), optional("max", COUNT, "The most.")],
    "kind = \"length\"\nmax = 20",
);

pub(crate) const WORD_COUNT: KindInfo = KindInfo::of_text(
    "word_count",
    "The output has so many words, as spaces divide them; at least one bound is needed.",
    &[optional("min", COUNT, "The fewest."), optional("max", COUNT, "The most.")],
    "kind = \"word_count\"\nmin = 1\nmax = 3",
);

pub(crate) const LEVENSHTEIN: KindInfo = KindInfo::of_text(
    "levenshtein",
    "At most so many characters must be inserted, deleted or replaced to make the output the value; spaces around either do not count.",
    &[
        required("value", ParameterType::Template, "What the output should be."),
        required("max", ParameterType::Integer { least: 0, most: 100_000 }, "Most edits."),
        IGNORE_CASE,
    ],
    "kind = \"levenshtein\"\nvalue = \"{{ expected }}\"\nmax = 1",
);

pub(crate) const SIMILARITY: KindInfo = KindInfo::of_text(
    "similarity",
    "The output is as similar to the value as the metric demands.",
    &[
        required("value", ParameterType::Template, "The reference text."),
        required(
            "metric",
            ParameterType::Choice(Metric::NAMES),
            "How similarity is measured, from 0 to 1.",
        ),
        required("min", ParameterType::Number { least: 0.0, most: 1.0 }, "The least similarity."),
    ],
    "kind = \"similarity\"\nmetric = \"token_f1\"\nvalue = \"{{ expected }} is the capital of {{ country }}\"\nmin = 0.8",
);

impl Text {
    pub(crate) fn build(name: &str, parameters: Parameters<'_>) -> Result<Option<Text>, Error> {
        let ignore_case = parameters.ignore_case();
        let value = |name| parameters.some_text(name);
        Ok(Some(match name {
            "equals" => Text::Equals { value: parameters.needed_text("value")?, ignore_case },
            "contains" => Text::Contains { values: vec![value("value")?], all: true, ignore_case },
            "contains_any" | "contains_all" => Text::Contains {
                values: parameters.some_texts("values")?,
                all: name == "contains_all",
                ignore_case,
            },
            "regex" => Text::Regex(regex("value", &value("value")?, ignore_case)?),
            "starts_with" | "ends_with" => {
                let value = value("value")?.trim().to_owned();
                if value.is_empty() {
                    return Err(Error::new("value", "the value is empty"));
                }
                Text::Edge { value, end: name == "ends_with", ignore_case }
            }
            "length" => Text::Length(Bounds::read(parameters)?),
            "word_count" => Text::WordCount(Bounds::read(parameters)?),
            "levenshtein" => Text::Levenshtein {
                value: parameters.needed_text("value")?,
                max: usize::try_from(parameters.needed_count("max")?)
                    .map_err(|_| missing("max"))?,
                ignore_case,
            },
            "similarity" => Text::Similarity {
                value: value("value")?,
                metric: parameters
                    .text("metric")
                    .and_then(Metric::named)
                    .ok_or_else(|| missing("metric"))?,
                min: parameters.number("min").ok_or_else(|| missing("min"))?,
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, text: &str) -> Result<Finding, CannotSay> {
        let got = || excerpt(text);
        Ok(match self {
            Text::Equals { value, ignore_case } => {
                let same =
                    same_case(text.trim(), *ignore_case) == same_case(value.trim(), *ignore_case);
                Finding::new(
                    same,
                    match same {
                        true => format!("is {}", got()),
                        false => format!("expected {}, got {}", excerpt(value.trim()), got()),
                    },
                )
            }
            Text::Contains { values, all, ignore_case } => {
                contains(text, values, *all, *ignore_case)
            }
            Text::Regex(pattern) => {
                let holds = pattern.is_match(text);
                let verb = if holds { "matches" } else { "does not match" };
                Finding::new(holds, format!("/{pattern}/ {verb} {}", got()))
            }
            Text::Edge { value, end, ignore_case } => {
                let (text, value) =
                    (same_case(text.trim(), *ignore_case), same_case(value, *ignore_case));
                let (holds, verb) = match end {
                    true => (text.ends_with(&*value), "end"),
                    false => (text.starts_with(&*value), "begin"),
                };
                let verb = if holds { format!("{verb}s") } else { format!("does not {verb}") };
                Finding::new(holds, format!("{} {verb} with {}", got(), excerpt(&value)))
            }
            Text::Length(bounds) => counted(text.chars().count(), *bounds, "characters"),
            Text::WordCount(bounds) => counted(text.split_whitespace().count(), *bounds, "words"),
            Text::Levenshtein { value, max, ignore_case } => {
                let (text, value) =
                    (same_case(text.trim(), *ignore_case), same_case(value.trim(), *ignore_case));
                match levenshtein(&text, &value, *max) {
                    Ok(Some(edits)) => Finding::new(true, format!("{edits} edits away")),
                    Ok(None) => Finding::new(
                        false,
                        format!("more than {max} edits from {}: {}", excerpt(&value), got()),
                    ),
                    Err(_) => {
                        let message = "the texts are too long and too different to be compared";
                        return Err(CannotSay(message.to_owned()));
                    }
                }
            }
            Text::Similarity { value, metric, min } => {
                let found = metric.of(text, value).map_err(CannotSay)?;
                let name = metric.name();
                Finding::new(
                    found >= *min,
                    format!("{name} is {found:.3}, wanted {min}: {}", got()),
                )
            }
        })
    }
}

impl Text {
    /// Whether a finding stays what it is, whatever comes after the text.
    pub(crate) fn is_settled(&self, text: &str, finding: &Finding) -> bool {
        match self {
            Text::Contains { .. } => finding.holds,
            // A match at the very end may be one only because it is the end.
            Text::Regex(pattern) => pattern.shortest_match(text).is_some_and(|at| at < text.len()),
            Text::Edge { value, end: false, ignore_case } => {
                let value = same_case(value, *ignore_case);
                let beginning = same_case(text.trim_start(), *ignore_case);
                finding.holds || !value.starts_with(&*beginning)
            }
            Text::Edge { end: true, .. }
            | Text::Equals { .. }
            | Text::Length(_)
            | Text::WordCount(_)
            | Text::Levenshtein { .. }
            | Text::Similarity { .. } => false,
        }
    }
}

/// A pattern that matches in linear time; the error is about the parameter.
pub(crate) fn regex(
    parameter: &'static str,
    pattern: &str,
    ignore_case: bool,
) -> Result<Regex, Error> {
    regex::RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(MOST_PATTERN)
        .dfa_size_limit(MOST_PATTERN)
        .build()
        .map_err(|error| Error::new(parameter, format!("not a regular expression: {error}")))
}

/// Whether the values occur; says which did or did not.
pub(crate) fn contains(text: &str, values: &[String], all: bool, ignore_case: bool) -> Finding {
    let folded = same_case(text, ignore_case);
    let occurs = |value: &&String| folded.contains(&*same_case(value, ignore_case));
    let (found, absent): (Vec<&String>, Vec<&String>) = values.iter().partition(occurs);
    let listed = |values: &[&String], word: &str| {
        let values: Vec<String> = values.iter().map(|value| excerpt(value)).collect();
        values.join(word)
    };
    let got = excerpt(text);
    match all {
        true if absent.is_empty() => {
            let verb = if found.len() == 1 { "is" } else { "are" };
            Finding::new(true, format!("{} {verb} in {got}", listed(&found, " and ")))
        }
        true => Finding::new(false, format!("no {} in {got}", listed(&absent, " and no "))),
        false if found.is_empty() => {
            Finding::new(false, format!("no {} in {got}", listed(&absent, " and no ")))
        }
        false => Finding::new(true, format!("{} is in {got}", listed(&found, " and "))),
    }
}

fn counted(count: usize, bounds: Bounds, what: &str) -> Finding {
    let count = count as u64;
    Finding::new(bounds.hold(count), format!("{count} {what}, wanted {bounds}"))
}
