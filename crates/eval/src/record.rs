//! What is written of a run while it goes on.

use crate::Error;
use crate::aggregate::Aggregate;
use crate::case_files::CaseFiles;
use crate::trial::Made;
use bakeoff_core::{Event, NanoDollars};
use bakeoff_journal::Journal;

/// Whoever wants to know what happens.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(&Event) + Send);

/// Journals what happens, then counts it, then tells it: nothing is counted or shown that could be
/// lost.
pub(crate) struct Record<'a> {
    journal: Journal,
    aggregate: Aggregate,
    files: CaseFiles,
    listener: Listener<'a>,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        journal: Journal,
        aggregate: Aggregate,
        files: CaseFiles,
        listener: Listener<'a>,
    ) -> Record<'a> {
        Record { journal, aggregate, files, listener }
    }

    /// Money and tokens so far.
    pub(crate) fn spent(&self) -> (NanoDollars, u64) {
        self.aggregate.spent()
    }

    /// What is of interest only while it happens.
    pub(crate) fn tell(&mut self, event: &Event) {
        (self.listener)(event);
    }

    /// What happens within a trial. Programs that were started are journaled: should this process
    /// die, the next one ends them.
    pub(crate) fn told(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::ProgramStarted { .. } => self.event(event),
            _ => {
                self.tell(event);
                Ok(())
            }
        }
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), Error> {
        self.journal.push(event)?;
        self.journal.flush()?;
        self.tell(event);
        Ok(())
    }

    /// Trials that ended, in one write.
    ///
    /// # Errors
    ///
    /// The first of them whose files could not be written; all results are kept all the same.
    pub(crate) fn trials(&mut self, ended: Vec<Made>) -> Result<(), Error> {
        let mut events = Vec::with_capacity(ended.len());
        let mut written = Ok(());
        for made in ended {
            events.push(Event::TrialFinished { result: Box::new(made.result) });
            written = written.and(made.written);
        }
        for event in &events {
            self.journal.push(event)?;
        }
        self.journal.flush()?;
        for event in &events {
            if let Event::TrialFinished { result } = event {
                self.aggregate.add(result);
                self.files.add(result);
            }
            self.tell(event);
        }
        written
    }

    /// Forces everything to disk and hands over what was counted.
    pub(crate) fn finish(self) -> Result<(Aggregate, CaseFiles), Error> {
        self.journal.finish()?;
        Ok((self.aggregate, self.files))
    }
}
