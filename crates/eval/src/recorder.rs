//! Recording the events of a run: journal, aggregation and listener.

use crate::Error;
use crate::aggregate::Aggregate;
use crate::case_files::CaseFiles;
use crate::trial::TrialOutcome;
use bakeoff_core::Event;
use bakeoff_journal::Journal;

/// Receiver of the events of a run.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(&Event) + Send);

/// Records events: first in the journal, then in the aggregate, then at the listener, so that no event
/// is counted or shown that could still be lost.
pub(crate) struct Recorder<'a> {
    journal: Journal,
    aggregate: Aggregate,
    case_files: CaseFiles,
    listener: Listener<'a>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        journal: Journal,
        aggregate: Aggregate,
        case_files: CaseFiles,
        listener: Listener<'a>,
    ) -> Recorder<'a> {
        Recorder { journal, aggregate, case_files, listener }
    }

    /// Warns of targets of which all judged outputs are empty: a pass or a failure says little about them.
    pub(crate) fn warn_of_empty_outputs(&mut self) -> Result<(), Error> {
        let empty: Vec<String> = self
            .aggregate
            .targets_without_output()
            .map(|(target, count)| match count {
                1 => format!("the only output of `{target}` is empty"),
                _ => format!("all {count} outputs of `{target}` are empty"),
            })
            .collect();
        empty.into_iter().try_for_each(|message| self.warn("EVAL_EMPTY_OUTPUTS", message))
    }

    /// Passes an event to the listener without journaling it.
    pub(crate) fn emit(&mut self, event: &Event) {
        (self.listener)(event);
    }

    /// Records an event from within a trial. Started programs are journaled: if this process dies, the
    /// process that resumes the run ends them.
    pub(crate) fn record_trial_event(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::ProgramStarted { .. } => self.record(event),
            _ => {
                self.emit(event);
                Ok(())
            }
        }
    }

    /// Journals an event and passes it on.
    pub(crate) fn record(&mut self, event: &Event) -> Result<(), Error> {
        self.journal.push(event)?;
        self.journal.flush()?;
        self.emit(event);
        Ok(())
    }

    /// Journals a warning and passes it on.
    pub(crate) fn warn(&mut self, code: &str, message: String) -> Result<(), Error> {
        self.record(&Event::Warning { code: code.to_owned(), message })
    }

    /// Records finished trials in one write.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written, or the files of a trial could not be; in the second case
    /// all results are recorded nevertheless.
    pub(crate) fn record_trials(&mut self, outcomes: Vec<TrialOutcome>) -> Result<(), Error> {
        let mut events = Vec::with_capacity(outcomes.len());
        let mut written = Ok(());
        for outcome in outcomes {
            events.push(Event::TrialFinished { result: Box::new(outcome.result) });
            written = written.and(outcome.written);
        }
        for event in &events {
            self.journal.push(event)?;
        }
        self.journal.flush()?;
        for event in &events {
            if let Event::TrialFinished { result } = event {
                self.aggregate.add(result);
                self.case_files.add(result);
            }
            self.emit(event);
        }
        written
    }

    /// Syncs the journal to disk and returns the aggregated results.
    pub(crate) fn finish(self) -> Result<(Aggregate, CaseFiles), Error> {
        self.journal.finish()?;
        Ok((self.aggregate, self.case_files))
    }
}
