//! Checks of the output's text.

use crate::distance::levenshtein;
use crate::excerpt::{excerpt, fold_case};
use crate::info::{COUNT, IGNORE_CASE, KindInfo, ParameterType, optional, required};
use crate::parameters::{CountBounds, Parameters, missing};
use crate::similarity::Metric;
use crate::{CheckFinding, Error, Inconclusive};
use regex::Regex;

/// Limit on the size of a compiled pattern, which rejects nested repetitions quickly.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// A condition on the text of the output.
#[derive(Debug, Clone)]
pub enum TextCheck {
    /// The trimmed output equals the value.
    Equals {
        /// The value.
        value: String,
        /// Whether upper and lower case are equal.
        ignore_case: bool,
    },
    /// The values occur in the output.
    Contains {
        /// The values.
        values: Vec<String>,
        /// Whether all must occur; otherwise one is sufficient.
        all: bool,
        /// Whether upper and lower case are equal.
        ignore_case: bool,
    },
    /// The pattern matches somewhere in the output.
    Regex(Regex),
    /// The trimmed output starts or ends with the value.
    Edge {
        /// The value.
        value: String,
        /// Whether the end is tested instead of the start.
        end: bool,
        /// Whether upper and lower case are equal.
        ignore_case: bool,
    },
    /// The number of characters.
    Length(CountBounds),
    /// The number of words.
    WordCount(CountBounds),
    /// The output is at most this many edits away from the value.
    Levenshtein {
        /// The value.
        value: String,
        /// Maximum number of edits.
        max: usize,
        /// Whether upper and lower case are equal.
        ignore_case: bool,
    },
    /// The output is similar to the value.
    Similarity {
        /// The reference.
        value: String,
        /// The similarity metric.
        metric: Metric,
        /// Minimum similarity.
        min: f64,
    },
}

pub(crate) const EQUALS: KindInfo = KindInfo::for_text(
    "equals",
    "The output equals the value; surrounding white space is ignored.",
    &[required("value", ParameterType::Template, "The expected output."), IGNORE_CASE],
    "kind = \"equals\"\nvalue = \"{{ expected }}\"\nignore_case = true",
);

pub(crate) const CONTAINS: KindInfo = KindInfo::for_text(
    "contains",
    "The value occurs in the output.",
    &[required("value", ParameterType::Template, "Text that must occur."), IGNORE_CASE],
    "kind = \"contains\"\nvalue = \"{{ expected }}\"",
);

pub(crate) const CONTAINS_ANY: KindInfo = KindInfo::for_text(
    "contains_any",
    "At least one of the values occurs in the output.",
    &[required("values", ParameterType::Templates, "Texts of which one must occur."), IGNORE_CASE],
    "kind = \"contains_any\"\nvalues = [\"{{ expected }}\", \"the City of Light\"]",
);

pub(crate) const CONTAINS_ALL: KindInfo = KindInfo::for_text(
    "contains_all",
    "All the values occur in the output, in any order.",
    &[required("values", ParameterType::Templates, "Texts that must all occur."), IGNORE_CASE],
    "kind = \"contains_all\"\nvalues = [\"{{ expected }}\", \"{{ country }}\"]",
);

