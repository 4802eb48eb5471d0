//! A job from its first look at the rows to the last line of its output.

mod ask;
mod begin;
mod budget;
mod continued;
mod doubt;
mod facts;
mod ladder;
mod layout;
mod output;
mod progress;
mod record;
mod resume;
mod shelf;
mod source;
mod spent;
mod survey;
mod work;

pub use progress::{Finished, Progress, Stop};

use crate::auto::{Choice, choose};
use crate::error::Error;
use crate::pack::PackLimits;
use crate::task::{Format, PackSize, Task};
use bakeoff_core::NanoDollars;
use bakeoff_journal::Journal;
use bakeoff_llm::{Client, Model};
use bakeoff_pace::LearnedLimit;
use continued::digest_of;
use layout::Layout;
use record::PlanRecord;
use resume::Earlier;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
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
    pub learned: Option<LearnedLimit>,
    /// Nothing is started that is likely to bring the cost above this.
    pub max_cost: Option<NanoDollars>,
    /// Begin anew, whatever there is.
    pub force: bool,
    /// Ask once more about rows that have no answer.
    pub retry_errors: bool,
    /// Most that is held in memory.
    pub held: HeldRows,
}

/// Most that is held in memory. When so much waits behind a slow row, nothing new is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRows {
    /// Rows.
    pub rows: usize,
    /// Bytes of the rows.
    pub bytes: usize,
}

impl Default for HeldRows {
    fn default() -> HeldRows {
        HeldRows { rows: 20_000, bytes: 64 << 20 }
    }
}

/// What a job is going to do.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// Rows in all.
    pub rows: u64,
    /// Rows that earlier processes have answers for.
    pub answered: u64,
    /// Requests for all rows, when every answer is good at once.
    pub requests: u64,
    /// What these are likely to cost; `None` when nobody knows the price.
    pub expected_cost: Option<NanoDollars>,
    /// Most items per request.
    pub pack: u32,
    /// Why so many, when nobody said how many.
    pub choice: Option<Choice>,
    /// It goes on with what an earlier process has begun.
    pub is_resumed: bool,
    /// Rows that have no answer are asked about once more.
    pub is_again: bool,
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
    survey: Survey,
    earlier: Earlier,
    /// Locked, so that nobody else does the same.
    journal: Journal,
}

impl Job {
    /// Looks at all rows, decides how they are packed, and finds out what is done already. Nothing
    /// is asked and nothing is written, but the journal is there from now on and locked.
    ///
    /// # Errors
    ///
    /// When a row cannot be read, when the output cannot be what is wanted, when it was begun by
    /// another job, or when another process is at it.
    pub fn new(config: JobConfig, client: Arc<Client>) -> Result<Job, Error> {
        let (_, model) = config.models.first().ok_or(Error::NoModel)?;
        // Limits that cannot be are told before anything else.
        for (_, model) in &config.models {
            client.pool(model)?;
        }
        let task = &config.task;
        let format = config.format.unwrap_or(task.format);
        task.check_format(format).map_err(Error::Format)?;
        let (path, facts) = (journal_of(&config.output), facts_of(&config.output));
        for written in [&config.output, &path, &facts] {
            if is_same_file(&config.input, written) {
                return Err(Error::SameFile(config.input.clone()));
            }
        }
        let survey = Survey::new(&config.input, task)?;
        let layout = Layout::new(&config.output, survey.columns.clone(), task)?;
        for written in [&config.output, &path, &facts] {
            if std::fs::metadata(written).is_ok_and(|file| !file.is_file()) {
                return Err(Error::NotAFile(written.clone()));
            }
        }
        let is_used = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        let foreign = || match config.force {
            true => None,
            false if is_used(&config.output) => Some(&config.output),
            false if !task.batch.is_empty() && is_used(&facts) => Some(&facts),
            false => None,
        };
        match (path.exists(), foreign()) {
            (false, Some(file)) => return Err(Error::OutputExists(file.clone())),
            (false, None) => {}
            (true, _) => resume::expect_journal(&path)?,
        }
        let journal = Journal::open(&path).map_err(|error| match error {
            bakeoff_journal::Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                Error::NoFolder(config.output.clone())
            }
            error => error.into(),
        })?;
        let begun = if config.force { None } else { resume::plan(&path)? };
        // The first line is written before the output is.
        if let (None, Some(file)) = (&begun, foreign()) {
            return Err(Error::OutputExists(file.clone()));
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
        let resolved = |(_, model): &(String, Model)| match model.is_simulated() {
            true => model.name().to_owned(),
            false => format!("{}/{}", model.provider(), model.name()),
        };
        let record = PlanRecord {
            version: record::VERSION,
            rows: survey.rows,
            input: survey.digest.clone(),
            task: task.digest(),
            models: config.models.iter().map(|(name, _)| name.clone()).collect(),
            resolved: config.models.iter().map(resolved).collect(),
            format: format.to_string(),
            pack,
            seed: config.seed,
            tpm: begun.as_ref().map_or(model.limits().tpm, |begun| begun.tpm),
        };
        if let Some(what) = begun.as_ref().and_then(|begun| begun.difference(&record)) {
            return Err(Error::Changed { path: config.output.clone(), what });
        }
        let limits = survey::pack_limits(task, format, pack, record.tpm);
        let needed = limits.overhead.saturating_add(limits.answer);
        if let Some(most) = limits.ceiling.filter(|most| needed > *most) {
            return Err(Error::NoRoom { needed, most });
        }
        let is_resumed = begun.is_some();
        let earlier = if is_resumed { Earlier::read(&path)? } else { Earlier::default() };
        // A round that has begun goes on; another begins when there are errors at its end.
        let has_errors = earlier.ending.as_ref().is_some_and(|ending| ending.errors > 0);
        let is_again = config.retry_errors && has_errors;
        let is_written = earlier.ending.as_ref().is_some_and(|ending| {
            digest_of(&config.output).as_ref() == Some(&ending.output)
                && (ending.facts.is_none() || digest_of(&facts) == ending.facts)
        });
        if is_again && is_used(&config.output) && !is_written {
            return Err(Error::Edited { path: config.output.clone(), at: 0 });
        }
        let requests = survey::requests(&config.input, task, limits)?;
        let plan = JobPlan {
            rows: survey.rows,
            answered: earlier.answered,
            requests,
            expected_cost: model.cost(&survey.usage(limits, requests)),
            pack,
            choice,
            is_resumed,
            is_again,
            is_finished: is_written && !is_again,
        };
        Ok(Job { config, client, format, plan, record, limits, layout, survey, earlier, journal })
    }

    /// What it is going to do.
    pub fn plan(&self) -> &JobPlan {
        &self.plan
    }

    /// Does nothing after all, and leaves things as they were.
    ///
    /// # Errors
    ///
    /// When the journal that was made for it cannot be removed.
    pub fn discard(self) -> Result<(), Error> {
        let path = journal_of(&self.config.output);
        match std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
            true => begin::remove(&path),
            false => Ok(()),
        }
    }
}

/// Whether two names are of one file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    one == other || inode(one).is_some_and(|one| inode(other) == Some(one))
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
