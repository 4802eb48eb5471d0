//! Reading the state of an interrupted run, so that it can be resumed or extended.

use crate::Error;
use crate::logs::lacks_final_newline;
use crate::past_run::counted_results;
use crate::plan_differences::{PlanDifferences, plan_differences};
use bakeoff_core::Event;
use bakeoff_eval::{JOURNAL_FILE, JournalDamage, Layout, ResumeState, Run, RunFile};
use bakeoff_journal::Journal;
use bakeoff_suite::Suite;
use std::collections::HashSet;
use std::path::Path;

/// Reads the state of the run in `path`, for [`Run::resume_from`]. Takes the run's journal, so that no
/// other process can continue it. Damaged lines are skipped: their trials are executed again.
///
/// # Errors
///
/// When the plan of `run` differs from that of the earlier run in more than `extend` allows, or when
/// the earlier run cannot be read.
pub fn resume_state(run: &Run, path: &Path, extend: bool) -> Result<ResumeState, Error> {
    let earlier = RunFile::read(path)?;
    let current = run.file(earlier.run_id.clone(), earlier.started_at.clone());
    check_plans(&earlier, &current, run.suite(), extend)?;
    let journal_path = path.join(JOURNAL_FILE);
    let is_missing = !journal_path.exists();
    let is_torn = !is_missing
        && lacks_final_newline(&journal_path)
            .map_err(|source| Error::Read { path: journal_path.clone(), source })?;
    // Opening removes an incomplete last line, and creates a missing file.
    let journal = Journal::open(&journal_path).map_err(Error::Log)?;
    let mut state = ResumeState::new(run, path, earlier, journal);
    let mut finished = HashSet::new();
    let mut damage = JournalDamage { is_torn, is_missing, ..JournalDamage::default() };
    for event in bakeoff_journal::read::<Event>(&journal_path)? {
        match event {
            Ok(Event::RunResumed { .. }) => damage.resume(),
            Ok(event) => {
                if let Event::TrialFinished { result } = &event {
                    finished.insert(result.key.clone());
                }
                state.replay(event);
            }
            Err(bakeoff_journal::Error::Damaged { line, .. }) => damage.add_line(line),
            Err(error) => return Err(error.into()),
        }
    }
    let damage = damage.finish(finished.len() as u64, counted_results(path));
    Ok(state.with_damage(damage))
}

/// Fails when results of the two plans must not be mixed.
fn check_plans(
    earlier: &RunFile,
    current: &RunFile,
    suite: &Suite,
    may_extend: bool,
) -> Result<(), Error> {
    let PlanDifferences { additions, changes } = plan_differences(earlier, current, suite);
    let usage = |message: String, hint: &str| Err(Error::usage(message, Some(hint.to_owned())));
    let run = earlier.run_id.as_str();
    if !changes.is_empty() {
        return usage(
            format!("cannot resume {run}, the plan has changed: {}", changes.join("; ")),
            "start a new run, or check its outputs again with `bakeoff score`",
        );
    }
    if !additions.is_empty() && !may_extend {
        return usage(
            format!("the plan is larger than that of {run}: {}", additions.join("; ")),
            "extend the run with `--extend`",
        );
    }
    if earlier.layout == Layout::Flat && current.layout != Layout::Flat {
        return usage(
            format!("{run} has a single target, and its folder layout allows no other"),
            "start a new run with all targets",
        );
    }
    Ok(())
}
