//! `checks.toml`.

use crate::problem::{Problem, Problems, suggest};
use crate::spec::{Field, Section, Shape, optional, required};
use crate::tree::{self, At, Node};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use toml::de::DeTable;

const INVALID: &str = "EVAL_CHECKS_INVALID";

/// Checks that FastSkill has.
const NAMES: [(&str, &Section); 4] = [
    ("trigger_expectation", &TRIGGER),
    ("command_contains", &COMMAND),
    ("file_exists", &FILE),
    ("max_command_count", &COUNT),
];

const NAME: Field = required("name", Shape::Text, "What it looks at.");
const REQUIRED: Field =
    optional("required", Shape::Boolean, "Whether the trial depends on it; true when absent.");

const TRIGGER: Section = Section::new(
    "Whether the skill was used.",
    &[
        NAME,
        REQUIRED,
        required("pattern", Shape::Text, "What is seen when it is."),
        optional("expected", Shape::Boolean, "Whether it is to be seen at all; true when absent."),
    ],
);

const COMMAND: Section = Section::new(
    "A command was run.",
    &[NAME, REQUIRED, required("pattern", Shape::Text, "What a command must contain.")],
);

const FILE: Section = Section::new(
    "A file was left.",
    &[NAME, REQUIRED, required("path", Shape::Text, "Its path in the workspace.")],
);

const COUNT: Section = Section::new(
    "Few commands were run.",
    &[
        NAME,
        REQUIRED,
        required("limit", Shape::Integer { least: 0, most: 1_000_000_000 }, "The most."),
    ],
);

/// The checks of a project.
#[derive(Debug, Default)]
pub(super) struct Checks(Vec<Rule>);

/// A check, as a check of a case.
#[derive(Debug)]
struct Rule {
    name: String,
    table: Map<String, Value>,
}

impl Checks {
    /// The checks of a case.
    ///
    /// Where `trigger_expectation` tells whether the skill was used, a case that should not trigger it
    /// is asked neither for the skill's commands nor for its files.
    pub(super) fn of_case(&self, should_trigger: bool) -> Value {
        let tells = self.0.iter().any(|rule| rule.name == "trigger_expectation");
        let is_due = |rule: &&Rule| {
            should_trigger
                || !tells
                || !matches!(rule.name.as_str(), "command_contains" | "file_exists")
        };
        let table = |rule: &Rule| {
            let mut table = rule.table.clone();
            if rule.name == "trigger_expectation" {
                let is_wanted = table.get("expected") != Some(&Value::Bool(false));
                table.insert("expected".to_owned(), (is_wanted && should_trigger).into());
            }
            Value::Object(table)
        };
        self.0.iter().filter(is_due).map(table).collect()
    }
}

/// Reads the file. What is wrong with it is added to the problems, in its own places.
pub(super) fn read(folder: &Path, file: At<&str>, problems: &mut Problems<'_>) -> Checks {
    let path = folder.join(file.value);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            let problem =
                problems.at(file.span, format!("{}: cannot read the checks: {error}", file.value));
            problem.code = Some(INVALID);
            problem.hint = Some("`checks` is relative to the project file".to_owned());
            return Checks::default();
        }
    };
    let mut found = Problems::new(&path, &text);
    let (table, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        found.at(error.span().unwrap_or(0..0), format!("not TOML: {}", error.message()));
    }
    let rules = if errors.is_empty() { rules(table.get_ref(), &mut found) } else { Vec::new() };
    let coded = |problem: Problem| Problem { code: Some(INVALID), ..problem };
    problems.extend(found.into_sorted().into_iter().map(coded));
    Checks(rules)
}

fn rules(table: &DeTable<'_>, problems: &mut Problems<'_>) -> Vec<Rule> {
    let root = Node::new(table, 0..0);
    for (key, value) in table {
        let is_list = value
            .get_ref()
            .as_array()
            .is_some_and(|items| items.iter().all(|item| item.get_ref().is_table()));
        if key.get_ref() != "check" || !is_list {
            problems
                .at(key.span(), format!("`{}` is no list of checks", key.get_ref()))
                .with_hint("write each check as a [[check]] table");
        }
    }
    let mut ids = BTreeSet::new();
    root.tables("check").iter().filter_map(|node| rule(node, &mut ids, problems)).collect()
}

fn rule(
    node: &Node<'_, '_>,
    ids: &mut BTreeSet<String>,
    problems: &mut Problems<'_>,
) -> Option<Rule> {
    let Some(name) = node.text("name") else {
        problems
            .at(node.span.clone(), "the check has no `name`")
            .with_hint("add `name`: what it looks at");
        return None;
    };
    let Some((_, section)) = NAMES.iter().find(|(known, _)| *known == name.value) else {
        problems.at(name.span, format!("unknown check `{}`", name.value)).hint =
            suggest(name.value, NAMES.iter().map(|(known, _)| *known));
        return None;
    };
    let about = format!("the check `{}`", name.value);
    tree::validate(node.entries(), node.span.clone(), section, &about, problems);
    let mut table = node.to_json();
    table.remove("name");
    table.insert("kind".to_owned(), name.value.into());
    // What is searched for is no template.
    for key in ["pattern", "path"] {
        if let Some(text) = node.text(key).filter(|text| text.value.contains('{')) {
            let quoted = format!("{{{{ {} }}}}", Value::from(text.value));
            table.insert(key.to_owned(), quoted.into());
        }
    }
    table.insert("id".to_owned(), crate::checks::free_id(name.value, ids).into());
    Some(Rule { name: name.value.to_owned(), table })
}
