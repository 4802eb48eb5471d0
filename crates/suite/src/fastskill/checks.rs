//! Reading of the checks of a FastSkill project (`checks.toml`).

use crate::problem::{Problem, Problems, suggest};
use crate::spec::{Field, Section, ValueType, optional, required};
use crate::tree::{self, Node, SourceText};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use toml::de::DeTable;

const INVALID: &str = "EVAL_CHECKS_INVALID";

/// Check kinds of FastSkill.
const KINDS: [(&str, &Section); 4] = [
    ("trigger_expectation", &TRIGGER),
    ("command_contains", &COMMAND),
    ("file_exists", &FILE),
    ("max_command_count", &COUNT),
];

const NAME: Field = required("name", ValueType::Text, "Check kind");
const REQUIRED: Field = optional(
    "required",
    ValueType::Boolean,
    "Whether the trial fails with this check [default: true]",
);

const TRIGGER: Section = Section::new(
    "Skill was used",
    &[
        NAME,
        REQUIRED,
        required("pattern", ValueType::Text, "Text in the trace that shows the use of the skill"),
        optional("expected", ValueType::Boolean, "Whether the skill must be used [default: true]"),
    ],
);

const COMMAND: Section = Section::new(
    "Command was run",
    &[NAME, REQUIRED, required("pattern", ValueType::Text, "Text that a command must contain")],
);

const FILE: Section = Section::new(
    "File exists after the trial",
    &[NAME, REQUIRED, required("path", ValueType::Text, "Path in the workspace")],
);

const COUNT: Section = Section::new(
    "Number of commands is limited",
    &[
        NAME,
        REQUIRED,
        required(
            "limit",
            ValueType::Integer { min: 0, max: 1_000_000_000 },
            "Maximum number of commands",
        ),
    ],
);

/// Checks of a project.
#[derive(Debug, Default)]
pub(super) struct ProjectChecks(Vec<ProjectCheck>);

/// Check in the form of a case check.
#[derive(Debug)]
struct ProjectCheck {
    name: String,
    table: Map<String, Value>,
}

impl ProjectChecks {
    /// Returns their number.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the checks of a case.
    ///
    /// If the project has a `trigger_expectation`, cases that should not trigger the skill are not checked for
    /// its commands and files.
    pub(super) fn of_case(&self, should_trigger: bool) -> Value {
        let checks_trigger = self.0.iter().any(|check| check.name == "trigger_expectation");
        let applies = |check: &&ProjectCheck| {
            should_trigger
                || !checks_trigger
                || !matches!(check.name.as_str(), "command_contains" | "file_exists")
        };
        let table = |check: &ProjectCheck| {
            let mut table = check.table.clone();
            if check.name == "trigger_expectation" {
                let is_expected = table.get("expected") != Some(&Value::Bool(false));
                table.insert("expected".to_owned(), (is_expected && should_trigger).into());
            }
            Value::Object(table)
        };
        self.0.iter().filter(applies).map(table).collect()
    }
}

/// Reads the file and reports its problems at their positions in it.
pub(super) fn read(
    folder: &Path,
    file: SourceText<'_>,
    problems: &mut Problems<'_>,
) -> ProjectChecks {
    let path = folder.join(file.value);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            let problem =
                problems.at(file.span, format!("{}: cannot read the checks: {error}", file.value));
            problem.code = Some(INVALID);
            problem.hint = Some("`checks` is relative to the project file".to_owned());
            return ProjectChecks::default();
        }
    };
    let mut found = Problems::new(&path, &text);
    let (table, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        found.at(error.span().unwrap_or(0..0), format!("not TOML: {}", error.message()));
    }
    let checks =
        if errors.is_empty() { read_checks(table.get_ref(), &mut found) } else { Vec::new() };
    let coded = |problem: Problem| Problem { code: Some(INVALID), ..problem };
    problems.extend(found.into_sorted().into_iter().map(coded));
    ProjectChecks(checks)
}

fn read_checks(table: &DeTable<'_>, problems: &mut Problems<'_>) -> Vec<ProjectCheck> {
    let root = Node::new(table, 0..0);
    for (key, value) in table {
        let is_list = value
            .get_ref()
            .as_array()
            .is_some_and(|items| items.iter().all(|item| item.get_ref().is_table()));
        if key.get_ref() != "check" || !is_list {
            problems
                .at(key.span(), format!("`{}` is not a list of checks", key.get_ref()))
                .with_hint("write each check as a [[check]] table");
        }
    }
    let mut ids = BTreeSet::new();
    root.tables("check").iter().filter_map(|node| read_check(node, &mut ids, problems)).collect()
}

fn read_check(
    node: &Node<'_, '_>,
    ids: &mut BTreeSet<String>,
    problems: &mut Problems<'_>,
) -> Option<ProjectCheck> {
    let Some(name) = node.text("name") else {
        problems
            .at(node.span.clone(), "the check has no `name`")
            .with_hint("add `name`: check kind");
        return None;
    };
    let Some((_, section)) = KINDS.iter().find(|(known, _)| *known == name.value) else {
        problems.at(name.span, format!("unknown check `{}`", name.value)).hint =
            suggest(name.value, KINDS.iter().map(|(known, _)| *known));
        return None;
    };
    let about = format!("the check `{}`", name.value);
    tree::validate(node.entries(), node.span.clone(), section, &about, problems);
    let mut table = node.to_json();
    table.remove("name");
    table.insert("kind".to_owned(), name.value.into());
    // Patterns and paths of FastSkill are not templates.
    for key in ["pattern", "path"] {
        if let Some(text) = node.text(key).filter(|text| text.value.contains('{')) {
            let quoted = format!("{{{{ {} }}}}", Value::from(text.value));
            table.insert(key.to_owned(), quoted.into());
        }
    }
    table.insert("id".to_owned(), crate::checks::unused_id(name.value, ids).into());
    Some(ProjectCheck { name: name.value.to_owned(), table })
}
