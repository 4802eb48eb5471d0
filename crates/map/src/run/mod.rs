//! A job from its first look at the rows to the last line of its output.

mod ask;
mod begin;
mod facts;
mod ladder;
mod output;
mod progress;
mod record;
mod resume;
mod source;
mod survey;
mod work;

pub use progress::{Finished, Progress, Stop};

use crate::auto::{Choice, choose};
use crate::error::Error;
use crate::pack::PackLimits;
use crate::task::{Format, PackSize, Task};
use ask::Spent;
use bakeoff_core::NanoDollars;
use bakeoff_llm::{Client, Model};
use bakeoff_pace::Learned;
use output::{Layout, whole_rows};
use record::PlanRecord;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use survey::Survey;

/// What a job is made of.
#[derive(Debug, Clone)]
pub struct JobConfig {
    /// The rows: .csv, .jsonl, .ndjson or .json.
    pub input: PathBuf,
    /// Where rows with their answers go: .jsonl, .ndjson or .csv.
    pub output: PathBuf,
    /// What is asked.
    pub task: Task,
    /// Who is asked, by the names that users know: the first, and for rows that it cannot answer
    /// the next.
    pub models: Vec<(String, Model)>,
    /// Items per request, instead of the task's.
    pub pack: Option<PackSize>,
    /// How replies are written, instead of the task's.
    pub format: Option<Format>,
    /// Seed of the ids.
    pub seed: u64,
    /// What earlier runs have found out about the first model's limits, for choosing how many items
    /// a request has.
    pub learned: Option<Learned>,
    /// Nothing is started once the job has cost so much.
    pub max_cost: Option<NanoDollars>,
    /// Begin anew, whatever there is.
    pub force: bool,
    /// Most rows in memory, or [`ROWS_IN_MEMORY`]. When so many wait behind a slow one, nothing new
    /// is started.
    pub rows_in_memory: Option<usize>,
}

/// Most rows in memory, when nobody says otherwise.
pub const ROWS_IN_MEMORY: usize = 20_000;

/// What a job is going to do.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// Rows in all.
    pub rows: u64,
    /// Rows that an earlier process has brought into the output.
    pub done: u64,
    /// Requests for all rows, when every answer is good at once.
    pub requests: u64,
    /// Most items per request.
    pub pack: u32,
    /// Why so many, when nobody said how many.
    pub choice: Option<Choice>,
    /// It goes on with what an earlier process has begun.
    pub is_resumed: bool,
    /// An earlier process has done everything.
    pub is_finished: bool,
}

/// A job that can be run.
#[derive(Debug)]
pub struct Job {
    config: JobConfig,
    client: Arc<Client>,
    format: Format,
    plan: JobPlan,
    record: PlanRecord,
    limits: PackLimits,
    layout: Layout,
    first_open: u64,
    earlier: resume::Earlier,
}

impl Job {
    /// Looks at all rows, decides how they are packed, and finds out what is done already. Nothing
    /// is asked and nothing is written.
    ///
    /// # Errors
    ///
    /// When a row cannot be read, when the output cannot be what is wanted, or when it was begun by
    /// another job.
    pub fn new(config: JobConfig, client: Arc<Client>) -> Result<Job, Error> {
        let (_, model) = config.models.first().ok_or(Error::NoModel)?;
        // Limits that cannot be are told before anything else.
        for (_, model) in &config.models {
            client.pool(model)?;
        }
        let task = &config.task;
        let format = config.format.unwrap_or(task.format);
        if is_same(&config.input, &config.output) {
            return Err(Error::SameFile(config.output.clone()));
        }
        let survey = Survey::new(&config.input, task)?;
        let layout = Layout::new(&config.output, survey.columns.clone(), task)?;
        let journal = journal_of(&config.output);
        let begun = if config.force { None } else { resume::plan(&journal)? };
        if begun.is_none() && !config.force && is_used(&config.output) && !journal.exists() {
            return Err(Error::OutputExists(config.output.clone()));
        }
        let (pack, choice) = match (config.pack.unwrap_or(task.pack), &begun) {
            (PackSize::Items(items), _) => (items, None),
            // What was chosen once is kept, or nothing would fit any more.
            (PackSize::Auto, Some(begun)) => (begun.pack, None),
            (PackSize::Auto, None) => {
                let sizes = survey.sizes(task, format);
                let choice = choose(&model.limits(), config.learned, sizes);
                (choice.items, Some(choice))
            }
        };
        let record = PlanRecord {
            version: record::VERSION,
            rows: survey.rows,
            input: survey.digest.clone(),
            task: task.digest(),
            models: config.models.iter().map(|(name, _)| name.clone()).collect(),
            format: format.to_string(),
            pack,
            seed: config.seed,
            tpm: begun.as_ref().map_or(model.limits().tpm, |begun| begun.tpm),
        };
        if let Some(what) = begun.as_ref().and_then(|begun| begun.difference(&record)) {
            return Err(Error::Changed { path: config.output.clone(), what });
        }
        let limits = survey::pack_limits(task, format, pack, record.tpm);
        let done = if begun.is_some() { whole_rows(&config.output)? } else { 0 };
        let packed = survey::count(&config.input, task, limits, done)?;
        let earlier = match begun.is_some() {
            true => resume::earlier(&journal, packed.first_open)?,
            false => resume::Earlier {
                spent: Spent { cost: Some(NanoDollars(0)), ..Spent::default() },
                ..resume::Earlier::default()
            },
        };
        let plan = JobPlan {
            rows: survey.rows,
            done: packed.rows_before,
            requests: packed.requests,
            pack,
            choice,
            is_resumed: begun.is_some(),
            is_finished: earlier.finished.is_some() && packed.rows_before == survey.rows,
        };
        let first_open = packed.first_open;
        Ok(Job { config, client, format, plan, record, limits, layout, first_open, earlier })
    }

    /// What it is going to do.
    pub fn plan(&self) -> &JobPlan {
        &self.plan
    }
}

/// Whether two names are of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

fn is_used(output: &Path) -> bool {
    std::fs::metadata(output).is_ok_and(|file| file.len() > 0)
}

/// The journal of an output: beside it.
pub fn journal_of(output: &Path) -> PathBuf {
    beside(output, ".journal")
}

/// Where facts about whole requests go: beside the output.
pub fn facts_of(output: &Path) -> PathBuf {
    beside(output, ".batches.jsonl")
}

fn beside(output: &Path, ending: &str) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    output.with_file_name(name)
}
