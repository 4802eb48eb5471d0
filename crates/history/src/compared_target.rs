//! The targets of a comparison.

use crate::Error;
use bakeoff_core::{Summary, TargetName, TargetSummary, UnpairedTargets};
use bakeoff_suite::suggest;

/// One target of one run.
#[derive(Debug, Clone, Copy)]
pub struct ComparedTarget<'a> {
    /// Summary of the run.
    pub summary: &'a Summary,
    /// Summary of the target.
    pub target: &'a TargetSummary,
}

/// A baseline and a candidate.
#[derive(Debug, Clone, Copy)]
pub struct TargetPair<'a> {
    /// Reference target.
    pub baseline: ComparedTarget<'a>,
    /// Target under comparison.
    pub candidate: ComparedTarget<'a>,
    /// Whether a significantly worse candidate is a regression.
    pub gate: bool,
}

/// The pairs of a comparison.
#[derive(Debug, Clone, Default)]
pub struct TargetPairs<'a> {
    /// Targets that are compared.
    pub pairs: Vec<TargetPair<'a>>,
    /// Targets of one run without a counterpart in the other.
    pub unpaired: Vec<UnpairedTargets>,
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
            Some(name) => named(summary, name),
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

/// Returns the pairs to compare: the targets of one run with its first or its named target, or the targets of
/// several runs with those of the first. Unless a target is named, runs with several targets are paired by
/// the names of their targets.
///
/// # Errors
///
/// When there is nothing to compare, or a target cannot be determined.
pub fn pair_targets(summaries: &[(Summary, Option<String>)]) -> Result<TargetPairs<'_>, Error> {
    match summaries {
        [] => Err(usage("nothing to compare", "name two runs, or one with several targets")),
        [(run, name)] => within_run(run, name.as_deref()),
        [(first, name), others @ ..] => {
            // A name given for one run also selects the target of the others, if they have it.
            match summaries.iter().find_map(|(_, name)| name.as_deref()) {
                Some(known) => selected_target(first, name, others, known),
                None => same_names(first, others),
            }
        }
    }
}

fn within_run<'a>(run: &'a Summary, name: Option<&str>) -> Result<TargetPairs<'a>, Error> {
    let baseline = match name {
        Some(name) => ComparedTarget::find(run, Some(name))?.target,
        None => match run.targets.first() {
            Some(first) => first,
            None => return Err(usage("the run has no targets", "name another run")),
        },
    };
    let pairs: Vec<TargetPair<'a>> = run
        .targets
        .iter()
        .filter(|target| target.target != baseline.target)
        .map(|target| TargetPair {
            baseline: ComparedTarget { summary: run, target: baseline },
            candidate: ComparedTarget { summary: run, target },
            gate: true,
        })
        .collect();
    if pairs.is_empty() {
        return Err(usage(
            "a single target cannot be compared with itself",
            "name another run to compare it with",
        ));
    }
    Ok(TargetPairs { pairs, unpaired: Vec::new() })
}

/// Pairs one target of each run. A target that was chosen by name gates, whatever its suite says.
fn selected_target<'a>(
    first: &'a Summary,
    name: &'a Option<String>,
    others: &'a [(Summary, Option<String>)],
    known: &str,
) -> Result<TargetPairs<'a>, Error> {
    let find = |summary: &'a Summary, name: &'a Option<String>| {
        let known = Some(known).filter(|known| named(summary, known).is_some());
        ComparedTarget::find(summary, name.as_deref().or(known))
    };
    let baseline = find(first, name)?;
    let pairs = others.iter().map(|(summary, name)| {
        Ok(TargetPair { baseline, candidate: find(summary, name)?, gate: true })
    });
    Ok(TargetPairs { pairs: pairs.collect::<Result<_, Error>>()?, unpaired: Vec::new() })
}

/// Pairs the targets of each run with those of the first by name. Two runs with one target each are paired
/// whatever the names are.
fn same_names<'a>(
    first: &'a Summary,
    others: &'a [(Summary, Option<String>)],
) -> Result<TargetPairs<'a>, Error> {
    let mut found = TargetPairs::default();
    for (other, _) in others {
        let mut pairs: Vec<(&TargetSummary, &TargetSummary)> = first
            .targets
            .iter()
            .filter_map(|target| Some((target, named(other, target.target.as_str())?)))
            .collect();
        if let ([], [one], [two]) =
            (pairs.as_slice(), first.targets.as_slice(), other.targets.as_slice())
        {
            pairs.push((one, two));
        }
        if pairs.is_empty() {
            return Err(Error::usage(
                format!("{} and {} have no target of the same name", first.run_id, other.run_id),
                Some(format!(
                    "name one of each as RUN:TARGET: {}; {}",
                    target_names(first),
                    target_names(other)
                )),
            ));
        }
        // As in a run, targets without a gate count if there are no others.
        let has_gate = pairs.iter().any(|(_, candidate)| candidate.gate);
        found.pairs.extend(pairs.iter().map(|(baseline, candidate)| TargetPair {
            baseline: ComparedTarget { summary: first, target: baseline },
            candidate: ComparedTarget { summary: other, target: candidate },
            gate: candidate.gate || !has_gate,
        }));
        let unpaired = |run: &Summary, is_paired: &dyn Fn(&TargetName) -> bool| {
            let names = run.targets.iter().map(|target| &target.target);
            let targets: Vec<TargetName> = names.filter(|name| !is_paired(name)).cloned().collect();
            (!targets.is_empty()).then(|| UnpairedTargets { run_id: run.run_id.clone(), targets })
        };
        let in_first = unpaired(first, &|name| pairs.iter().any(|(one, _)| one.target == *name));
        let in_other = unpaired(other, &|name| pairs.iter().any(|(_, two)| two.target == *name));
        found.unpaired.extend(in_first.into_iter().chain(in_other));
    }
    Ok(found)
}

fn named<'a>(summary: &'a Summary, name: &str) -> Option<&'a TargetSummary> {
    summary.targets.iter().find(|target| target.target == name)
}

fn target_names(summary: &Summary) -> String {
    let names: Vec<&str> = summary.targets.iter().map(|target| target.target.as_str()).collect();
    names.join(", ")
}

fn usage(message: &str, hint: &str) -> Error {
    Error::usage(message, Some(hint.to_owned()))
}
