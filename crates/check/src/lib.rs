//! Checks of one attempt, and the judge protocol.
//!
//! A [`Check`] is built once from the parameters in a suite; [`Check::run`] evaluates it on an [`Attempt`].
//! The caller renders templates first, because only the caller has the case. This crate calls no model and
//! starts no program: kinds that need one ([`CheckKind::Rubric`], [`CheckKind::Program`], …) describe the
//! request and parse the result, and the caller runs it. Judges follow the protocol in [`judge`] and are
//! injected.

mod any;
mod behaviour;
mod code;
mod completeness;
mod distance;
mod excerpt;
mod files;
mod info;
pub mod judge;
mod kind;
mod limit;
mod pairwise;
mod parameters;
mod part;
mod process;
mod refusal;
mod rubric;
mod schema;
mod similarity;
mod status;
mod structure;
mod text;
mod xml;

pub use any::AnyCheck;
pub use behaviour::BehaviourCheck;
pub use code::{CodeResultError, ProgramCheck, PythonCheck, PythonSource, parse_code_result};
pub use completeness::require_whole_output;
pub use files::FileCheck;
pub use info::{EXTRACT_PARAMETERS, KindInfo, ParameterInfo, ParameterType};
pub use kind::{CheckKind, KINDS, LocalCheck, LocalTest};
pub use limit::LimitCheck;
pub use pairwise::{PairOrder, Pairwise, PairwiseMinimum, ReferenceComparison};
pub use parameters::CountBounds;
pub use part::OutputPart;
pub use process::{ProcessCheck, command_count};
pub use refusal::{APOLOGIES, REFUSALS};
pub use rubric::{Rubric, RubricCriterion};
pub use schema::Schema;
pub use similarity::{MAX_SIMILARITY_WORDS, Metric};
pub use status::{CombinedResult, combine_results};
pub use structure::{PathExpectation, StructureCheck};
pub use text::TextCheck;

use bakeoff_core::{Attempt, CheckResult};

/// A check with its parameters.
#[derive(Debug, Clone)]
pub struct Check {
    /// Names the check in results; unique within its suite.
    pub id: String,
    /// What the check tests.
    pub kind: CheckKind,
    /// Passes when the kind would fail.
    pub negate: bool,
    /// Whether the trial's status depends on the check.
    pub required: bool,
    /// The check's share of the score.
    pub weight: f64,
    /// Lowest score that passes, in place of the kind's own condition; only for kinds with a score.
    pub min_score: Option<f64>,
}

/// Invalid parameters of a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The key at fault.
    pub parameter: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Error {
    pub(crate) fn new(parameter: &'static str, message: impl Into<String>) -> Error {
        Error { parameter, message: message.into() }
    }
}

/// The finding of a kind, before negation.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckFinding {
    /// Whether the condition holds.
    pub holds: bool,
    /// Score from 0 to 1; absent for a plain condition.
    pub score: Option<f64>,
    /// What was found; shown when the check fails.
    pub message: String,
}

impl CheckFinding {
    /// A finding of a plain condition.
    pub fn new(holds: bool, message: impl Into<String>) -> CheckFinding {
        CheckFinding { holds, score: None, message: message.into() }
    }

    /// Adds a score, limited to the range from 0 to 1.
    #[must_use]
    pub fn with_score(self, score: f64) -> CheckFinding {
        CheckFinding { score: Some(score.clamp(0.0, 1.0)), ..self }
    }
}

/// Why a check has no result: what it tests is missing or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconclusive(pub String);

impl Check {
    /// Checks an attempt.
    ///
    /// # Errors
    ///
    /// The check is inconclusive, which is neither a pass nor a failure. Kinds that need a model or a program
    /// always are: the caller obtains their finding and passes it to [`Check::conclude`].
    pub fn run(&self, attempt: &Attempt) -> Result<CheckResult, Inconclusive> {
        let check = match &self.kind {
            CheckKind::Local(check) => check,
            CheckKind::Any(group) => return self.run_any(group, attempt),
            _ => return Err(Inconclusive("the check needs a model or a program".to_owned())),
        };
        let completeness = require_whole_output(attempt);
        let (text, completeness) = match &check.part {
            None => (attempt.output.as_str(), completeness),
            Some(part) => match part.find(&attempt.output, &completeness)? {
                Some(text) => (text, Ok(())),
                // Without the part, the check fails whether negated or not.
                None => {
                    let message = part.describe_absence(&attempt.output);
                    return Ok(self.result(false, None, message));
                }
            },
        };
        Ok(self.conclude(check.test.find(text, completeness, attempt)?))
    }

    /// Runs the members of a group. A member without a result matters only if no other passes.
    fn run_any(&self, group: &AnyCheck, attempt: &Attempt) -> Result<CheckResult, Inconclusive> {
        let (mut results, mut inconclusive) = (Vec::new(), None);
        for member in &group.members {
            match member.run(attempt) {
                Ok(result) => results.push(result),
                Err(reason) => inconclusive = inconclusive.or(Some(reason)),
            }
            if results.last().is_some_and(AnyCheck::is_decided_by) {
                break;
            }
        }
        let finding = AnyCheck::combine(&results);
        match inconclusive {
            Some(reason) if !finding.holds => Err(reason),
            _ => Ok(self.conclude(finding)),
        }
    }

    /// Returns the result of a finding.
    pub fn conclude(&self, finding: CheckFinding) -> CheckResult {
        let holds = match (&self.kind, self.min_score, finding.score) {
            // Code may reject an answer whatever its score; its result takes `min_score` into account.
            (CheckKind::Program(_) | CheckKind::Python(_), ..) => finding.holds,
            (_, Some(min), Some(score)) => score >= min,
            _ => finding.holds,
        };
        let message = match (self.min_score, finding.score) {
            (Some(min), Some(score)) if holds != finding.holds => {
                format!("score {score:.3}, `min_score` is {min}: {}", finding.message)
            }
            _ => finding.message,
        };
        let message = match self.negate && holds {
            true => format!("unexpected: {message}"),
            false => message,
        };
        let score = finding.score.map(|score| if self.negate { 1.0 - score } else { score });
        self.result(holds != self.negate, score, message)
    }

    fn result(&self, passed: bool, score: Option<f64>, message: String) -> CheckResult {
        CheckResult {
            check: self.id.clone(),
            passed,
            score: score.unwrap_or(f64::from(u8::from(passed))),
            graded: score.is_some(),
            required: self.required,
            weight: self.weight,
            message: if passed { String::new() } else { message },
        }
    }
}
