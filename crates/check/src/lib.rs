//! Is this answer right?
//!
//! A [`Check`] is refined from what the user wrote, once; [`Check::run`] judges one [`Attempt`].
//! Values may be templates: the caller renders them, because only it knows the case. Nothing here
//! calls a model or starts a program: checks that need one are described ([`Kind::Rubric`],
//! [`Kind::Program`], …), with what to ask and how to read the answer, and the caller asks.

mod behaviour;
mod code;
mod distance;
mod extract;
mod fence;
mod files;
mod incomplete;
mod info;
mod judged;
mod kind;
mod parameters;
mod process;
mod refusal;
mod schema;
mod similarity;
mod structure;
mod text;
mod usage;
mod verdict;
mod words;
mod xml;

pub use behaviour::Behaviour;
pub use code::{ProgramCheck, PythonCheck, PythonSource, read_code_verdict};
pub use extract::Extract;
pub use fence::Fence;
pub use files::FileCheck;
pub use incomplete::whole_output;
pub use info::{EXTRACT, KindInfo, ParameterInfo, ParameterType};
pub use judged::{INSTRUCTIONS, Least, Order, Pairwise, Preference, Question, Rubric, ask_again};
pub use kind::{KINDS, Kind, Plain, Test};
pub use parameters::Bounds;
pub use process::{Process, command_count};
pub use refusal::{APOLOGIES, REFUSALS};
pub use schema::Schema;
pub use similarity::{MOST_TOKENS, Metric};
pub use structure::{Structure, Wanted};
pub use text::Text;
pub use usage::Limit;
pub use verdict::{Judgement, judge};

use bakeoff_core::{Attempt, CheckResult};

/// One check, ready to judge attempts.
#[derive(Debug, Clone)]
pub struct Check {
    /// Names the check in results; unique within its suite.
    pub id: String,
    /// What it looks at.
    pub kind: Kind,
    /// Passes when the kind would fail.
    pub negate: bool,
    /// Whether the trial depends on it.
    pub required: bool,
    /// Its share of the score.
    pub weight: f64,
}

/// A check cannot be made from what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The key that is at fault.
    pub parameter: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Error {
    pub(crate) fn new(parameter: &'static str, message: impl Into<String>) -> Error {
        Error { parameter, message: message.into() }
    }
}

/// What a kind found, before negation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is as the check says.
    pub holds: bool,
    /// What was found, for whoever did not want it.
    pub words: String,
}

impl Finding {
    /// A finding.
    pub fn new(holds: bool, words: impl Into<String>) -> Finding {
        Finding { holds, words: words.into() }
    }
}

/// A check that cannot say whether the answer is right: what it looks at is not there, or not all of
/// it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotSay(pub String);

impl Check {
    /// Judges an attempt.
    ///
    /// # Errors
    ///
    /// The check cannot say, which is neither a pass nor a failure. So it is with kinds that need
    /// a model or a program: their finding is for the caller to get, and to [`Check::conclude`].
    pub fn run(&self, attempt: &Attempt) -> Result<CheckResult, CannotSay> {
        let Kind::Plain(plain) = &self.kind else {
            return Err(CannotSay("it needs a model or a program".to_owned()));
        };
        let is_whole = whole_output(attempt);
        let (text, is_whole) = match &plain.extract {
            None => (attempt.output.as_str(), is_whole),
            Some(extract) => match extract.find(&attempt.output, &is_whole)? {
                Some(part) => (part, Ok(())),
                // Whatever was wanted of it, or not wanted: there is nothing to look at.
                None => return Ok(self.result(false, extract.nothing(&attempt.output))),
            },
        };
        Ok(self.conclude(plain.test.find(text, is_whole, attempt)?))
    }

    /// The result of a finding.
    pub fn conclude(&self, finding: Finding) -> CheckResult {
        let words = match self.negate && finding.holds {
            true => format!("not wanted: {}", finding.words),
            false => finding.words,
        };
        self.result(finding.holds != self.negate, words)
    }

    fn result(&self, passed: bool, words: String) -> CheckResult {
        CheckResult {
            check: self.id.clone(),
            passed,
            required: self.required,
            weight: self.weight,
            message: if passed { String::new() } else { words },
        }
    }
}
