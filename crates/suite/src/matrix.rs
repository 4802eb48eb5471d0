//! `[matrix]`: targets for all combinations of prompts and models.

use super::target_defaults::insert;
use super::tree::{Node, SourceText};
use crate::problem::Problems;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Template of a prompt file.
struct PromptFile<'a> {
    /// File name without extension, or the whole path if another file has the same name.
    name: String,
    /// Entry of the list.
    entry: SourceText<'a>,
    template: String,
}

/// Adds the targets of `[matrix]` to those of the suite.
pub(super) fn add_targets(root: &mut DeTable<'_>, folder: &Path, problems: &mut Problems<'_>) {
    let targets = targets(&Node::new(root, 0..0), folder, problems);
    if targets.is_empty() {
        return;
    }
    let first = targets[0].span();
    match root.get_mut("target").map(Spanned::get_mut) {
        Some(DeValue::Array(list)) => targets.into_iter().for_each(|target| list.push(target)),
        // The validation has reported another type.
        Some(_) => {}
        None => {
            let list: DeArray<'_> = targets.into_iter().collect();
            insert(root, "target", Spanned::new(first, DeValue::Array(list)));
        }
    }
}

fn targets(
    root: &Node<'_, '_>,
    folder: &Path,
    problems: &mut Problems<'_>,
) -> Vec<Spanned<DeValue<'static>>> {
    let Some(matrix) = root.table("matrix") else { return Vec::new() };
    let has_default = |keys: &[&str]| {
        let defaults = root.table("target_defaults");
        defaults.is_some_and(|defaults| keys.iter().any(|key| defaults.get(key).is_some()))
    };
    let models = matrix.texts("models").unwrap_or_default();
    let mut is_complete = true;
    if matrix.get("prompts").is_none() && !has_default(&["prompt"]) {
        problems
            .at(matrix.span.clone(), "[matrix] has no `prompts`")
            .with_hint("add `prompts = [\"prompt.txt\"]`, or `prompt` to [target_defaults]");
        is_complete = false;
    }
    let kind_keys = ["model", "command", "agent", "url"];
    if matrix.get("models").is_none() && !has_default(&kind_keys) {
        problems
            .at(matrix.span.clone(), "[matrix] has no `models`")
            .with_hint("add `models = [\"provider/model\"]`, or `model` to [target_defaults]");
        is_complete = false;
    }
    // The validation has reported another type.
    is_complete &= matrix.get("models").is_none() || !models.is_empty();
    let prompts = prompt_files(matrix.texts("prompts").unwrap_or_default(), folder, problems);
    if !is_complete {
        return Vec::new();
    }
    match (prompts.as_slice(), models.as_slice()) {
        ([], models) if matrix.get("prompts").is_none() => {
            models.iter().map(|model| target(None, Some(model))).collect()
        }
        (prompts, []) => prompts.iter().map(|prompt| target(Some(prompt), None)).collect(),
        (prompts, models) => prompts
            .iter()
            .flat_map(|prompt| models.iter().map(|model| target(Some(prompt), Some(model))))
            .collect(),
    }
}

/// Reads the prompt files, and reports those that cannot be read.
fn prompt_files<'a>(
    entries: Vec<SourceText<'a>>,
    folder: &Path,
    problems: &mut Problems<'_>,
) -> Vec<PromptFile<'a>> {
    let stem =
        |path: &str| Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stems: Vec<Option<String>> = entries.iter().map(|entry| stem(entry.value)).collect();
    let mut files = Vec::new();
    for (entry, stem) in entries.into_iter().zip(&stems) {
        let is_unique = stems.iter().filter(|other| *other == stem).count() == 1;
        let name = stem.clone().filter(|_| is_unique).unwrap_or_else(|| entry.value.to_owned());
        match std::fs::read_to_string(folder.join(entry.value)) {
            Ok(text) => {
                // Editors end a file with a line break.
                let template = text.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
                files.push(PromptFile { name, entry, template: template.to_owned() });
            }
            Err(error) => {
                problems
                    .at(entry.span, format!("{}: cannot read the prompt: {error}", entry.value))
                    .with_hint("`prompts` are files relative to the suite file");
            }
        }
    }
    files
}

/// Creates the target of a combination, at the position of its model or prompt.
fn target(
    prompt: Option<&PromptFile<'_>>,
    model: Option<&SourceText<'_>>,
) -> Spanned<DeValue<'static>> {
    let text = |value: &str, span| Spanned::new(span, DeValue::String(value.to_owned().into()));
    let parts = prompt.map(|prompt| prompt.name.as_str()).into_iter();
    let name: Vec<&str> = parts.chain(model.map(|model| model.value)).collect();
    let entry = model.or(prompt.map(|prompt| &prompt.entry));
    let span = entry.map_or(0..0, |entry| entry.span.clone());
    let mut table = DeTable::new();
    insert(&mut table, "name", text(&name.join(" × "), span.clone()));
    if let Some(prompt) = prompt {
        insert(&mut table, "prompt", text(&prompt.template, prompt.entry.span.clone()));
    }
    if let Some(model) = model {
        insert(&mut table, "model", text(model.value, model.span.clone()));
    }
    Spanned::new(span, DeValue::Table(table))
}
