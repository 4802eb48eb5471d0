//! All kinds of checks.

use crate::any::{self, AnyCheck};
use crate::behaviour::{self, BehaviourCheck};
use crate::code::{self, ProgramCheck, PythonCheck};
use crate::files::{self, FileCheck};
use crate::info::KindInfo;
use crate::limit::{self, LimitCheck};
use crate::pairwise::{self, Pairwise};
use crate::parameters::Parameters;
use crate::part::OutputPart;
use crate::process::{self, ProcessCheck};
use crate::rubric::{self, Rubric};
use crate::structure::{self, StructureCheck};
use crate::text::{self, TextCheck};
use crate::{CheckFinding, Error, Inconclusive};
use bakeoff_core::Attempt;
use serde_json::{Map, Value};

/// All kinds, sorted by name.
pub const KINDS: &[&KindInfo] = &[
    &any::ANY,
    &process::COMMAND_CONTAINS,
    &text::CONTAINS,
    &text::CONTAINS_ALL,
    &text::CONTAINS_ANY,
    &structure::CONTAINS_JSON,
    &limit::COST,
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
    &limit::LATENCY,
    &text::LENGTH,
    &text::LEVENSHTEIN,
    &process::MAX_COMMAND_COUNT,
    &limit::MAX_TURNS,
    &pairwise::PAIRWISE,
    &code::PROGRAM,
    &code::PYTHON,
    &text::REGEX,
    &rubric::RUBRIC,
    &text::SIMILARITY,
    &text::STARTS_WITH,
    &limit::TOKENS,
    &behaviour::TOOL_CALLED,
    &behaviour::TOOL_ORDER,
    &process::TRIGGER_EXPECTATION,
    &text::WORD_COUNT,
];

impl KindInfo {
    /// Returns the kind of a name.
    pub fn find(name: &str) -> Option<&'static KindInfo> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }
}

/// What a check tests, with its parameters.
#[derive(Debug, Clone)]
pub enum CheckKind {
    /// A test of the attempt's data, without a model or a program.
    Local(LocalCheck),
    /// A model judges the answer.
    Rubric(Rubric),
    /// A model compares the answer with a reference.
    Pairwise(Pairwise),
    /// A program judges the attempt.
    Program(ProgramCheck),
    /// Python code judges the attempt.
    Python(PythonCheck),
    /// One of several checks passes.
    Any(AnyCheck),
}

/// A check that needs nothing but the attempt's data.
#[derive(Debug, Clone)]
pub struct LocalCheck {
    /// The part of the output that is tested; all of it when absent.
    pub part: Option<OutputPart>,
    /// The test.
    pub test: LocalTest,
}

/// A test of an attempt's data.
#[derive(Debug, Clone)]
pub enum LocalTest {
    /// The output's text.
    Text(TextCheck),
    /// The output's structure.
    Structure(StructureCheck),
    /// Files in the workspace.
    Files(FileCheck),
    /// The exit code and the commands that were run.
    Process(ProcessCheck),
    /// Tool calls, finish reason and refusals.
    Behaviour(BehaviourCheck),
    /// Turns, time, cost and tokens.
    Limit(LimitCheck),
}

impl LocalTest {
    /// Tests a text, which may be cut off, and the rest of the attempt.
    pub(crate) fn find(
        &self,
        text: &str,
        completeness: Result<(), Inconclusive>,
        attempt: &Attempt,
    ) -> Result<CheckFinding, Inconclusive> {
        match self {
            LocalTest::Text(test) => {
                let finding = test.find(text);
                if finding.as_ref().is_ok_and(|finding| test.is_final(text, finding)) {
                    return finding;
                }
                completeness.and(finding)
            }
            LocalTest::Structure(test) => test.find(text, completeness),
            LocalTest::Files(test) => test.find(attempt),
            LocalTest::Process(test) => test.find(attempt),
            LocalTest::Behaviour(test) => test.find(attempt),
            LocalTest::Limit(test) => test.find(attempt),
        }
    }
}

impl CheckKind {
    /// Builds a kind from its parameters, with templates rendered. If a schema is in a `file`, the caller
    /// puts its contents under `schema`; this function reads no files.
    ///
    /// # Errors
    ///
    /// A parameter is missing or invalid.
    pub fn build(name: &str, parameters: &Map<String, Value>) -> Result<CheckKind, Error> {
        let parameters = Parameters(parameters);
        match name {
            "rubric" => return Rubric::build(parameters).map(CheckKind::Rubric),
            "pairwise" => return Pairwise::build(parameters).map(CheckKind::Pairwise),
            "program" => return ProgramCheck::build(parameters).map(CheckKind::Program),
            "python" => return PythonCheck::build(parameters).map(CheckKind::Python),
            "any" => return AnyCheck::build(parameters).map(CheckKind::Any),
            _ => {}
        }
        let test = if let Some(test) = TextCheck::build(name, parameters)? {
            LocalTest::Text(test)
        } else if let Some(test) = StructureCheck::build(name, parameters)? {
            LocalTest::Structure(test)
        } else if let Some(test) = FileCheck::build(name, parameters)? {
            LocalTest::Files(test)
        } else if let Some(test) = ProcessCheck::build(name, parameters)? {
            LocalTest::Process(test)
        } else if let Some(test) = BehaviourCheck::build(name, parameters)? {
            LocalTest::Behaviour(test)
        } else if let Some(test) = LimitCheck::build(name, parameters)? {
            LocalTest::Limit(test)
        } else {
            return Err(Error::new("kind", format!("unknown kind of check `{name}`")));
        };
        let part = OutputPart::build(parameters)?;
        Ok(CheckKind::Local(LocalCheck { part, test }))
    }
}
