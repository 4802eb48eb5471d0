//! Warnings about settings and case fields that a target does not use.

use crate::case::{Survey, history};
use crate::programs::Protocol;
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

/// Returns a warning for each target that does not receive the chat history of the cases.
pub(super) fn history_warnings(targets: &[Target], survey: &Survey) -> Vec<(&'static str, String)> {
    if !survey.fields.contains(history::FIELD) {
        return Vec::new();
    }
    // Services and long-lived programs have access to all fields.
    let ignores_history = |target: &&Target| match &target.kind {
        TargetKind::Chain(_) => true,
        TargetKind::Program(program) => program.protocol == Protocol::Text,
        TargetKind::Model(_) | TargetKind::Service(_) => false,
    };
    let uses_field =
        |target: &&Target| target.prompt.variables().iter().any(|name| name == history::FIELD);
    let warning = |target: &Target| {
        let message = format!(
            "target `{}` does not receive `{}` of the cases, which are for models; use the field in its prompt",
            target.base(),
            history::FIELD
        );
        (SETTING_IGNORED, message)
    };
    let ignoring = targets.iter().filter(ignores_history).filter(|target| !uses_field(target));
    let mut warnings: Vec<_> = ignoring.map(warning).collect();
    // Combinations of a target.
    warnings.dedup();
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
