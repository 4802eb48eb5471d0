//! Limits of models: overrides from the command line, and targets whose limits contradict each other.

use crate::Error;
use bakeoff_core::TargetName;
use bakeoff_llm::Model;
use bakeoff_pace::LimitOverrides;
use bakeoff_suite::{ChainStep, ModelTarget, Target, TargetKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

const HINT: &str = "limits of the command line replace those of the suite";

/// Returns the models that targets call, each once: combinations share theirs.
pub(crate) fn called_models(targets: &[Target]) -> Vec<(&Target, &ModelTarget)> {
    let mut seen = HashSet::new();
    let all = targets
        .iter()
        .flat_map(|target| target.models().into_iter().map(move |model| (target, model)));
    all.filter(|(_, model)| seen.insert(std::ptr::from_ref(*model))).collect()
}

/// Returns the targets with the limits of the command line.
pub(crate) fn override_target_limits(
    targets: Vec<Target>,
    overrides: &LimitOverrides,
) -> Result<Vec<Target>, Error> {
    // Combinations keep sharing their steps. The map holds the old step, so that its address is not
    // used again.
    let mut steps: HashMap<*const ChainStep, (Arc<ChainStep>, Arc<ChainStep>)> = HashMap::new();
    let mut overridden = Vec::with_capacity(targets.len());
    for mut target in targets {
        match &mut target.kind {
            TargetKind::Model(model) => {
                model.model = override_model_limits(&model.model, &target.name, overrides)?;
            }
            TargetKind::Chain(chain) => {
                for step in &mut chain.steps {
                    if let Some((_, known)) = steps.get(&Arc::as_ptr(step)) {
                        *step = Arc::clone(known);
                        continue;
                    }
                    let mut new = ChainStep::clone(step);
                    new.model.model =
                        override_model_limits(&new.model.model, &target.name, overrides)?;
                    let (old, new) = (Arc::clone(step), Arc::new(new));
                    *step = Arc::clone(&new);
                    steps.insert(Arc::as_ptr(&old), (old, new));
                }
            }
            TargetKind::Program(_) | TargetKind::Service(_) => {}
        }
        overridden.push(target);
    }
    Ok(overridden)
}

fn override_model_limits(
    model: &Model,
    target: &TargetName,
    overrides: &LimitOverrides,
) -> Result<Model, Error> {
    let limits = overrides.apply(model.limits());
    limits.check().map_err(|error| {
        Error::usage(format!("limits of the target `{target}`: {error}"), Some(HINT.to_owned()))
    })?;
    Ok(model.clone().with_limits(limits))
}

/// Returns the judges with the limits of the command line.
pub(crate) fn override_judge_limits(
    judges: BTreeMap<String, Model>,
    overrides: &LimitOverrides,
) -> Result<BTreeMap<String, Model>, Error> {
    let overridden = |(name, model): (String, Model)| {
        let limits = overrides.apply(model.limits());
        limits.check().map_err(|error| {
            Error::usage(format!("limits of the judge `{name}`: {error}"), Some(HINT.to_owned()))
        })?;
        Ok((name, model.with_limits(limits)))
    };
    judges.into_iter().map(overridden).collect()
}

/// Describes targets that share a pool but have different limits: only the first limits can apply.
pub(crate) fn conflicting_limits(targets: &[Target]) -> Vec<String> {
    let called = called_models(targets);
    let first =
        |model: &Model| called.iter().find(|(_, other)| other.model.shares_pool_with(model));
    let mut conflicts = Vec::new();
    for (target, model) in &called {
        let Some((other, applied)) = first(&model.model) else { continue };
        if applied.model.limits() == model.model.limits() {
            continue;
        }
        let (name, other) = (target.base(), other.base());
        let conflict = if name == other {
            format!(
                "two steps of `{name}` use one model with one key, and so one pool; the limits of \
                 the first apply to both"
            )
        } else {
            format!(
                "the targets `{other}` and `{name}` use one model with one key, and so one pool; \
                 the limits of `{other}` apply to both"
            )
        };
        if !conflicts.contains(&conflict) {
            conflicts.push(conflict);
        }
    }
    conflicts
}
