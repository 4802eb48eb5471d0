//! Checks that the user's own code makes. Running it is for others.

use crate::info::{KindInfo, ParameterInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::{Error, Finding};
use serde::Deserialize;
use std::time::Duration;

/// A program that judges one attempt: JSON on standard input, a verdict on standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCheck {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Python that judges one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonCheck {
    /// What is evaluated.
    pub source: PythonSource,
    /// How long it may take.
    pub timeout: Duration,
}

/// Python code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonSource {
    /// An expression over `output`, `case` and `attempt`.
    Expression(String),
    /// A function of them.
    Function {
        /// The file that defines it.
        file: String,
        /// Its name.
        name: String,
    },
}

const DEFAULT_SECONDS: f64 = 60.0;

const TIMEOUT: ParameterInfo = optional(
    "timeout_seconds",
    ParameterType::Number { least: 0.001, most: 1e6 },
    "How long it may take; 60 when absent.",
);

pub(crate) const PROGRAM: KindInfo = KindInfo {
    name: "program",
    about: "A program judges the attempt: it gets the case and all that was produced as JSON on standard input, and prints `{\"passed\": true}`, perhaps with a `score` and a `message`.",
    parameters: &[
        required(
            "command",
            ParameterType::Texts,
            "The program and its arguments; words that name a file beside the suite are found.",
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
        optional("expression", ParameterType::Text, "True when the answer is right."),
        optional(
            "function",
            ParameterType::Text,
            "`file.py:name`: a function in a file beside the suite; it takes `output`, `case` and `attempt`, or the first of them.",
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
            "expression" => PythonSource::Expression(parameters.some_text("expression")?),
            _ => {
                let function = parameters.some_text("function")?;
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
struct Verdict {
    passed: bool,
    score: Option<f64>,
    message: Option<String>,
}

/// Reads the verdict of a program; the error says why it is none.
pub fn read_code_verdict(verdict: &str) -> Result<Finding, String> {
    let verdict: Verdict =
        serde_json::from_str(verdict).map_err(|error| format!("not a verdict: {error}"))?;
    let said = match (verdict.message, verdict.score) {
        (Some(message), _) if !message.trim().is_empty() => message.trim().to_owned(),
        (_, Some(score)) => format!("score {score}"),
        (_, None) if verdict.passed => "it passed".to_owned(),
        (_, None) => "it did not pass".to_owned(),
    };
    Ok(Finding::new(verdict.passed, said))
}
