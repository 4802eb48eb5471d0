//! What is written of a run while it goes on.

use crate::Error;
use crate::aggregate::{Aggregate, Measure};
use crate::folder::RunFolder;
use crate::run::RunConfig;
use crate::suite::{Suite, Target, TargetKind, describe_limits};
use crate::trial::Made;
use bakeoff_core::{Event, SCHEMA_VERSION};
use bakeoff_journal::Journal;
use bakeoff_stats::Threshold;
use jiff::Timestamp;
use serde_json::json;

/// Whoever wants to know what happens.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(&Event) + Send);

/// Journals what happens, then counts it, then tells it: nothing is counted or shown that could be
/// lost.
pub(crate) struct Record<'a> {
    journal: Journal,
    aggregate: Aggregate,
    listener: Listener<'a>,
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        folder: &RunFolder,
        measure: Measure,
        listener: Listener<'a>,
    ) -> Result<Record<'a>, Error> {
        let journal = Journal::create(&folder.journal())?;
        Ok(Record { journal, aggregate: Aggregate::new(measure), listener })
    }

    /// What is of interest only while it happens.
    pub(crate) fn tell(&mut self, event: &Event) {
        (self.listener)(event);
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
            }
            self.tell(event);
        }
        written
    }

    /// Forces everything to disk and hands over what was counted.
    pub(crate) fn finish(self) -> Result<Aggregate, Error> {
        self.journal.finish()?;
        Ok(self.aggregate)
    }
}

/// The contents of `run.json`. Nothing here can hold a secret: keys and headers are left out.
pub(crate) fn describe(
    suite: &Suite,
    config: &RunConfig,
    measure: &Measure,
    folder: &RunFolder,
    now: Timestamp,
) -> serde_json::Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "run_id": folder.id,
        "bakeoff_version": env!("CARGO_PKG_VERSION"),
        "started_at": now.to_string(),
        "arguments": config.arguments,
        "seed": config.seed,
        "layout": if folder.is_flat() { "flat" } else { "by_target" },
        "suite": {
            "name": suite.name,
            "path": suite.path.display().to_string(),
            "digest": suite.digest,
            "trials": measure.trials,
            "threshold": measure.threshold.as_f64(),
            "suite_threshold": measure.suite_threshold.map(Threshold::as_f64),
            "parallel": suite.settings.parallel,
            "timeout_seconds": suite.settings.timeout.as_secs_f64(),
            "cases": {
                "path": suite.cases.path().display().to_string(),
                "digest": suite.survey.digest,
                "chosen": measure.cases.len(),
            },
            "targets": suite.targets.iter().map(describe_target).collect::<Vec<_>>(),
            "checks": suite.checks.iter().map(|check| &check.id).collect::<Vec<_>>(),
        },
    })
}

fn describe_target(target: &Target) -> serde_json::Value {
    let mut value = json!({
        "name": target.name,
        "gate": target.gate,
        "prompt": target.prompt.source(),
    });
    match &target.kind {
        TargetKind::Model(model) => {
            value["model"] = json!(model.label);
            value["system"] = json!(model.system.as_ref().map(|system| system.source()));
            value["limits"] = describe_limits(&model.model.limits());
        }
        TargetKind::Program(program) => {
            let words: Vec<_> = program.command.iter().map(|word| word.to_string_lossy()).collect();
            value["command"] = json!(words);
        }
    }
    value
}
