//! Checks by user code. The caller runs the code.

use crate::info::{KindInfo, ParameterInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::{CheckFinding, Error};
use serde::Deserialize;
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

const TIMEOUT: ParameterInfo = optional(
    "timeout_seconds",
    ParameterType::Number { min: 0.001, max: 1e6 },
    "Time limit in seconds [default: 60].",
);

pub(crate) const PROGRAM: KindInfo = KindInfo {
    name: "program",
    about: "A program judges the attempt: it reads the case and the attempt as JSON from standard input, and prints `{\"passed\": true}`, optionally with a `score` and a `message`.",
    parameters: &[
        required(
            "command",
            ParameterType::Texts,
            "The program and its arguments; arguments that name a file next to the suite are resolved.",
        ),
        TIMEOUT,
    ],
    extracts: false,
    for_programs: false,
    example: "kind = \"program\"\ncommand = [\"python3\", \"verdict.py\"]",
};

pub(crate) const PYTHON: KindInfo = KindInfo {
    name: "python",
    about: "Python judges the attempt: an expression over `output`, `case` and `attempt`, or a function of them.",
    parameters: &[
        optional(
            "expression",
            ParameterType::Text,
            "An expression that is true if the answer passes.",
        ),
        optional(
            "function",
            ParameterType::Text,
            "`file.py:name`: a function in a file next to the suite; it takes `output`, `case` and `attempt`, or only the first one or two.",
        ),
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeResult {
    passed: bool,
    score: Option<f64>,
    message: Option<String>,
}

/// The result of user code is invalid.
#[derive(Debug, thiserror::Error)]
#[error("invalid result: {0}")]
pub struct CodeResultError(#[from] serde_json::Error);

/// Parses the result of user code.
///
/// # Errors
///
/// Fails if the text is not a JSON object with the expected fields.
pub fn parse_code_result(json: &str) -> Result<CheckFinding, CodeResultError> {
    let result: CodeResult = serde_json::from_str(json)?;
    let message = match (result.message, result.score) {
        (Some(message), _) if !message.trim().is_empty() => message.trim().to_owned(),
        (_, Some(score)) => format!("score {score}"),
        (_, None) if result.passed => "passed".to_owned(),
        (_, None) => "failed".to_owned(),
    };
    Ok(CheckFinding::new(result.passed, message))
}
