//! From a plan to work: files are opened, and what was done before is taken into account.

use super::ask::Asker;
use super::facts::Facts;
use super::output::Output;
use super::record::Line;
use super::source::Source;
use super::work::{Bounds, Files, Work};
use super::{Finished, Job, Progress, ROWS_IN_MEMORY, facts_of, journal_of, survey};
use crate::error::Error;
use crate::rows::Rows;
use crate::task::Task;
use bakeoff_journal::Journal;
use std::path::Path;
use tokio_util::sync::CancellationToken;

impl Job {
    /// Does the job, or what is left of it. `stop` lets requests that are under way finish, and
    /// starts no others. `listen` is told how far it is, whenever rows have been written.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written. What has been journaled is not lost.
    pub async fn run(
        self,
        stop: CancellationToken,
        listen: &mut (dyn FnMut(&Progress) + Send),
    ) -> Result<Finished, Error> {
        let Job { config, client, format, plan, record, limits, layout, first_open, earlier } =
            self;
        let spent = earlier.spent;
        let mut progress = Progress {
            rows: plan.rows,
            done: plan.done,
            errors: 0,
            requests: spent.requests,
            cached: spent.cached,
            again: 0,
            cost: spent.cost,
            usage: spent.usage,
        };
        if let (true, Some(counts)) = (plan.is_finished, earlier.finished) {
            progress.errors = counts.errors;
            return Ok(Finished { progress, stop: None });
        }
        let journal_path = journal_of(&config.output);
        let mut journal = match plan.is_resumed {
            true => Journal::reopen(&journal_path)?,
            false => {
                survey::remove(&journal_path)?;
                survey::remove(&config.output)?;
                survey::remove(&facts_of(&config.output))?;
                Journal::create(&journal_path)?
            }
        };
        if !plan.is_resumed {
            journal.push(&Line::Plan(record))?;
            journal.flush()?;
        }
        let output = Output::open(&config.output, layout, plan.done)?;
        let facts = Facts::open(&facts_of(&config.output), &config.task, first_open)?;
        let asker = Asker {
            client,
            task: config.task,
            format,
            seed: config.seed,
            models: config.models,
            stop: stop.child_token(),
        };
        let source = Source::new(&config.input, limits, first_open)?;
        progress.errors = errors_before(&config.output, &asker.task, plan.done)?;
        let files = Files { journal, output, facts };
        let earlier = earlier.asked;
        let bounds = Bounds {
            max_cost: config.max_cost,
            most_rows: config.rows_in_memory.unwrap_or(ROWS_IN_MEMORY).max(1),
        };
        let work = Work::new(asker, files, earlier, bounds, first_open, progress, listen);
        work.go(source, &stop).await
    }
}

/// Rows without an answer among those that were written before.
fn errors_before(output: &Path, task: &Task, rows: u64) -> Result<u64, Error> {
    let mut errors = 0;
    if rows > 0 {
        for row in Rows::open(output)?.take(usize::try_from(rows).unwrap_or(usize::MAX)) {
            errors += u64::from(task.is_error(&row?));
        }
    }
    Ok(errors)
}
