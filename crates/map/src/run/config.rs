//! Configuration and plan of a job, and the paths of its files.

use crate::pack_size::PackChoice;
use crate::task::{PackSize, ReplyFormat, Task};
use bakeoff_core::NanoDollars;
use bakeoff_llm::Model;
use bakeoff_pace::LearnedLimit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Configuration of a job.
///
/// The default has no input, output, instructions or models; [`JobConfig::new`] sets these.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct JobConfig {
    /// Input file with the rows: .csv, .jsonl, .ndjson or .json.
    pub input: PathBuf,
    /// Output file for the rows with their answers: .jsonl, .ndjson or .csv.
    pub output: PathBuf,
    /// Instructions and answer fields.
    pub task: Task,
    /// Models with their display names. Rows without an answer from one model are sent to the next.
    pub models: Vec<(String, Model)>,
    /// Items per request; overrides the task.
    pub pack: Option<PackSize>,
    /// Reply format; overrides the task.
    pub format: Option<ReplyFormat>,
    /// Seed of the item ids.
    pub seed: u64,
    /// Limits of the first model learned by earlier runs, used to choose the pack size.
    pub learned: Option<LearnedLimit>,
    /// Cost limit. No request starts that is likely to exceed it.
    pub max_cost: Option<NanoDollars>,
    /// Start over and overwrite existing output.
    pub force: bool,
    /// Request rows without an answer once more.
    pub retry_errors: bool,
    /// Maximum amount of rows held in memory.
    pub max_held: HeldRows,
}

impl JobConfig {
    /// Creates a job from its files, its task, and its models with their display names.
    pub fn new(
        input: impl Into<PathBuf>,
        output: impl Into<PathBuf>,
        task: Task,
        models: Vec<(String, Model)>,
    ) -> JobConfig {
        JobConfig {
            input: input.into(),
            output: output.into(),
            task,
            models,
            ..JobConfig::default()
        }
    }
}

/// Amount of rows held in memory. While the maximum waits behind a slow pack, no new pack starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRows {
    /// Number of rows.
    pub rows: usize,
    /// Size of the rows in bytes.
    pub bytes: usize,
}

impl Default for HeldRows {
    fn default() -> HeldRows {
        HeldRows { rows: 20_000, bytes: 64 << 20 }
    }
}

/// Plan of a job before it runs.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// Number of rows.
    pub rows: u64,
    /// Rows answered by earlier processes.
    pub answered: u64,
    /// Requests for all rows if every first answer is valid.
    pub requests: u64,
    /// Likely cost of these requests; `None` if the price is unknown.
    pub expected_cost: Option<NanoDollars>,
    /// Maximum number of items per request.
    pub pack: u32,
    /// Reason for the pack size if it was chosen automatically.
    pub choice: Option<PackChoice>,
    /// Whether the job resumes an earlier one.
    pub is_resumed: bool,
    /// Whether the job requests rows without an answer once more.
    pub is_retry: bool,
    /// Whether an earlier process finished the job.
    pub is_finished: bool,
}

/// Returns whether two paths refer to the same file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    one == other || inode(one).is_some_and(|one| inode(other) == Some(one))
}

/// Returns the path of the journal next to an output file.
pub fn journal_path(output: &Path) -> PathBuf {
    with_suffix(output, ".journal")
}

/// Returns the path of the file with batch values next to an output file.
pub fn batch_path(output: &Path) -> PathBuf {
    with_suffix(output, ".batches.jsonl")
}

fn with_suffix(output: &Path, suffix: &str) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    output.with_file_name(name)
}
