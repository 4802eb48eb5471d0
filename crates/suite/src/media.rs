//! Validation of attachments against the wire formats of the models.

use crate::case::Survey;
use crate::problem::Problems;
use crate::targets::{ModelTarget, Target, TargetKind};
use crate::tree::Node;

/// Reports each target whose model does not accept a media type of the cases. Programs and services receive files of
/// all types.
pub(super) fn check(
    targets: &[Target],
    survey: &Survey,
    root: &Node<'_, '_>,
    problems: &mut Problems<'_>,
) {
    let nodes = root.tables("target");
    for target in targets {
        let Some(model) = receiver(target) else { continue };
        for (media_type, (case, name)) in &survey.media {
            let Some(wire) = model.model.rejects_media(media_type) else { continue };
            let base = target.base();
            let named =
                |node: &&Node<'_, '_>| node.text("name").is_some_and(|name| *base == *name.value);
            let node = nodes.iter().find(named);
            let span = node.map_or(0..0, |node| {
                node.get("model").map_or(node.span.clone(), |model| model.span())
            });
            let message = format!(
                "{wire} does not accept {media_type}: `{name}` of case `{case}` cannot be sent to {}",
                model.label
            );
            problems
                .at(span, message)
                .with_hint("convert the file, or use a model that accepts it");
        }
    }
}

/// Returns the model that receives the attachments of a target: a chain passes them to its first step.
fn receiver(target: &Target) -> Option<&ModelTarget> {
    match &target.kind {
        TargetKind::Model(model) => Some(model),
        TargetKind::Chain(chain) => chain.steps.first().map(|step| &step.model),
        TargetKind::Program(_) | TargetKind::Service(_) => None,
    }
}
