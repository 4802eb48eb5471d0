//! A job: checks and planning before the first request, then the run.

use super::batch::BatchFile;
use super::config::{JobConfig, JobPlan, batch_path, is_same_file, journal_path};
use super::layout::OutputLayout;
use super::output::OutputFile;
use super::output_buffer::OutputBuffer;
use super::pack_reader::PackReader;
use super::progress::{JobOutcome, JobProgress};
use super::record::{self, JournalRecord, PlanRecord};
use super::request::{ModelState, RequestContext};
use super::resume::{self, JournalReplay, JournalSummary};
use super::resumed_output::{file_digest, io_error};
use super::runner::{JobLimits, JobRunner};
use super::scan::{self, InputScan};
use crate::error::Error;
use crate::pack::PackLimits;
use crate::pack_size::choose_pack_size;
use crate::task::{PackSize, ReplyFormat};
use bakeoff_core::NanoDollars;
use bakeoff_journal::Journal;
use bakeoff_llm::{Client, Model};
use bakeoff_pace::{BudgetLedger, Expense, ExpenseLimit};
use futures_util::future::BoxFuture;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A planned job.
#[derive(Debug)]
pub struct Job {
    config: JobConfig,
    client: Arc<Client>,
    format: ReplyFormat,
    plan: JobPlan,
    record: PlanRecord,
    limits: PackLimits,
    layout: OutputLayout,
    scan: InputScan,
    summary: JournalSummary,
    /// Locked, so that no other process runs the same job.
    journal: Journal,
}

