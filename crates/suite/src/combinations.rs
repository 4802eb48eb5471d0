//! A target once for each combination of who fills its roles.

use super::chain::{ChainTarget, Step};
use super::roles::variable;
use super::select::{Filler, Search};
use super::targets::{ModelTarget, Target, TargetKind};
use bakeoff_core::TargetName;
use std::sync::Arc;

/// Candidates of a role.
type Candidates<'a> = (&'a str, Vec<(&'a str, &'a Filler)>);

/// All combinations of a target: the first role changes slowest, the last one fastest. What
/// combinations have in common is shared.
pub(super) fn expand(base: &Target, search: &Search) -> Vec<Target> {
    let roles: Vec<Candidates<'_>> = search
        .plan
        .roles
        .iter()
        .map(|(role, names)| {
            let known = |name: &String| search.fillers.get_key_value(name);
            let fillers =
                names.iter().filter_map(known).map(|(name, filler)| (name.as_str(), filler));
            (role.as_str(), fillers.collect())
        })
        .collect();
    let steps = steps(base, &roles);
    let total = roles.iter().map(|(_, fillers)| fillers.len()).product();
    let one = |number| combination(base, &roles, &steps, &chosen(&roles, number));
    (0..total).filter_map(one).collect()
}

/// Which candidate of each role a combination has.
fn chosen(roles: &[Candidates<'_>], mut number: usize) -> Vec<usize> {
    let mut chosen = vec![0; roles.len()];
    for (index, (_, fillers)) in roles.iter().enumerate().rev() {
        chosen[index] = number % fillers.len();
        number /= fillers.len();
    }
    chosen
}

/// Each step of a chain with each candidate of its role, and where that role is; others as they are.
fn steps(base: &Target, roles: &[Candidates<'_>]) -> Vec<(Option<usize>, Vec<Arc<Step>>)> {
    let TargetKind::Chain(chain) = &base.kind else { return Vec::new() };
    let step = |step: &Arc<Step>| {
        let place = roles.iter().position(|(role, _)| step.role.as_deref() == Some(*role));
        let variants = match place {
            None => vec![Arc::clone(step)],
            Some(place) => {
                let with = |(_, filler): &(&str, &Filler)| {
                    Arc::new(Step { model: with_filler(&step.model, filler), ..(**step).clone() })
                };
                roles[place].1.iter().map(with).collect()
            }
        };
        (place, variants)
    };
    chain.steps.iter().map(step).collect()
}

fn with_filler(model: &ModelTarget, filler: &Filler) -> ModelTarget {
    let mut model = model.clone();
    if let Some(other) = &filler.model {
        model.model = other.clone();
    }
    model.label.clone_from(&filler.label);
    model
}

fn combination(
    base: &Target,
    roles: &[Candidates<'_>],
    steps: &[(Option<usize>, Vec<Arc<Step>>)],
    chosen: &[usize],
) -> Option<Target> {
    let pairs = || {
        roles.iter().zip(chosen).map(|((role, fillers), number)| {
            let (name, filler) = fillers[*number];
            (*role, name, filler)
        })
    };
    let words: Vec<String> = pairs().map(|(role, name, _)| format!("{role}={name}")).collect();
    let kind = match &base.kind {
        TargetKind::Chain(_) => {
            let step = |(place, variants): &(Option<usize>, Vec<Arc<Step>>)| {
                Arc::clone(&variants[place.map_or(0, |place| chosen[place])])
            };
            TargetKind::Chain(ChainTarget { steps: steps.iter().map(step).collect() })
        }
        // A model has one role at most.
        TargetKind::Model(model) => {
            let filled = pairs().next().map(|(_, _, filler)| with_filler(model, filler));
            TargetKind::Model(filled.map_or_else(|| model.clone(), Box::new))
        }
        TargetKind::Program(program) if program.agent.is_some() => {
            let model = pairs().next().map(|(_, name, _)| name);
            TargetKind::Program(program.clone().with_model(model))
        }
        TargetKind::Program(program) => {
            let mut program = program.clone();
            let told = pairs().map(|(role, _, filler)| (variable(role), filler.label.clone()));
            program.variables.extend(told);
            TargetKind::Program(program)
        }
        // Services have no roles, and who has none has no combinations.
        TargetKind::Service(_) => return None,
    };
    let mut filled = base.roles.clone();
    for (role, name, _) in pairs() {
        if let Some(entry) = filled.iter_mut().find(|(known, _)| *known == role) {
            name.clone_into(&mut entry.1);
        }
    }
    Some(Target {
        name: TargetName::from(format!("{}[{}]", base.name, words.join(","))),
        gate: base.gate,
        prompt: base.prompt.clone(),
        timeout: base.timeout,
        kind,
        roles: filled,
        sample: Some(base.name.clone()),
    })
}
