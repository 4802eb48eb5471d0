//! The lines of a job's journal.

use super::ladder::{Answer, Node, Outcome, Repair};
use super::spent::Spent;
use serde::{Deserialize, Serialize};

/// Written by this version; a journal of another one is not read.
pub(super) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first: what the job is.
    Plan(PlanRecord),
    /// A request and what came of it.
    Asked(AskedRecord),
    /// Every row is in the output.
    Finished(Ending),
    /// Whoever has no answer is asked about once more.
    Again,
}

/// What a job is: everything that its output depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlanRecord {
    pub(super) version: u32,
    pub(super) rows: u64,
    pub(super) input: String,
    pub(super) task: String,
    /// By the names that users know.
    pub(super) models: Vec<String>,
    /// Who they were.
    pub(super) resolved: Vec<String>,
    pub(super) format: String,
    pub(super) pack: u32,
    pub(super) seed: u64,
    /// Tokens per minute that were allowed when it began, which no request may exceed. Kept, because
    /// rows must fall into the same packs when limits have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tpm: Option<u64>,
}

impl PlanRecord {
    /// What is different about another plan, in words.
    pub(super) fn difference(&self, other: &PlanRecord) -> Option<String> {
        let models = || format!("--model {}", self.models.join(" --fallback "));
        let differs = [
            (self.version != other.version, "another version of Bakeoff".to_owned()),
            (self.input != other.input, "other rows".to_owned()),
            (self.task != other.task, "another task".to_owned()),
            (self.models != other.models, models()),
            (
                self.resolved != other.resolved,
                format!("other models: {}", self.resolved.join(", ")),
            ),
            (self.format != other.format, format!("--format {}", self.format)),
            (self.pack != other.pack, format!("--pack {}", self.pack)),
            (self.seed != other.seed, format!("--seed {}", self.seed)),
            (self.rows != other.rows, "other rows".to_owned()),
        ];
        differs.into_iter().find_map(|(is_different, what)| is_different.then_some(what))
    }
}

/// Which request it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) pack: u64,
    /// What the pack holds: should other rows have its number one day, their answers are others.
    pub(super) of: String,
    /// Its name within the pack.
    pub(super) path: String,
}

/// A request and what came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AskedRecord {
    #[serde(flatten)]
    pub(super) name: Name,
    /// Places within the pack, and their answers.
    pub(super) answers: Vec<(usize, Answer)>,
    /// Places within the pack, and why there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<(usize, String)>,
    /// Whether fewer rows at once may help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) divide: bool,
    /// The reply, when the model should see it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repair: Option<Repair>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<Answer>,
    pub(super) spent: Spent,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ending {
    /// Rows without an answer.
    pub(super) errors: u64,
    /// What the output holds, and the facts beside it.
    pub(super) output: String,
    pub(super) facts: Option<String>,
}

impl AskedRecord {
    pub(super) fn new(
        name: Name,
        node: &Node,
        outcome: &Outcome,
        batch: Option<&Answer>,
        spent: Spent,
    ) -> AskedRecord {
        let (mut answers, mut failed) = (Vec::new(), Vec::new());
        for (row, answer) in node.rows.iter().zip(&outcome.answers) {
            match answer {
                Ok(answer) => answers.push((*row, answer.clone())),
                Err(reason) => failed.push((*row, reason.clone())),
            }
        }
        let batch = batch.cloned();
        let divide = outcome.divide && !failed.is_empty();
        let repair = outcome.repair.clone().filter(|_| node.repair.is_none());
        AskedRecord { name, answers, failed, divide, repair, batch, spent }
    }

    /// The outcome for that request; `None` when it is about other rows.
    pub(super) fn outcome(self, node: &Node) -> Option<(Outcome, Option<Answer>)> {
        let mut all: Vec<(usize, Result<Answer, String>)> = Vec::new();
        all.extend(self.answers.into_iter().map(|(row, answer)| (row, Ok(answer))));
        all.extend(self.failed.into_iter().map(|(row, reason)| (row, Err(reason))));
        all.sort_by_key(|(row, _)| *row);
        let is_same = all.iter().map(|(row, _)| row).eq(node.rows.iter());
        let answers = all.into_iter().map(|(_, answer)| answer).collect();
        let outcome = Outcome { answers, divide: self.divide, repair: self.repair };
        is_same.then_some((outcome, self.batch))
    }
}
