//! Limits of targets: what the command line has to say about them, and which cannot all hold.

use crate::Error;
use bakeoff_core::TargetName;
use bakeoff_llm::Model;
use bakeoff_pace::LimitOverrides;
use bakeoff_suite::{ModelTarget, Step, Target, TargetKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The models that targets ask, each once: combinations share theirs.
pub(crate) fn asked_models(targets: &[Target]) -> Vec<(&Target, &ModelTarget)> {
    let mut seen = HashSet::new();
    let all = targets
        .iter()
        .flat_map(|target| target.models().into_iter().map(move |model| (target, model)));
    all.filter(|(_, model)| seen.insert(std::ptr::from_ref(*model))).collect()
}

/// The targets with limits that the command line has the last word on.
pub(crate) fn limited(
    targets: Vec<Target>,
    overrides: &LimitOverrides,
) -> Result<Vec<Target>, Error> {
    // What combinations shared stays shared. A step that is held here keeps its address.
    let mut steps: HashMap<*const Step, (Arc<Step>, Arc<Step>)> = HashMap::new();
    let mut limited = Vec::with_capacity(targets.len());
    for mut target in targets {
        match &mut target.kind {
            TargetKind::Model(model) => {
                model.model = limited_model(&model.model, &target.name, overrides)?;
            }
            TargetKind::Chain(chain) => {
                for step in &mut chain.steps {
                    if let Some((_, known)) = steps.get(&Arc::as_ptr(step)) {
                        *step = Arc::clone(known);
                        continue;
                    }
                    let mut new = Step::clone(step);
                    new.model.model = limited_model(&new.model.model, &target.name, overrides)?;
                    let (old, new) = (Arc::clone(step), Arc::new(new));
                    *step = Arc::clone(&new);
                    steps.insert(Arc::as_ptr(&old), (old, new));
                }
            }
            TargetKind::Program(_) | TargetKind::Service(_) => {}
        }
        limited.push(target);
    }
    Ok(limited)
}

fn limited_model(
    model: &Model,
    target: &TargetName,
    overrides: &LimitOverrides,
) -> Result<Model, Error> {
    let limits = overrides.apply(model.limits());
    limits.check().map_err(|error| Error::Usage {
        code: None,
        message: format!("limits of the target `{target}`: {error}"),
        hint: Some("what the command line says is put in place of the suite's".to_owned()),
    })?;
    Ok(model.clone().with_limits(limits))
}

/// The models that judge, with limits that the command line has the last word on.
pub(crate) fn limited_judges(
    judges: BTreeMap<String, Model>,
    overrides: &LimitOverrides,
) -> Result<BTreeMap<String, Model>, Error> {
    let limited = |(name, model): (String, Model)| {
        let limits = overrides.apply(model.limits());
        limits.check().map_err(|error| Error::Usage {
            code: None,
            message: format!("limits of the judge `{name}`: {error}"),
            hint: Some("what the command line says is put in place of the suite's".to_owned()),
        })?;
        Ok((name, model.with_limits(limits)))
    };
    judges.into_iter().map(limited).collect()
}

/// Targets on one pool whose limits are not the same: only the first can hold.
pub(crate) fn different_limits(targets: &[Target]) -> Vec<String> {
    let asked = asked_models(targets);
    let first = |model: &Model| asked.iter().find(|(_, other)| other.model.shares_pool_with(model));
    let mut told = Vec::new();
    for (target, model) in &asked {
        let Some((other, holds)) = first(&model.model) else { continue };
        if holds.model.limits() == model.model.limits() {
            continue;
        }
        let (name, other) = (target.base(), other.base());
        let what = if name == other {
            format!(
                "two steps of `{name}` use one model with one key, and so one pool; the limits of \
                 the first hold for both"
            )
        } else {
            format!(
                "the targets `{other}` and `{name}` use one model with one key, and so one pool; \
                 the limits of `{other}` hold for both"
            )
        };
        if !told.contains(&what) {
            told.push(what);
        }
    }
    told
}