pub(crate) const REGEX: KindInfo = KindInfo::for_text(
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

pub(crate) const STARTS_WITH: KindInfo = KindInfo::for_text(
    "starts_with",
    "The output starts with the value; leading white space is ignored.",
    &[required("value", ParameterType::Template, "The expected start."), IGNORE_CASE],
    "kind = \"starts_with\"\nvalue = \"The capital of {{ country }}\"",
);

pub(crate) const ENDS_WITH: KindInfo = KindInfo::for_text(
    "ends_with",
    "The output ends with the value; trailing white space is ignored.",
    &[required("value", ParameterType::Template, "The expected end."), IGNORE_CASE],
    "kind = \"ends_with\"\nvalue = \"{{ expected }}.\"",
);

pub(crate) const LENGTH: KindInfo = KindInfo::for_text(
    "length",
    "The number of characters in the output is within the bounds; at least one bound is required.",
    &[optional("min", COUNT, "Lower bound."), optional("max", COUNT, "Upper bound.")],
    "kind = \"length\"\nmax = 20",
);

pub(crate) const WORD_COUNT: KindInfo = KindInfo::for_text(
    "word_count",
    "The number of words in the output, separated by white space, is within the bounds; at least one bound is required.",
    &[optional("min", COUNT, "Lower bound."), optional("max", COUNT, "Upper bound.")],
    "kind = \"word_count\"\nmin = 1\nmax = 3",
);

pub(crate) const LEVENSHTEIN: KindInfo = KindInfo::for_text(
    "levenshtein",
    "The output is at most `max` insertions, deletions or substitutions of characters away from the value; surrounding white space is ignored.",
    &[
        required("value", ParameterType::Template, "The expected output."),
        required(
            "max",
            ParameterType::Integer { min: 0, max: 100_000 },
            "Maximum number of edits.",
        ),
        IGNORE_CASE,
    ],
    "kind = \"levenshtein\"\nvalue = \"{{ expected }}\"\nmax = 1",
);

pub(crate) const SIMILARITY: KindInfo = KindInfo::for_text(
    "similarity",
    "The similarity of the output and the value is at least `min_score`.",
    &[
        required("value", ParameterType::Template, "The reference text."),
        required("metric", ParameterType::Choice(Metric::NAMES), "Similarity metric, from 0 to 1."),
        optional(
            "min_score",
            ParameterType::Number { min: 0.0, max: 1.0 },
            "Minimum similarity; required unless `min` is given.",
        ),
        optional(
            "min",
            ParameterType::Number { min: 0.0, max: 1.0 },
            "Minimum similarity; alias of `min_score`.",
        ),
    ],
    "kind = \"similarity\"\nmetric = \"token_f1\"\nvalue = \"{{ expected }} is the capital of {{ country }}\"\nmin_score = 0.8",
);

impl TextCheck {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<TextCheck>, Error> {
        let ignore_case = parameters.ignore_case();
        let value = |name| parameters.non_empty_text(name);
        Ok(Some(match name {
            "equals" => {
                TextCheck::Equals { value: parameters.required_text("value")?, ignore_case }
            }
            "contains" => {
                TextCheck::Contains { values: vec![value("value")?], all: true, ignore_case }
            }
            "contains_any" | "contains_all" => TextCheck::Contains {
                values: parameters.non_empty_texts("values")?,
                all: name == "contains_all",
                ignore_case,
            },
            "regex" => TextCheck::Regex(regex("value", &value("value")?, ignore_case)?),
            "starts_with" | "ends_with" => {
                let value = value("value")?.trim().to_owned();
                if value.is_empty() {
                    return Err(Error::new("value", "the value is empty"));
                }
                TextCheck::Edge { value, end: name == "ends_with", ignore_case }
            }
            "length" => TextCheck::Length(CountBounds::build(parameters)?),
            "word_count" => TextCheck::WordCount(CountBounds::build(parameters)?),
            "levenshtein" => TextCheck::Levenshtein {
                value: parameters.required_text("value")?,
                max: usize::try_from(parameters.required_count("max")?)
                    .map_err(|_| missing("max"))?,
                ignore_case,
            },
            "similarity" => TextCheck::Similarity {
                value: value("value")?,
                metric: parameters
                    .text("metric")
                    .and_then(Metric::parse)
                    .ok_or_else(|| missing("metric"))?,
                min: {
                    let name = parameters.one_of(&["min_score", "min"])?;
                    parameters.number(name).ok_or_else(|| missing(name))?
                },
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, text: &str) -> Result<CheckFinding, Inconclusive> {
        let shown = || excerpt(text);
        Ok(match self {
            TextCheck::Equals { value, ignore_case } => {
                let same =
                    fold_case(text.trim(), *ignore_case) == fold_case(value.trim(), *ignore_case);
                CheckFinding::new(
                    same,
                    match same {
                        true => format!("is {}", shown()),
                        false => format!("expected {}, got {}", excerpt(value.trim()), shown()),
                    },
                )
            }
            TextCheck::Contains { values, all, ignore_case } => {
                contains(text, values, *all, *ignore_case)
            }
            TextCheck::Regex(pattern) => {
                let holds = pattern.is_match(text);
                let verb = if holds { "matches" } else { "does not match" };
                CheckFinding::new(holds, format!("/{pattern}/ {verb} {}", shown()))
            }
            TextCheck::Edge { value, end, ignore_case } => {
                let (text, value) =
                    (fold_case(text.trim(), *ignore_case), fold_case(value, *ignore_case));
                let (holds, verb) = match end {
                    true => (text.ends_with(&*value), "end"),
                    false => (text.starts_with(&*value), "start"),
                };
                let verb = if holds { format!("{verb}s") } else { format!("does not {verb}") };
                CheckFinding::new(holds, format!("{} {verb} with {}", shown(), excerpt(&value)))
            }
            TextCheck::Length(bounds) => test_count(text.chars().count(), *bounds, "characters"),
            TextCheck::WordCount(bounds) => {
                test_count(text.split_whitespace().count(), *bounds, "words")
            }
            TextCheck::Levenshtein { value, max, ignore_case } => {
                let (text, value) =
                    (fold_case(text.trim(), *ignore_case), fold_case(value.trim(), *ignore_case));
                match levenshtein(&text, &value, *max) {
                    Ok(Some(edits)) => CheckFinding::new(true, format!("{edits} edits away")),
                    Ok(None) => CheckFinding::new(
                        false,
                        format!("more than {max} edits from {}: {}", excerpt(&value), shown()),
                    ),
                    Err(_) => {
                        let message = "texts too long and too different to compare";
                        return Err(Inconclusive(message.to_owned()));
                    }
                }
            }
            TextCheck::Similarity { value, metric, min } => {
                let found = metric.measure(text, value).map_err(Inconclusive)?;
                let name = metric.name();
                CheckFinding::new(
                    found >= *min,
                    format!("{name} is {found:.3}, expected at least {min}: {}", shown()),
                )
                .with_score(found)
            }
        })
    }
}

impl TextCheck {
    /// Returns whether no continuation of the text can change a finding.
    pub(crate) fn is_final(&self, text: &str, finding: &CheckFinding) -> bool {
        match self {
            TextCheck::Contains { .. } => finding.holds,
            // A match at the end of the text may depend on the end, as with `$`.
            TextCheck::Regex(pattern) => {
                pattern.shortest_match(text).is_some_and(|at| at < text.len())
            }
            TextCheck::Edge { value, end: false, ignore_case } => {
                let value = fold_case(value, *ignore_case);
                let start = fold_case(text.trim_start(), *ignore_case);
                finding.holds || !value.starts_with(&*start)
            }
            TextCheck::Edge { end: true, .. }
            | TextCheck::Equals { .. }
            | TextCheck::Length(_)
            | TextCheck::WordCount(_)
            | TextCheck::Levenshtein { .. }
            | TextCheck::Similarity { .. } => false,
        }
    }
}

/// Compiles a pattern, which matches in linear time. An error names the parameter.
pub(crate) fn regex(
    parameter: &'static str,
    pattern: &str,
    ignore_case: bool,
) -> Result<Regex, Error> {
    regex::RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .build()
        .map_err(|error| Error::new(parameter, format!("not a regular expression: {error}")))
}

/// Tests whether the values occur; the message lists those that do or do not.
pub(crate) fn contains(
    text: &str,
    values: &[String],
    all: bool,
    ignore_case: bool,
) -> CheckFinding {
    let folded = fold_case(text, ignore_case);
    let occurs = |value: &&String| folded.contains(&*fold_case(value, ignore_case));
    let (found, absent): (Vec<&String>, Vec<&String>) = values.iter().partition(occurs);
    let list = |values: &[&String], separator: &str| {
        let values: Vec<String> = values.iter().map(|value| excerpt(value)).collect();
        values.join(separator)
    };
    let shown = excerpt(text);
    match all {
        true if absent.is_empty() => {
            let verb = if found.len() == 1 { "is" } else { "are" };
            CheckFinding::new(true, format!("{} {verb} in {shown}", list(&found, " and ")))
        }
        true => CheckFinding::new(false, format!("no {} in {shown}", list(&absent, " and no "))),
        false if found.is_empty() => {
            CheckFinding::new(false, format!("no {} in {shown}", list(&absent, " and no ")))
        }
        false => CheckFinding::new(true, format!("{} is in {shown}", list(&found, " and "))),
    }
}

fn test_count(count: usize, bounds: CountBounds, unit: &str) -> CheckFinding {
    let count = count as u64;
    CheckFinding::new(bounds.contains(count), format!("{count} {unit}, expected {bounds}"))
}
