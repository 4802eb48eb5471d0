//! Targets of a suite as branches of a race.

use super::models;
use super::roles::Roles;
use super::spec;
use super::suite::{LoadContext, folder, parse, read, suite_file};
use super::target_defaults::{self, insert};
use super::targets::{self, Target, TargetKind};
use super::tree::{self, Node};
use crate::env_file::EnvFile;
use crate::matrix;
use crate::problem::{Problems, SuiteError, suggest};
use crate::template::{RenderError, Template, fields, with_texts};
use bakeoff_llm::Environment;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Variable of the templates of a race: its prompt.
const PROMPT: &str = "prompt";

/// Template of a target without `prompt`.
const DEFAULT_PROMPT: &str = "{{ prompt }}";

/// Loads targets for a race, in the order of their names. They are models, and their templates may use
/// `{{ prompt }}`. The rest of the file needs only valid keys and values. Makes no calls.
///
/// # Errors
///
/// Returns all problems of the file and of these targets.
pub fn race_targets(
    path: &Path,
    names: &[String],
    environment: Environment<'_>,
) -> Result<Vec<Target>, SuiteError> {
    let path = suite_file(path);
    let text = read(&path)?;
    let env_file = EnvFile::read(folder(&path), environment)?;
    let environment = &|name: &str| environment(name).or_else(|| env_file.get(name));
    let mut problems = Problems::new(&path, &text);
    let Some(tree) = parse(&text, &mut problems) else {
        return Err(problems.into());
    };
    tree::validate_present(tree.get_ref(), &spec::SUITE_FILE, "the suite", &mut problems);
    let mut table = tree.into_inner();
    matrix::add_targets(&mut table, folder(&path), &mut problems);
    target_defaults::apply(&mut table);
    add_default_prompts(&mut table);
    let root = Node::new(&table, 0..0);
    let context = LoadContext {
        path: &path,
        text: &text,
        roles_file: None,
        only: names,
        roles: &Roles::read(&root, false, false),
        loads_combinations: false,
        environment,
        judges_only: false,
    };
    let mut models = models::read_named(&root, &mut problems);
    models::add_simulated(&root, &mut models);
    report_unknown_names(&root, names, &mut problems);
    let mut templates = Vec::new();
    let mut loaded = targets::read(&root, &models, &context, &mut templates, &mut problems);
    for usage in &templates {
        for variable in usage.template.variables().iter().filter(|name| *name != PROMPT) {
            problems
                .at(usage.span.clone(), format!("a race has no field `{variable}`"))
                .with_hint("templates of a race can use {{ prompt }} only");
        }
    }
    for target in &loaded {
        report_unsuitable(&root, target, &mut problems);
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    loaded.sort_by_key(|target| names.iter().position(|name| target.name == name.as_str()));
    Ok(loaded)
}

/// Renders a template of a race.
///
/// # Errors
///
/// The template cannot be rendered with this prompt.
pub fn render_for_race(template: &Template, prompt: &str) -> Result<String, RenderError> {
    template.render(&with_texts(&fields(&serde_json::Map::new()), [(PROMPT, prompt)]))
}

/// Lets targets without `prompt` send the prompt of the race unchanged.
fn add_default_prompts(root: &mut DeTable<'_>) {
    let targets = root.get_mut("target").map(Spanned::get_mut);
    let Some(DeValue::Array(targets)) = targets else { return };
    for target in targets.iter_mut() {
        let span = target.span();
        if let DeValue::Table(target) = target.get_mut()
            && !["prompt", "chain"].iter().any(|key| target.contains_key(*key))
        {
            insert(target, PROMPT, Spanned::new(span, DeValue::String(DEFAULT_PROMPT.into())));
        }
    }
}

fn report_unknown_names(root: &Node<'_, '_>, names: &[String], problems: &mut Problems<'_>) {
    let targets = root.tables("target");
    let known: Vec<&str> =
        targets.iter().filter_map(|node| Some(node.text("name")?.value)).collect();
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let problem = problems.at(0..0, format!("there is no target `{name}`"));
        problem.hint = suggest(name, known.iter().copied());
    }
}

fn report_unsuitable(root: &Node<'_, '_>, target: &Target, problems: &mut Problems<'_>) {
    let named =
        |node: &&Node<'_, '_>| node.text("name").is_some_and(|name| target.name == name.value);
    let nodes = root.tables("target");
    let Some(node) = nodes.iter().find(named) else { return };
    if !matches!(target.kind, TargetKind::Model(_)) {
        problems
            .at(node.span.clone(), format!("target `{}` is not a model", target.name))
            .with_hint("a race sends its prompt to models; use `bakeoff run` for other targets");
        return;
    }
    if !target.prompt.variables().contains(PROMPT)
        && let Some(prompt) = node.get(PROMPT)
    {
        problems
            .at(prompt.span(), format!("target `{}` does not use the prompt", target.name))
            .with_hint("add {{ prompt }} to its template");
    }
}
