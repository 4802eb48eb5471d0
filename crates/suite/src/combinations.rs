//! Expansion of a target into the combinations of models for its roles.

use super::chain::{ChainStep, ChainTarget};
use super::roles::variable;
use super::select::{RoleCandidate, SelectSection};
use super::targets::{ModelTarget, Target, TargetKind};
use bakeoff_core::TargetName;
use std::sync::Arc;

/// Role with its candidates.
type Candidates<'a> = (&'a str, Vec<(&'a str, &'a RoleCandidate)>);

/// Returns all combinations of a target. The last role changes fastest. Combinations share equal steps.
pub(super) fn expand(base: &Target, select: &SelectSection) -> Vec<Target> {
    let roles: Vec<Candidates<'_>> = select
        .plan
        .roles
        .iter()
        .map(|(role, names)| {
            let known = |name: &String| select.candidates.get_key_value(name);
            let candidates =
                names.iter().filter_map(known).map(|(name, candidate)| (name.as_str(), candidate));
            (role.as_str(), candidates.collect())
        })
        .collect();
    let steps = steps(base, &roles);
    let total = roles.iter().map(|(_, candidates)| candidates.len()).product();
    let one = |number| combination(base, &roles, &steps, &candidate_indices(&roles, number));
    (0..total).filter_map(one).collect()
}

/// Returns the index of the candidate of each role for a combination.
fn candidate_indices(roles: &[Candidates<'_>], mut number: usize) -> Vec<usize> {
    let mut indices = vec![0; roles.len()];
    for (index, (_, candidates)) in roles.iter().enumerate().rev() {
        indices[index] = number % candidates.len();
        number /= candidates.len();
    }
    indices
}

/// Returns the steps of a chain with the index of their role, if it is searched, and with one variant per
/// candidate.
fn steps(base: &Target, roles: &[Candidates<'_>]) -> Vec<(Option<usize>, Vec<Arc<ChainStep>>)> {
    let TargetKind::Chain(chain) = &base.kind else { return Vec::new() };
    let step = |step: &Arc<ChainStep>| {
        let role_index = roles.iter().position(|(role, _)| step.role.as_deref() == Some(*role));
        let variants = match role_index {
            None => vec![Arc::clone(step)],
            Some(index) => {
                let with = |(_, candidate): &(&str, &RoleCandidate)| {
                    Arc::new(ChainStep {
                        model: with_candidate(&step.model, candidate),
                        ..(**step).clone()
                    })
                };
                roles[index].1.iter().map(with).collect()
            }
        };
        (role_index, variants)
    };
    chain.steps.iter().map(step).collect()
}

fn with_candidate(model: &ModelTarget, candidate: &RoleCandidate) -> ModelTarget {
    let mut model = model.clone();
    if let Some(other) = &candidate.model {
        model.model = other.clone();
    }
    model.label.clone_from(&candidate.label);
    model
}

fn combination(
    base: &Target,
    roles: &[Candidates<'_>],
    steps: &[(Option<usize>, Vec<Arc<ChainStep>>)],
    indices: &[usize],
) -> Option<Target> {
    let pairs = || {
        roles.iter().zip(indices).map(|((role, candidates), index)| {
            let (name, candidate) = candidates[*index];
            (*role, name, candidate)
        })
    };
    let assignments: Vec<String> =
        pairs().map(|(role, name, _)| format!("{role}={name}")).collect();
    let kind = match &base.kind {
        TargetKind::Chain(_) => {
            let step = |(role_index, variants): &(Option<usize>, Vec<Arc<ChainStep>>)| {
                Arc::clone(&variants[role_index.map_or(0, |index| indices[index])])
            };
            TargetKind::Chain(ChainTarget { steps: steps.iter().map(step).collect() })
        }
        // A model has at most one role.
        TargetKind::Model(model) => {
            let assigned = pairs().next().map(|(_, _, candidate)| with_candidate(model, candidate));
            TargetKind::Model(assigned.map_or_else(|| model.clone(), Box::new))
        }
        TargetKind::Program(program) if program.agent.is_some() => {
            let model = pairs().next().map(|(_, name, _)| name);
            TargetKind::Program(program.clone().with_model(model))
        }
        TargetKind::Program(program) => {
            let mut program = program.clone();
            let models =
                pairs().map(|(role, _, candidate)| (variable(role), candidate.label.clone()));
            program.variables.extend(models);
            TargetKind::Program(program)
        }
        TargetKind::Service(service) => {
            let models = pairs().map(|(role, name, _)| (role, name));
            TargetKind::Service(Box::new((**service).clone().with_roles(models)))
        }
    };
    let pricing = match (pairs().next(), roles.len()) {
        (Some((_, _, candidate)), 1) => base.pricing.with_candidate(&candidate.prices),
        _ => base.pricing.clone(),
    };
    let mut roles = base.roles.clone();
    for (role, name, _) in pairs() {
        if let Some(entry) = roles.iter_mut().find(|(known, _)| *known == role) {
            name.clone_into(&mut entry.1);
        }
    }
    Some(Target {
        name: TargetName::from(format!("{}[{}]", base.name, assignments.join(","))),
        gate: base.gate,
        prompt: base.prompt.clone(),
        timeout: base.timeout,
        kind,
        pricing,
        roles,
        sample: Some(base.name.clone()),
    })
}
