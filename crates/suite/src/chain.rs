//! Reading of `[[target]]` with a `chain`: models called in sequence.

use super::models::NamedModel;
use super::resolve;
use super::suite::LoadContext;
use super::targets::{self, ModelTarget};
use super::tree::{Node, SourceText};
use super::variables::{StepPosition, TemplateUse, compile_for_step};
use crate::problem::Problems;
use crate::template::Template;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Chain of models called in sequence.
#[derive(Debug)]
pub struct ChainTarget {
    /// Steps in order. Combinations of a search share equal steps.
    pub steps: Vec<Arc<ChainStep>>,
}

/// Step of a chain.
#[derive(Debug, Clone)]
pub struct ChainStep {
    /// Name of the output in templates of later steps.
    pub name: String,
    /// Role of the model.
    pub role: Option<String>,
    /// Prompt template with case fields and outputs of earlier steps.
    pub prompt: Template,
    /// Model and request settings.
    pub model: ModelTarget,
}

/// Reads a chain.
pub(super) fn read(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    context: &LoadContext<'_>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Option<ChainTarget> {
    let nodes = node.tables("chain");
    if nodes.is_empty() {
        let span = node.get("chain").map_or(node.span.clone(), |chain| chain.span());
        problems
            .at(span, "the chain has no steps")
            .with_hint("add a [[target.chain]] with `role` and `prompt`");
        return None;
    }
    let mut seen = BTreeSet::new();
    for name in nodes.iter().filter_map(name) {
        check_name(&name, &mut seen, problems);
    }
    let names: Arc<[String]> = nodes
        .iter()
        .map(|node| name(node).map_or(String::new(), |name| name.value.to_owned()))
        .collect();
    let steps: Vec<Option<Arc<ChainStep>>> = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let position = StepPosition { names: Arc::clone(&names), number };
            let mut compile = |key, problems: &mut Problems<'_>| {
                let text = node.text(key)?;
                Some(compile_for_step(text, Some(position.clone()), templates, problems))
            };
            let system = compile("system", problems);
            let prompt = compile("prompt", problems);
            let request = targets::request(node, problems);
            let (role, model) = step_model(node, context, problems)?;
            let label = resolve::label(&model, models);
            let model = resolve::resolve(model, models, context, problems)?;
            let system = match system {
                Some(system) => Some(system?),
                None => None,
            };
            Some(Arc::new(ChainStep {
                name: names[number].clone(),
                role,
                prompt: prompt??,
                model: ModelTarget { model, label, system, request: request?, agent: None },
            }))
        })
        .collect();
    Some(ChainTarget { steps: steps.into_iter().collect::<Option<_>>()? })
}

/// Returns the name of a step's output: its `name`, or its role.
fn name<'a>(node: &Node<'a, '_>) -> Option<SourceText<'a>> {
    node.text("name").or_else(|| node.text("role"))
}

/// Checks that a step name is unique and valid in templates.
fn check_name<'a>(
    name: &SourceText<'a>,
    seen: &mut BTreeSet<&'a str>,
    problems: &mut Problems<'_>,
) {
    let SourceText { value, span } = name;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if value.is_empty()
        || !value.chars().all(is_letter)
        || value.starts_with(|c: char| c.is_ascii_digit())
    {
        let letters = value.chars().map(|letter| if is_letter(letter) { letter } else { '_' });
        let plain: String = letters.collect();
        let plain = plain.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let example = if plain.is_empty() { "step" } else { plain };
        problems
            .at(span.clone(), format!("step name `{value}` cannot be used in templates"))
            .with_hint(format!(
                "names consist of letters, digits and `_`; add `name = \"{example}\"` to the step"
            ));
    } else if !seen.insert(value) {
        problems
            .at(span.clone(), format!("duplicate step name `{value}`"))
            .with_hint("add a unique `name` to one of the steps; steps may share a role");
    }
}

/// Returns the role of a step, if any, and the name of its model.
fn step_model<'a>(
    node: &Node<'a, '_>,
    context: &LoadContext<'a>,
    problems: &mut Problems<'_>,
) -> Option<(Option<String>, SourceText<'a>)> {
    match (node.text("role"), node.text("model")) {
        (Some(_), Some(model)) => {
            problems
                .at(model.span, "a step cannot have both `role` and `model`")
                .with_hint("assign a model to the role under [roles]");
            None
        }
        (Some(role), None) => {
            let model = context.roles.require(&role, problems)?;
            Some((Some(role.value.to_owned()), model))
        }
        (None, Some(model)) => {
            if node.text("name").is_none() {
                problems.at(model.span.clone(), "a step with a `model` needs a `name`").with_hint(
                    "add `name = \"checker\"`; later steps refer to its output by this name",
                );
            }
            let role = super::roles::role_of_model(&model).map(|role| role.value.to_owned());
            Some((role, context.roles.resolve(model, problems)?))
        }
        (None, None) => {
            problems
                .at(node.span.clone(), "the step has neither `role` nor `model`")
                .with_hint("write `role = \"solver\"` and assign a model to it under [roles]");
            None
        }
    }
}

/// Reports steps with the name of a case field, which would be ambiguous in templates.
pub(super) fn check_fields(
    targets: &[Node<'_, '_>],
    fields: &BTreeSet<String>,
    problems: &mut Problems<'_>,
) {
    let steps = targets.iter().flat_map(|target| target.tables("chain"));
    for name in steps.filter_map(|step| name(&step)) {
        if fields.contains(name.value) {
            problems
                .at(name.span, format!("step name `{}` is also a field of the cases", name.value))
                .with_hint("give the step a different `name`");
        }
    }
}
