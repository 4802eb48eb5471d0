//! Checks by user code. The caller runs the code.

use crate::info::{KindInfo, ParameterInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::{CheckFinding, Error};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// A program that judges an attempt: JSON on standard input, a result on standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCheck {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Time limit.
    pub timeout: Duration,
}

/// Python code that judges an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonCheck {
    /// The code.
    pub source: PythonSource,
    /// Time limit.
    pub timeout: Duration,
}

/// Python code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonSource {
    /// An expression over `output`, `case` and `attempt`.
    Expression(String),
    /// A function of these.
    Function {
        /// The file that defines it.
        file: String,
        /// The function's name.
        name: String,
    },
}

const DEFAULT_SECONDS: f64 = 60.0;

/// Score from which a verdict without `passed` passes, unless the check has a `min_score`.
const DEFAULT_MIN_SCORE: f64 = 0.5;

const MIN_SCORE: ParameterInfo = optional(
    "min_score",
    ParameterType::Number { min: 0.0, max: 1.0 },
    "Lowest score that passes [default: 0.5 for a score without `passed`, else none].",
);

const TIMEOUT: ParameterInfo = optional(
    "timeout_seconds",
    ParameterType::Number { min: 0.001, max: 1e6 },
    "Time limit in seconds [default: 60].",
);

pub(crate) const PROGRAM: KindInfo = KindInfo {
    name: "program",
    about: "A program judges the attempt: it reads the case and the attempt as JSON from standard input, and prints `true`, `false`, a score from 0 to 1, or an object such as `{\"passed\": true, \"score\": 0.9, \"message\": \"…\"}`.",
    parameters: &[
        required(
            "command",
            ParameterType::Texts,
            "The program and its arguments; arguments that name a file next to the suite are resolved.",
        ),
        MIN_SCORE,
        TIMEOUT,
    ],
    extracts: false,
    for_programs: false,
    example: "kind = \"program\"\ncommand = [\"python3\", \"verdict.py\"]",
};

pub(crate) const PYTHON: KindInfo = KindInfo {
    name: "python",
    about: "Python judges the attempt: an expression over `output`, `case` and `attempt`, or a function of them. The result is `True`, `False`, a score from 0 to 1, or a dict with `passed`, `score` and `message`.",
    parameters: &[
        optional(
            "expression",
            ParameterType::Text,
            "An expression that is true if the answer passes, or its score.",
        ),
        optional(
            "function",
            ParameterType::Text,
            "`file.py:name`: a function in a file next to the suite; it takes `output`, `case` and `attempt`, or only the first one or two.",
        ),
        MIN_SCORE,
        TIMEOUT,
    ],
    extracts: false,
    for_programs: false,
    example: "kind = \"python\"\nexpression = \"len(output) < 20 and case['expected'] in output\"",
};

fn timeout(parameters: Parameters<'_>) -> Duration {
    let seconds = parameters.number("timeout_seconds").unwrap_or(DEFAULT_SECONDS);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

impl ProgramCheck {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<ProgramCheck, Error> {
        Ok(ProgramCheck { command: parameters.texts("command")?, timeout: timeout(parameters) })
    }
}

impl PythonCheck {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<PythonCheck, Error> {
        let source = match parameters.one_of(&["expression", "function"])? {
            "expression" => PythonSource::Expression(parameters.non_empty_text("expression")?),
            _ => {
                let function = parameters.non_empty_text("function")?;
                let parts = function.rsplit_once(':').filter(|(file, name)| {
                    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
                    file.ends_with(".py") && !name.is_empty() && name.chars().all(letter)
                });
                let (file, name) = parts.ok_or_else(|| {
                    Error::new(
                        "function",
                        format!("`{function}` is not of the form `file.py:name`"),
                    )
                })?;
                PythonSource::Function { file: file.to_owned(), name: name.to_owned() }
            }
        };
        Ok(PythonCheck { source, timeout: timeout(parameters) })
    }
}

/// Verdict of user code as an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeVerdict {
    passed: Option<bool>,
    score: Option<f64>,
    message: Option<String>,
}

/// The result of user code is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid result: {0}")]
pub struct CodeResultError(String);

/// Parses the result of user code: a boolean, a score, or an object with `passed`, `score` or both. A score
/// below `min_score` does not pass; without `passed`, the score alone decides.
///
/// # Errors
///
/// Fails if the text is not JSON of one of these forms, or the score is not from 0 to 1.
pub fn parse_code_result(
    json: &str,
    min_score: Option<f64>,
) -> Result<CheckFinding, CodeResultError> {
    let value: Value =
        serde_json::from_str(json).map_err(|error| CodeResultError(error.to_string()))?;
    let CodeVerdict { passed, score, message } = match value {
        Value::Bool(passed) => CodeVerdict { passed: Some(passed), score: None, message: None },
        Value::Number(score) => CodeVerdict { passed: None, score: score.as_f64(), message: None },
        other => {
            serde_json::from_value(other).map_err(|error| CodeResultError(error.to_string()))?
        }
    };
    if let Some(score) = score.filter(|score| !(0.0..=1.0).contains(score)) {
        return Err(CodeResultError(format!("the score {score} is not from 0 to 1")));
    }
    let reaches = |min: f64| score.is_none_or(|score| score >= min);
    let holds = match (passed, score) {
        (None, None) => {
            return Err(CodeResultError("neither `passed` nor `score`".to_owned()));
        }
        (Some(passed), _) => passed && min_score.is_none_or(reaches),
        (None, Some(_)) => reaches(min_score.unwrap_or(DEFAULT_MIN_SCORE)),
    };
    let message = message.map(|message| message.trim().to_owned()).unwrap_or_default();
    let message = match (message.as_str(), score) {
        ("", Some(score)) if !holds && passed != Some(false) => {
            format!("score {score}, expected at least {}", min_score.unwrap_or(DEFAULT_MIN_SCORE))
        }
        ("", Some(score)) => format!("score {score}"),
        ("", None) => if holds { "passed" } else { "failed" }.to_owned(),
        _ => message,
    };
    let finding = CheckFinding::new(holds, message);
    Ok(match score {
        Some(score) => finding.with_score(score),
        None => finding,
    })
}
