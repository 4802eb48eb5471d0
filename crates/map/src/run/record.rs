//! The records of a job's journal. Their serialised names are a disk format.

use super::escalation::{InvalidReply, PackRequest, RowAnswer, RowResults};
use super::usage::RequestUsage;
use serde::{Deserialize, Serialize};

/// Version of the journal format. Journals of other versions are rejected.
pub(super) const VERSION: u32 = 1;

/// One line of the journal.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum JournalRecord {
    /// The plan; always the first record.
    #[serde(rename = "plan")]
    Plan(PlanRecord),
    /// A request and its outcome.
    #[serde(rename = "asked")]
    Request(RequestRecord),
    /// The end of a round: all rows are in the output.
    #[serde(rename = "finished")]
    Finish(FinishRecord),
    /// The start of another round for rows without an answer.
    #[serde(rename = "again")]
    Retry,
}

/// Everything that the output of a job depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlanRecord {
    pub(super) version: u32,
    pub(super) rows: u64,
    pub(super) input: String,
    pub(super) task: String,
    /// Display names of the models.
    pub(super) models: Vec<String>,
    /// Names of the models as the providers know them.
    pub(super) resolved: Vec<String>,
    pub(super) format: String,
    pub(super) pack: u32,
    pub(super) seed: u64,
    /// Limit of tokens per minute at the start of the job; no request exceeds it. It is recorded
    /// because rows must be packed in the same way after limits have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tpm: Option<u64>,
}

impl PlanRecord {
    /// Describes the first difference to another plan.
    pub(super) fn difference(&self, other: &PlanRecord) -> Option<String> {
        let models = || format!("--model {}", self.models.join(" --fallback "));
        let differences = [
            (self.version != other.version, "another version of Bakeoff".to_owned()),
            (self.input != other.input, "different rows".to_owned()),
            (self.task != other.task, "a different task".to_owned()),
            (self.models != other.models, models()),
            (
                self.resolved != other.resolved,
                format!("different models: {}", self.resolved.join(", ")),
            ),
            (self.format != other.format, format!("--format {}", self.format)),
            (self.pack != other.pack, format!("--pack {}", self.pack)),
            (self.seed != other.seed, format!("--seed {}", self.seed)),
            (self.rows != other.rows, "different rows".to_owned()),
        ];
        differences.into_iter().find_map(|(is_different, what)| is_different.then_some(what))
    }
}

/// Identifies a request within a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RequestKey {
    pub(super) pack: u64,
    /// Digest of the pack's rows, so that a record never applies to different rows with the same pack number.
    #[serde(rename = "of")]
    pub(super) rows_digest: String,
    /// Path of the request within its pack.
    pub(super) path: String,
}

/// A request and its outcome.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RequestRecord {
    #[serde(flatten)]
    pub(super) key: RequestKey,
    /// Row positions within the pack, with their answers.
    pub(super) answers: Vec<(usize, RowAnswer)>,
    /// Row positions within the pack, with the reason why there is no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<(usize, String)>,
    /// Whether requests with fewer rows may succeed.
    #[serde(rename = "divide", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) can_split: bool,
    /// The reply, if it is worth re-asking.
    #[serde(rename = "repair", default, skip_serializing_if = "Option::is_none")]
    pub(super) invalid_reply: Option<InvalidReply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<RowAnswer>,
    #[serde(rename = "spent")]
    pub(super) usage: RequestUsage,
}

/// The end of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FinishRecord {
    /// Number of rows without an answer.
    pub(super) errors: u64,
    /// Digest of the output file.
    pub(super) output: String,
    /// Digest of the file with batch values.
    #[serde(rename = "facts")]
    pub(super) batches: Option<String>,
}

impl RequestRecord {
    /// Creates the record of a request.
    pub(super) fn new(
        key: RequestKey,
        request: &PackRequest,
        results: &RowResults,
        batch: Option<&RowAnswer>,
        usage: RequestUsage,
    ) -> RequestRecord {
        let (mut answers, mut failed) = (Vec::new(), Vec::new());
        for (row, answer) in request.rows.iter().zip(&results.answers) {
            match answer {
                Ok(answer) => answers.push((*row, answer.clone())),
                Err(reason) => failed.push((*row, reason.clone())),
            }
        }
        let batch = batch.cloned();
        let can_split = results.can_split && !failed.is_empty();
        let invalid_reply = results.invalid_reply.clone().filter(|_| request.reask.is_none());
        RequestRecord { key, answers, failed, can_split, invalid_reply, batch, usage }
    }

    /// Returns the recorded results of a request; `None` if the record covers different rows.
    pub(super) fn results_for(
        self,
        request: &PackRequest,
    ) -> Option<(RowResults, Option<RowAnswer>)> {
        let mut all: Vec<(usize, Result<RowAnswer, String>)> = Vec::new();
        all.extend(self.answers.into_iter().map(|(row, answer)| (row, Ok(answer))));
        all.extend(self.failed.into_iter().map(|(row, reason)| (row, Err(reason))));
        all.sort_by_key(|(row, _)| *row);
        let has_same_rows = all.iter().map(|(row, _)| row).eq(request.rows.iter());
        let answers = all.into_iter().map(|(_, answer)| answer).collect();
        let results =
            RowResults { answers, can_split: self.can_split, invalid_reply: self.invalid_reply };
        has_same_rows.then_some((results, self.batch))
    }
}