impl Job {
    /// Scans all rows, chooses the pack size and reads the state of an earlier run.
    ///
    /// Sends no request and writes no output, but creates the journal if there is none, and locks it.
    ///
    /// # Errors
    ///
    /// Fails if a row is invalid, if the output cannot be written as configured, if it belongs to a
    /// different job, or if another process runs the job.
    pub fn new(config: JobConfig, client: Arc<Client>) -> Result<Job, Error> {
        let (_, model) = config.models.first().ok_or(Error::NoModel)?;
        // Invalid limits are reported before the input is read.
        for (_, model) in &config.models {
            client.pool(model)?;
        }
        let task = &config.task;
        let format = config.format.unwrap_or(task.format);
        task.check_format(format)?;
        let (journal_file, batch_file) = (journal_path(&config.output), batch_path(&config.output));
        let written = [&config.output, &journal_file, &batch_file];
        if written.iter().any(|path| is_same_file(&config.input, path)) {
            return Err(Error::SameFile(config.input.clone()));
        }
        let scan = InputScan::new(&config.input, task)?;
        let layout = OutputLayout::new(&config.output, scan.columns.clone(), task)?;
        for path in written {
            if std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
                return Err(Error::NotAFile(path.clone()));
            }
        }
        match (journal_file.exists(), existing_output(&config)) {
            (false, Some(path)) => return Err(Error::OutputExists(path)),
            (false, None) => {}
            (true, _) => resume::check_journal(&journal_file)?,
        }
        let journal = Journal::open(&journal_file).map_err(|error| match error {
            bakeoff_journal::Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                Error::NoFolder(config.output.clone())
            }
            error => error.into(),
        })?;
        let earlier = if config.force { None } else { resume::read_plan(&journal_file)? };
        // The plan is journaled before the output is created, so output without a plan is foreign.
        if let (None, Some(path)) = (&earlier, existing_output(&config)) {
            return Err(Error::OutputExists(path));
        }
        let (pack, choice) = match (config.pack.unwrap_or(task.pack), &earlier) {
            (PackSize::Items(items), _) => (items, None),
            // A resumed job keeps its pack size; otherwise no journaled request would match.
            (PackSize::Auto, Some(earlier)) => (earlier.pack, None),
            (PackSize::Auto, None) => {
                let sizes = scan.token_sizes(task, format);
                let choice = choose_pack_size(&model.limits(), config.learned, sizes);
                (choice.items, Some(choice))
            }
        };
        let record = PlanRecord {
            version: record::VERSION,
            rows: scan.rows,
            input: scan.digest.clone(),
            task: task.digest(),
            models: config.models.iter().map(|(name, _)| name.clone()).collect(),
            resolved: config.models.iter().map(|(_, model)| resolved_name(model)).collect(),
            format: format.to_string(),
            pack,
            seed: config.seed,
            tpm: earlier.as_ref().map_or(model.limits().tpm, |earlier| earlier.tpm),
        };
        if let Some(difference) = earlier.as_ref().and_then(|plan| plan.difference(&record)) {
            return Err(Error::DifferentJob { path: config.output.clone(), difference });
        }
        let limits = scan::pack_limits(task, format, pack, record.tpm);
        limits.check_prompt()?;
        let is_resumed = earlier.is_some();
        let summary = match is_resumed {
            true => JournalSummary::read(&journal_file)?,
            false => JournalSummary::default(),
        };
        // An unfinished retry round is resumed; a new one starts if the finished job has errors.
        let has_errors = summary.finish.as_ref().is_some_and(|finish| finish.errors > 0);
        let is_retry = config.retry_errors && has_errors;
        let is_output_intact = summary.finish.as_ref().is_some_and(|finish| {
            file_digest(&config.output).as_ref() == Some(&finish.output)
                && (finish.batches.is_none() || file_digest(&batch_file) == finish.batches)
        });
        if is_retry && has_content(&config.output) && !is_output_intact {
            return Err(Error::Edited { path: config.output.clone(), at: 0 });
        }
        let requests = scan::count_requests(&config.input, task, limits)?;
        let plan = JobPlan {
            rows: scan.rows,
            answered: summary.answered,
            requests,
            expected_cost: model.cost(&scan.expected_usage(limits, requests)),
            pack,
            choice,
            is_resumed,
            is_retry,
            is_finished: is_output_intact && !is_retry,
        };
        Ok(Job { config, client, format, plan, record, limits, layout, scan, summary, journal })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &JobPlan {
        &self.plan
    }

    /// Runs the job, or what is left of it.
    ///
    /// Cancelling `stop` lets requests in flight finish and starts no others. `on_progress` is called
    /// with the current progress after each write.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written. Journaled answers are kept.
    // Boxed, so that it is compiled in this crate alone.
    pub fn run<'a>(
        self,
        stop: CancellationToken,
        on_progress: &'a mut (dyn FnMut(&JobProgress) + Send),
    ) -> BoxFuture<'a, Result<JobOutcome, Error>>
    where
        Self: 'a,
    {
        Box::pin(self.run_to_end(stop, on_progress))
    }

    async fn run_to_end(
        mut self,
        stop: CancellationToken,
        on_progress: &mut (dyn FnMut(&JobProgress) + Send),
    ) -> Result<JobOutcome, Error> {
        let summary = &self.summary;
        let mut progress = JobProgress {
            rows: self.plan.rows,
            done: 0,
            errors: 0,
            settled: 0,
            requests: summary.usage.requests,
            reasks: summary.reasks,
            in_flight: 0,
            cached: summary.usage.cached,
            cost: summary.usage.cost,
            usage: summary.usage.tokens,
        };
        let rounds = summary.rounds + usize::from(self.plan.is_retry);
        if let (true, Some(finish)) = (self.plan.is_finished, &summary.finish) {
            (progress.done, progress.settled) = (progress.rows, progress.rows);
            progress.errors = finish.errors;
            return Ok(JobOutcome { progress, stop: None, unavailable_models: Vec::new() });
        }
        let replay = match self.plan.is_resumed {
            true => {
                if self.plan.is_retry {
                    self.start_retry_round()?;
                }
                JournalReplay::new(&journal_path(&self.config.output))?
            }
            false => {
                self.start_over()?;
                JournalReplay::empty()
            }
        };
        let config = self.config;
        let output = OutputFile::open(&config.output, self.layout)?;
        let batches = BatchFile::open(&batch_path(&config.output), &config.task)?;
        let buffer = OutputBuffer::new(self.journal, output, batches);
        let packs = PackReader::new(&config.input, self.limits, self.scan)?;
        let context = RequestContext {
            client: self.client,
            task: config.task,
            format: self.format,
            seed: config.seed,
            model_states: config.models.iter().map(|_| ModelState::default()).collect(),
            models: config.models,
            rounds,
            stop: stop.child_token(),
        };
        let spent = progress.cost.unwrap_or(NanoDollars(0));
        let limit = ExpenseLimit { cost: config.max_cost, tokens: None };
        let budget = BudgetLedger::new(limit, Expense { cost: spent, tokens: 0 });
        let limits = JobLimits { budget, max_held: config.max_held };
        let runner = JobRunner::new(context, buffer, replay, limits, progress, on_progress);
        runner.run(packs, &stop).await
    }

    /// Discards the job without running it and leaves all files as they were.
    ///
    /// # Errors
    ///
    /// Fails if the journal created by [`Job::new`] cannot be removed.
    pub fn discard(self) -> Result<(), Error> {
        let path = journal_path(&self.config.output);
        match std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
            true => remove_file(&path),
            false => Ok(()),
        }
    }

    /// Clears the output and journals the start of a retry round: rows without an answer may get one,
    /// so all rows are written again. If the process is killed between the steps, the next one writes
    /// the same rows as before.
    fn start_retry_round(&mut self) -> Result<(), Error> {
        self.clear_output()?;
        self.journal.push(&JournalRecord::Retry)?;
        Ok(self.journal.flush()?)
    }

    /// Clears output and journal, and journals the plan. If the process is killed between any two
    /// steps, the next one finds a job that it can resume, or none.
    fn start_over(&mut self) -> Result<(), Error> {
        self.clear_output()?;
        self.journal.clear()?;
        self.journal.push(&JournalRecord::Plan(self.record.clone()))?;
        Ok(self.journal.flush()?)
    }

    fn clear_output(&self) -> Result<(), Error> {
        truncate_file(&self.config.output)?;
        // Without batch fields, a file at that path does not belong to this job.
        match self.config.task.batch.is_empty() {
            true => Ok(()),
            false => remove_file(&batch_path(&self.config.output)),
        }
    }
}

/// Returns a non-empty file at an output path, unless it may be overwritten.
fn existing_output(config: &JobConfig) -> Option<PathBuf> {
    let batch_file = batch_path(&config.output);
    match config.force {
        true => None,
        false if has_content(&config.output) => Some(config.output.clone()),
        false if !config.task.batch.is_empty() && has_content(&batch_file) => Some(batch_file),
        false => None,
    }
}

fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// Returns the model name as the provider knows it.
fn resolved_name(model: &Model) -> String {
    match model.is_simulated() {
        true => model.name().to_owned(),
        false => format!("{}/{}", model.provider(), model.name()),
    }
}

/// Empties a file if it exists. Truncating keeps symbolic and hard links to it intact.
fn truncate_file(path: &Path) -> Result<(), Error> {
    match OpenOptions::new().write(true).truncate(true).open(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(io_error("empty", path, source)),
        _ => Ok(()),
    }
}

/// Removes a file if it exists.
fn remove_file(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(io_error("remove", path, source))
        }
        _ => Ok(()),
    }
}
