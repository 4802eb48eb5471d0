//! Judging stored outputs anew, by today's checks.

use crate::Error;
use crate::aggregate::{Aggregate, Measure};
use crate::case::CaseReader;
use crate::casefile::CaseFiles;
use crate::folder::RunFolder;
use crate::past::PastRun;
use crate::record::Record;
use crate::run::{Finished, Run, Stopper, exit_code};
use crate::runfile::RunFile;
use crate::suite::Artifacts;
use crate::traffic::Traffic;
use crate::trial::{Made, Trials};
use bakeoff_core::{CaseIds, ErrorKind, Event, RunStats, SCHEMA_VERSION, TargetName, TrialResult};
use bakeoff_journal::Journal;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{JoinError, JoinSet};

/// Results that are judged at once: checks may ask models or run programs.
const AT_ONCE: usize = 64;

/// Results that are written together.
const BATCH: usize = 256;

impl Run {
    /// Judges the outputs of an earlier run by the checks of this suite. No target is asked again; a
    /// model is called only when a judged check asks for it. The earlier run stays as it is: what was
    /// found is a run of its own.
    ///
    /// # Errors
    ///
    /// When a target or case of the run is not in the suite any more, or results cannot be read or
    /// written.
    pub async fn score(
        self,
        past: &PastRun,
        stopper: &Stopper,
        listen: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<Finished, Error> {
        let started = Instant::now();
        let now = Timestamp::now();
        let known = self.known(past)?;
        self.knows_cases(past)?;
        let measure = Measure {
            cases: Arc::clone(&past.file.suite.cases.chosen),
            trials: past.file.suite.trials,
            ..self.measure.clone()
        };
        let flat = measure.targets.len() == 1;
        let folder = RunFolder::create(&self.config.out, &self.suite.name, now, flat)?;
        let file = RunFile::new(&self.suite, &self.config, &measure, &folder, now.to_string());
        let scored_from = Some(past.file.run_id.clone());
        folder.write_run(&RunFile { scored_from, ..file })?;
        let journal = Journal::create(&folder.journal())?;
        let files = CaseFiles::new(Artifacts::None);
        let mut record = Record::new(journal, Aggregate::new(measure), files, listen);
        let plan = bakeoff_core::RunPlan {
            cases: past.file.suite.cases.chosen.len() as u64,
            ..self.plan()
        };
        let run_id = folder.id.clone();
        record.event(&Event::RunStarted { schema_version: SCHEMA_VERSION, run_id, plan })?;
        let traffic = Traffic::open(&folder)?;
        let trials = self.trials(&folder, &traffic, stopper).0;
        let reader = self.suite.cases.reader(&self.suite.survey).map_err(Error::Cases)?;
        let mut judging: JoinSet<Made> = JoinSet::new();
        let mut done = Vec::new();
        for result in past.results()? {
            if stopper.is_stopped() {
                break;
            }
            let result = result?;
            while judging.len() >= AT_ONCE {
                done.extend(judging.join_next().await.map(judged));
            }
            let target = known.get(&result.key.target).copied();
            if let Some(target) = target {
                let made = judge_anew(&trials, &reader, &self.suite.survey.ids, target, result)?;
                judging.spawn(made);
            }
            if done.len() >= BATCH {
                record.trials(std::mem::take(&mut done))?;
            }
        }
        while let Some(made) = judging.join_next().await {
            done.push(judged(made));
        }
        record.trials(done)?;
        drop(trials);
        let (connection_limit_history, warnings) = traffic.finish();
        warnings.iter().for_each(|event| record.tell(event));
        let (aggregate, _) = record.finish()?;
        let stats = RunStats {
            started_at: now.to_string(),
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection_limit_history,
            ..RunStats::default()
        };
        let summary = aggregate.summary(&folder.id, &self.suite.name, stats);
        folder.write_summary(&summary, &self.suite)?;
        let exit_code = exit_code(&summary, stopper);
        Ok(Finished { folder, summary, exit_code })
    }

    /// Checks may depend on a case's fields, so it must still be there.
    fn knows_cases(&self, past: &PastRun) -> Result<(), Error> {
        let ids = &self.suite.survey.ids;
        match past.file.suite.cases.chosen.iter().find(|id| ids.position(id).is_none()) {
            None => Ok(()),
            Some(id) => Err(Error::Usage {
                code: None,
                message: format!("the suite has no case `{id}` any more"),
                hint: Some("checks may depend on a case's fields, so it must be there".to_owned()),
            }),
        }
    }

    /// The targets of the run by their number in the suite.
    fn known(&self, past: &PastRun) -> Result<HashMap<TargetName, usize>, Error> {
        let mut known = HashMap::new();
        for target in &past.file.suite.targets {
            let name = target["name"].as_str().unwrap_or_default();
            let number = self.suite.targets.iter().position(|target| target.name == name);
            match number {
                Some(number) => known.insert(TargetName::from(name), number),
                None => {
                    return Err(Error::Usage {
                        code: None,
                        message: format!("the suite has no target `{name}` any more"),
                        hint: Some(
                            "checks may be limited to targets, so it must be there".to_owned(),
                        ),
                    });
                }
            };
        }
        Ok(known)
    }
}

/// A result that was judged. A judge that breaks is a mistake of ours, and no result may be lost to it.
fn judged(made: Result<Made, JoinError>) -> Made {
    match made {
        Ok(made) => made,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

/// One result, judged by today's checks.
fn judge_anew(
    trials: &Arc<Trials>,
    reader: &CaseReader,
    ids: &CaseIds,
    target: usize,
    mut result: TrialResult,
) -> Result<impl Future<Output = Made> + Send + use<>, Error> {
    let id = result.key.case.as_str();
    let number = ids.position(id).ok_or_else(|| Error::Usage {
        code: None,
        message: format!("the suite has no case `{id}` any more"),
        hint: Some("checks may depend on a case's fields, so it must be there".to_owned()),
    })?;
    let case = reader.case(number).map_err(Error::Cases)?;
    // What a check could not say it may say now.
    let by_check = |error: &bakeoff_core::TrialError| error.kind == ErrorKind::Check;
    if result.attempt.error.as_ref().is_some_and(by_check) {
        result.attempt.error = None;
    }
    let trials = Arc::clone(trials);
    Ok(async move {
        let target = &trials.suite.targets[target];
        let result = trials.judge(target, &case, result.key, result.attempt).await;
        Made { result, written: Ok(()) }
    })
}
