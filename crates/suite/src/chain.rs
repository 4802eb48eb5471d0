//! `[[target]]` with a `chain`: models that are asked one after the other.

use super::models::NamedModel;
use super::resolve;
use super::suite::Refining;
use super::targets::{self, ModelTarget};
use super::tree::{At, Node};
use super::variables::{Placed, Steps, compile_for};
use crate::problem::Problems;
use crate::template::Template;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Models that are asked one after the other.
#[derive(Debug)]
pub struct ChainTarget {
    /// In order. Combinations of a search share those that are the same.
    pub steps: Vec<Arc<Step>>,
}

/// A step of a chain.
#[derive(Debug, Clone)]
pub struct Step {
    /// What later steps call its answer.
    pub name: String,
    /// The role of who is asked.
    pub role: Option<String>,
    /// What it is asked: a template over the case's fields and the answers of earlier steps.
    pub prompt: Template,
    /// Who is asked, and how.
    pub model: ModelTarget,
}

/// Reads a chain.
pub(super) fn read(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    templates: &mut Vec<Placed>,
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
    let steps: Vec<Option<Arc<Step>>> = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let place = Steps { names: Arc::clone(&names), number };
            let mut compile = |key, problems: &mut Problems<'_>| {
                let text = node.text(key)?;
                Some(compile_for(text, Some(place.clone()), templates, problems))
            };
            let system = compile("system", problems);
            let prompt = compile("prompt", problems);
            let request = targets::request(node, problems);
            let (role, model) = who(node, refining, problems)?;
            let label = resolve::label(&model, models);
            let model = resolve::resolve(model, models, refining, problems)?;
            let system = match system {
                Some(system) => Some(system?),
                None => None,
            };
            Some(Arc::new(Step {
                name: names[number].clone(),
                role,
                prompt: prompt??,
                model: ModelTarget { model, label, system, request: request?, agent: None },
            }))
        })
        .collect();
    Some(ChainTarget { steps: steps.into_iter().collect::<Option<_>>()? })
}

/// What later steps call the answer of a step.
fn name<'a>(node: &Node<'a, '_>) -> Option<At<&'a str>> {
    node.text("name").or_else(|| node.text("role"))
}

/// A name must be free, and one that templates can hold.
fn check_name<'a>(name: &At<&'a str>, seen: &mut BTreeSet<&'a str>, problems: &mut Problems<'_>) {
    let At { value, span } = name;
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
            .at(span.clone(), format!("templates cannot name the answer of the step `{value}`"))
            .with_hint(format!(
                "letters, digits and `_` make a name: add `name = \"{example}\"` to the step"
            ));
    } else if !seen.insert(value) {
        problems
            .at(span.clone(), format!("two steps are named `{value}`"))
            .with_hint("give one of them a `name` of its own; they may have the same role");
    }
}

/// The role of a step, if it has one, and who is asked.
fn who<'a>(
    node: &Node<'a, '_>,
    refining: &Refining<'a>,
    problems: &mut Problems<'_>,
) -> Option<(Option<String>, At<&'a str>)> {
    match (node.text("role"), node.text("model")) {
        (Some(_), Some(model)) => {
            problems
                .at(model.span, "a step has either `role` or `model`")
                .with_hint("who fills the role is said under [roles]");
            None
        }
        (Some(role), None) => {
            let filler = refining.roles.fill(&role, problems)?;
            Some((Some(role.value.to_owned()), filler))
        }
        (None, Some(model)) => {
            if node.text("name").is_none() {
                problems
                    .at(model.span.clone(), "a step with a `model` needs a `name`")
                    .with_hint("add `name = \"checker\"`: what later steps call its answer");
            }
            let role = super::roles::role(&model).map(|role| role.value.to_owned());
            Some((role, refining.roles.who(model, problems)?))
        }
        (None, None) => {
            problems
                .at(node.span.clone(), "the step has neither `role` nor `model`")
                .with_hint("write `role = \"solver\"`, and who fills it under [roles]");
            None
        }
    }
}

/// Finds steps that are named like a field of the cases: templates could mean either.
pub(super) fn check_fields(
    targets: &[Node<'_, '_>],
    fields: &BTreeSet<String>,
    problems: &mut Problems<'_>,
) {
    let steps = targets.iter().flat_map(|target| target.tables("chain"));
    for name in steps.filter_map(|step| name(&step)) {
        if fields.contains(name.value) {
            problems
                .at(
                    name.span,
                    format!("the step `{}` is named like a field of the cases", name.value),
                )
                .with_hint("give the step another `name`");
        }
    }
}
