//! `[[check]]`.

use super::tree::Node;
use super::{Placed, Target, compile};
use crate::problem::{Problems, suggest};
use crate::template::{Template, fields};
use bakeoff_check::{Check, Kind};
use bakeoff_core::TargetName;
use minijinja::Value as Fields;
use std::collections::BTreeSet;
use std::ops::Range;

/// A check as written: its value may depend on the case.
#[derive(Debug)]
pub struct CheckSpec {
    /// Its name in results.
    pub id: String,
    /// Only for these targets; all when empty.
    pub targets: Vec<TargetName>,
    negate: bool,
    required: bool,
    weight: f64,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// The same for every case.
    Fixed(Kind),
    /// To be filled in with the case's fields.
    Templated { word: Word, value: Template, ignore_case: bool },
}

/// The kinds whose value is a template.
#[derive(Debug, Clone, Copy)]
enum Word {
    Contains,
    Equals,
    Regex,
}

impl Word {
    fn kind(self, value: String, ignore_case: bool) -> Result<Kind, String> {
        match self {
            // It would be in every answer.
            Word::Contains | Word::Regex if value.is_empty() => {
                Err("the value is empty".to_owned())
            }
            Word::Contains => Ok(Kind::Contains { value, ignore_case }),
            Word::Equals => Ok(Kind::Equals { value, ignore_case }),
            Word::Regex => Kind::regex(&value, ignore_case).map_err(|error| error.to_string()),
        }
    }
}

impl CheckSpec {
    /// Whether it judges that target.
    pub fn applies_to(&self, target: &TargetName) -> bool {
        self.targets.is_empty() || self.targets.contains(target)
    }

    /// The check for one case; the error is for people.
    pub fn for_case(&self, fields: &Fields) -> Result<Check, String> {
        let kind = match &self.rule {
            Rule::Fixed(kind) => kind.clone(),
            Rule::Templated { word, value, ignore_case } => {
                word.kind(value.render(fields)?, *ignore_case)?
            }
        };
        Ok(Check {
            id: self.id.clone(),
            kind,
            negate: self.negate,
            required: self.required,
            weight: self.weight,
        })
    }
}

/// Reads all checks, and finds targets that nothing would judge.
pub(super) fn read(
    root: &Node<'_, '_>,
    targets: &[Target],
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Vec<CheckSpec> {
    let mut ids = BTreeSet::new();
    let nodes = root.tables("check");
    let all = root.tables("target");
    let known: Vec<&str> = all.iter().filter_map(|node| Some(node.text("name")?.value)).collect();
    let checks: Vec<CheckSpec> = nodes
        .iter()
        .filter_map(|node| {
            let kind = node.text("kind")?;
            let id = match node.text("id") {
                Some(id) if !ids.insert(id.value.to_owned()) => {
                    problems.at(id.span, format!("two checks have the id `{}`", id.value));
                    return None;
                }
                Some(id) => id.value.to_owned(),
                None => free_id(kind.value, &mut ids),
            };
            let check = CheckSpec {
                id,
                targets: limited_to(node, &known, problems),
                negate: node.boolean("negate").unwrap_or(false),
                required: node.boolean("required").unwrap_or(true),
                weight: node.number("weight").unwrap_or(1.0),
                rule: rule(kind.value, node, templates, problems)?,
            };
            if let Rule::Fixed(Kind::ExitCode { .. }) = check.rule {
                needs_programs(&check, kind.span, targets, problems);
            }
            Some(check)
        })
        .collect();
    let complete = checks.len() == nodes.len();
    for target in targets {
        let named =
            |node: &Node<'_, '_>| node.text("name").is_some_and(|name| target.name == name.value);
        let Some(node) = root.tables("target").into_iter().find(named) else { continue };
        if complete
            && !target.is_program()
            && !checks.iter().any(|check| check.applies_to(&target.name))
        {
            problems
                .at(node.span, format!("nothing checks the answers of `{}`", target.name))
                .with_hint(
                    "add a [[check]] such as `kind = \"contains\"`, `value = \"{{ expected }}\"`",
                );
        }
    }
    checks
}

/// `contains`, then `contains-2`, …
fn free_id(kind: &str, ids: &mut BTreeSet<String>) -> String {
    let mut id = kind.to_owned();
    let mut number = 1;
    while !ids.insert(id.clone()) {
        number += 1;
        id = format!("{kind}-{number}");
    }
    id
}

fn limited_to(node: &Node<'_, '_>, known: &[&str], problems: &mut Problems<'_>) -> Vec<TargetName> {
    let names = node.texts("targets").unwrap_or_default();
    for name in &names {
        if !known.contains(&name.value) {
            problems.at(name.span.clone(), format!("there is no target `{}`", name.value)).hint =
                suggest(name.value, known.iter().copied());
        }
    }
    names.into_iter().map(|name| name.value.into()).collect()
}

fn rule(
    kind: &str,
    node: &Node<'_, '_>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Option<Rule> {
    let word = match kind {
        "contains" => Word::Contains,
        "equals" => Word::Equals,
        "regex" => Word::Regex,
        "is_json" => return Some(Rule::Fixed(Kind::IsJson)),
        "exit_code" => {
            let code = i32::try_from(node.integer("value").unwrap_or(0)).ok()?;
            return Some(Rule::Fixed(Kind::ExitCode { code }));
        }
        // Unknown kinds have been reported already.
        _ => return None,
    };
    let ignore_case = node.boolean("ignore_case").unwrap_or(false);
    let text = node.text("value")?;
    let span = text.span.clone();
    let value = compile(text, templates, problems)?;
    if !value.variables().is_empty() {
        return Some(Rule::Templated { word, value, ignore_case });
    }
    // Without variables the check is the same for every case, and its mistakes show now.
    let fixed = value
        .render(&fields(&serde_json::Map::new()))
        .and_then(|value| word.kind(value, ignore_case));
    match fixed {
        Ok(kind) => Some(Rule::Fixed(kind)),
        Err(message) => {
            problems.at(span, message);
            None
        }
    }
}

fn needs_programs(
    check: &CheckSpec,
    span: Range<usize>,
    targets: &[Target],
    problems: &mut Problems<'_>,
) {
    let model =
        targets.iter().find(|target| !target.is_program() && check.applies_to(&target.name));
    if let Some(model) = model {
        problems
            .at(span, format!("`exit_code` is for programs; `{}` is a model", model.name))
            .with_hint("limit the check with `targets = [\"…\"]`");
    }
}
