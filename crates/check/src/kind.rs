//! What a check can look at.

use crate::behaviour::{self, Behaviour};
use crate::code::{self, ProgramCheck, PythonCheck};
use crate::extract::Extract;
use crate::files::{self, FileCheck};
use crate::info::KindInfo;
use crate::judged::{self, Pairwise, Rubric};
use crate::parameters::Parameters;
use crate::process::{self, Process};
use crate::structure::{self, Structure};
use crate::text::{self, Text};
use crate::usage::{self, Limit};
use crate::{CannotSay, Error, Finding};
use bakeoff_core::Attempt;
use serde_json::{Map, Value};

/// Every kind of check, by name.
pub const KINDS: &[&KindInfo] = &[
    &process::COMMAND_CONTAINS,
    &text::CONTAINS,
    &text::CONTAINS_ALL,
    &text::CONTAINS_ANY,
    &structure::CONTAINS_JSON,
    &usage::COST,
    &text::ENDS_WITH,
    &text::EQUALS,
    &process::EXIT_CODE,
    &files::FILE_CONTAINS,
    &files::FILE_EXISTS,
    &behaviour::FINISH_REASON,
    &structure::IS_JSON,
    &behaviour::IS_REFUSAL,
    &structure::IS_XML,
    &structure::IS_YAML,
    &structure::JSON_PATH,
    &structure::JSON_SCHEMA,
    &usage::LATENCY,
    &text::LENGTH,
    &text::LEVENSHTEIN,
    &process::MAX_COMMAND_COUNT,
    &usage::MAX_TURNS,
    &judged::PAIRWISE,
    &code::PROGRAM,
    &code::PYTHON,
    &text::REGEX,
    &judged::RUBRIC,
    &text::SIMILARITY,
    &text::STARTS_WITH,
    &usage::TOKENS,
    &behaviour::TOOL_CALLED,
    &behaviour::TOOL_ORDER,
    &process::TRIGGER_EXPECTATION,
    &text::WORD_COUNT,
];

impl KindInfo {
    /// The kind of that name.
    pub fn find(name: &str) -> Option<&'static KindInfo> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }
}

/// What a check looks at, with its parameters.
#[derive(Debug, Clone)]
pub enum Kind {
    /// What can be told from the attempt alone.
    Plain(Plain),
    /// A model judges the answer.
    Rubric(Rubric),
    /// A model compares the answer with a reference.
    Pairwise(Pairwise),
    /// A program judges the attempt.
    Program(ProgramCheck),
    /// Python judges the attempt.
    Python(PythonCheck),
}

/// What can be told from an attempt alone.
#[derive(Debug, Clone)]
pub struct Plain {
    /// The part of the output that is looked at; all of it when absent.
    pub extract: Option<Extract>,
    /// What is looked for.
    pub test: Test,
}

/// What is looked for in an attempt.
#[derive(Debug, Clone)]
pub enum Test {
    /// Words of the output.
    Text(Text),
    /// The output's structure.
    Structure(Structure),
    /// Files in the workspace.
    Files(FileCheck),
    /// What the program did.
    Process(Process),
    /// How the target behaved.
    Behaviour(Behaviour),
    /// What it took.
    Limit(Limit),
}

impl Test {
    /// Looks at a text, which may be cut off, and at all else there is.
    pub(crate) fn find(
        &self,
        text: &str,
        is_whole: Result<(), CannotSay>,
        attempt: &Attempt,
    ) -> Result<Finding, CannotSay> {
        match self {
            Test::Text(test) => {
                let finding = test.find(text);
                if finding.as_ref().is_ok_and(|finding| test.is_settled(text, finding)) {
                    return finding;
                }
                is_whole.and(finding)
            }
            Test::Structure(test) => test.find(text, is_whole),
            Test::Files(test) => test.find(attempt),
            Test::Process(test) => test.find(attempt),
            Test::Behaviour(test) => test.find(attempt),
            Test::Limit(test) => test.find(attempt),
        }
    }
}

impl Kind {
    /// Makes a check's kind of its parameters, templates filled in. Of a schema in a `file`, the
    /// caller puts the contents under `schema`: nothing is read here.
    ///
    /// # Errors
    ///
    /// A parameter is missing or cannot be used.
    pub fn build(name: &str, parameters: &Map<String, Value>) -> Result<Kind, Error> {
        let parameters = Parameters(parameters);
        match name {
            "rubric" => return Rubric::build(parameters).map(Kind::Rubric),
            "pairwise" => return Pairwise::build(parameters).map(Kind::Pairwise),
            "program" => return ProgramCheck::build(parameters).map(Kind::Program),
            "python" => return PythonCheck::build(parameters).map(Kind::Python),
            _ => {}
        }
        let test = if let Some(test) = Text::build(name, parameters)? {
            Test::Text(test)
        } else if let Some(test) = Structure::build(name, parameters)? {
            Test::Structure(test)
        } else if let Some(test) = FileCheck::build(name, parameters)? {
            Test::Files(test)
        } else if let Some(test) = Process::build(name, parameters)? {
            Test::Process(test)
        } else if let Some(test) = Behaviour::build(name, parameters)? {
            Test::Behaviour(test)
        } else if let Some(test) = Limit::build(name, parameters)? {
            Test::Limit(test)
        } else {
            return Err(Error::new("kind", format!("unknown kind of check `{name}`")));
        };
        let extract = Extract::build(parameters)?;
        Ok(Kind::Plain(Plain { extract, test }))
    }

    /// The judge's name, when a model judges.
    pub fn judge(&self) -> Option<&str> {
        match self {
            Kind::Rubric(rubric) => Some(&rubric.model),
            Kind::Pairwise(pairwise) => Some(&pairwise.model),
            Kind::Plain(_) | Kind::Program(_) | Kind::Python(_) => None,
        }
    }
}
