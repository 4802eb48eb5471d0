//! Warnings about request settings that the wire format of a model has no field for.

use crate::targets::{ModelTarget, Target, TargetKind};

/// Code of the warnings.
const SETTING_IGNORED: &str = "EVAL_SETTING_IGNORED";

/// Returns a warning for each setting of a target or step that is not sent to its model. Combinations of a
/// target are reported once per model.
pub(super) fn warnings(targets: &[Target]) -> Vec<(&'static str, String)> {
    let mut warnings = Vec::new();
    for target in targets {
        let base = target.base();
        match &target.kind {
            TargetKind::Model(model) => {
                add_warnings(&format!("target `{base}`"), model, &mut warnings);
            }
            TargetKind::Chain(chain) => {
                for step in &chain.steps {
                    let subject = format!("step `{}` of target `{base}`", step.name);
                    add_warnings(&subject, &step.model, &mut warnings);
                }
            }
            // Programs and services make their requests themselves.
            TargetKind::Program(_) | TargetKind::Service(_) => {}
        }
    }
    warnings
}

fn add_warnings(subject: &str, target: &ModelTarget, warnings: &mut Vec<(&'static str, String)>) {
    let Some((wire, ignored)) = target.model.unsupported_settings(&target.request) else { return };
    for row in ignored {
        let message = format!(
            "{subject} ({}): `{}` is not supported by {wire} and is ignored; {}",
            target.label, row.setting, row.remedy
        );
        let warning = (SETTING_IGNORED, message);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}
