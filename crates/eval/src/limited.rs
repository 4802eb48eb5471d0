//! Limits of targets: what the command line has to say about them, and which cannot all hold.

use crate::Error;
use crate::suite::{Target, TargetKind};
use bakeoff_llm::Model;
use bakeoff_pace::LimitOverrides;
use std::collections::BTreeMap;

/// The target with limits that the command line has the last word on.
pub(crate) fn limited(target: Target, overrides: &LimitOverrides) -> Result<Target, Error> {
    let kind = match target.kind {
        TargetKind::Model(mut model) => {
            let limits = overrides.apply(model.model.limits());
            limits.check().map_err(|error| Error::Usage {
                code: None,
                message: format!("limits of the target `{}`: {error}", target.name),
                hint: Some("what the command line says is put in place of the suite's".to_owned()),
            })?;
            model.model = model.model.with_limits(limits);
            TargetKind::Model(model)
        }
        other => other,
    };
    Ok(Target { kind, ..target })
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
    let models = || {
        targets.iter().filter_map(|target| match &target.kind {
            TargetKind::Model(model) => Some((&target.name, &model.model)),
            TargetKind::Program(_) | TargetKind::Service(_) => None,
        })
    };
    let first = |model: &Model| models().find(|(_, other)| other.shares_pool_with(model));
    models()
        .filter_map(|(name, model)| {
            let (other, holds) = first(model)?;
            (holds.limits() != model.limits()).then(|| {
                format!(
                    "the targets `{other}` and `{name}` use one model with one key, and so one \
                     pool; the limits of `{other}` hold for both"
                )
            })
        })
        .collect()
}
