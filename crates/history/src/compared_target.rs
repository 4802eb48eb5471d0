//! The targets of a comparison.

use crate::Error;
use bakeoff_core::{Summary, TargetSummary};
use bakeoff_suite::suggest;

/// One target of one run.
#[derive(Debug, Clone, Copy)]
pub struct ComparedTarget<'a> {
    /// Summary of the run.
    pub summary: &'a Summary,
    /// Summary of the target.
    pub target: &'a TargetSummary,
}

impl<'a> ComparedTarget<'a> {
    /// Returns a target of a run; its only target if no name is given.
    ///
    /// # Errors
    ///
    /// When the run has no such target, or several and no name is given.
    pub fn find(summary: &'a Summary, target: Option<&str>) -> Result<ComparedTarget<'a>, Error> {
        let names: Vec<&str> =
            summary.targets.iter().map(|target| target.target.as_str()).collect();
        let usage = |message: String, hint: Option<String>| Err(Error::usage(message, hint));
        let found = match target {
            Some(name) => summary.targets.iter().find(|target| target.target == name),
            None if names.len() == 1 => summary.targets.first(),
            None => {
                return usage(
                    format!("{} has {} targets", summary.run_id, names.len()),
                    Some(format!("name one as RUN:TARGET: {}", names.join(", "))),
                );
            }
        };
        match (found, target) {
            (Some(target), _) => Ok(ComparedTarget { summary, target }),
            (None, name) => usage(
                format!("{} has no target `{}`", summary.run_id, name.unwrap_or_default()),
                suggest(name.unwrap_or_default(), names),
            ),
        }
    }
}

/// Returns the baseline and the candidates of a comparison: the targets of one run, or one target of each
/// run.
///
/// # Errors
///
/// When there is nothing to compare, or a target cannot be determined.
pub fn baseline_and_candidates<'a>(
    summaries: &'a [(Summary, Option<String>)],
) -> Result<(ComparedTarget<'a>, Vec<ComparedTarget<'a>>), Error> {
    let usage = |message: &str, hint: &str| Err(Error::usage(message, Some(hint.to_owned())));
    match summaries {
        [] => usage("nothing to compare", "name two runs, or one with several targets"),
        [(only, _)] => match only.targets.as_slice() {
            [] | [_] => usage(
                "a single target cannot be compared with itself",
                "name another run to compare it with",
            ),
            [baseline, others @ ..] => {
                let compared = |target| ComparedTarget { summary: only, target };
                Ok((compared(baseline), others.iter().map(compared).collect()))
            }
        },
        [(first, named), others @ ..] => {
            // A name given for one run also selects the target of the others, if they have it.
            let known: Option<&str> = std::iter::once(named)
                .chain(others.iter().map(|(_, named)| named))
                .find_map(|named| named.as_deref());
            let find = |summary: &'a Summary, named: &'a Option<String>| {
                let has = |name: &&str| {
                    summary.targets.iter().any(|target: &TargetSummary| target.target == *name)
                };
                ComparedTarget::find(summary, named.as_deref().or(known.filter(has)))
            };
            let baseline = find(first, named)?;
            let others = others.iter().map(|(summary, named)| find(summary, named));
            Ok((baseline, others.collect::<Result<_, Error>>()?))
        }
    }
}
