//! Checks, of the suite and of single cases.

use super::form::{Wrong, wrong_with};
use super::programs::{beside, find_program};
use super::targets::Target;
use super::tree::Node;
use super::variables::{Placed, TEMPLATE_HINT};
use super::written::Written;
use crate::case::Case;
use crate::problem::{Problems, suggest};
use bakeoff_check::{Check, CheckKind, KindInfo, PythonSource};
use bakeoff_core::TargetName;
use bakeoff_llm::Environment;
use minijinja::Value as Fields;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The interpreter of `python` checks.
pub const PYTHON_PROGRAM: &str = "python3";

/// A check as written: its parameters may depend on the case.
#[derive(Debug)]
pub struct CheckSpec {
    /// Its name in results.
    pub id: String,
    /// Only for these targets; all when empty.
    pub targets: Vec<TargetName>,
    /// Only for cases with one of these tags; all when empty.
    pub tags: Vec<String>,
    /// The model that judges, as written, when one does.
    pub judge: Option<String>,
    negate: bool,
    required: bool,
    weight: f64,
    kind: &'static KindInfo,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// The same for every case.
    Fixed(CheckKind),
    /// To be filled in with the case's fields.
    Templated(Vec<(String, Written)>),
}

impl CheckSpec {
    /// Whether it judges that target.
    pub fn applies_to(&self, target: &TargetName) -> bool {
        self.targets.is_empty() || self.targets.contains(target)
    }

    /// Whether it judges answers to cases with these tags.
    pub fn applies_to_tags(&self, tags: &[String]) -> bool {
        self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag))
    }

    /// How often it asks its judge about an answer.
    pub fn judge_calls(&self) -> u64 {
        match (&self.judge, self.kind.name) {
            (None, _) => 0,
            (Some(_), "pairwise") => 2,
            (Some(_), _) => 1,
        }
    }

    /// The check for one case; the error is for people.
    pub fn for_case(&self, fields: &Fields) -> Result<Check, String> {
        let kind = match &self.rule {
            Rule::Fixed(kind) => kind.clone(),
            Rule::Templated(parameters) => {
                let filled =
                    |(key, value): &(String, Written)| Ok((key.clone(), value.render(fields)?));
                let parameters = parameters.iter().map(filled).collect::<Result<_, String>>()?;
                CheckKind::build(self.kind.name, &parameters).map_err(|error| error.to_string())?
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

    fn templates(&self) -> &[(String, Written)] {
        match &self.rule {
            Rule::Fixed(_) => &[],
            Rule::Templated(parameters) => parameters,
        }
    }
}

/// Reads checks, those of the suite and those of cases.
#[derive(Debug)]
pub(crate) struct CheckReader {
    /// Where the files lie that checks name.
    folder: PathBuf,
    /// Names of all targets in the file.
    known: Vec<String>,
    /// Those that are wanted and are models.
    models: Vec<TargetName>,
    /// Those of them that work with tools, and so have a workspace.
    agents: Vec<TargetName>,
}

impl CheckReader {
    pub(super) fn new(folder: &Path, root: &Node<'_, '_>, targets: &[Target]) -> CheckReader {
        let name = |node: &Node<'_, '_>| Some(node.text("name")?.value.to_owned());
        let models = targets.iter().filter(|target| !target.is_program());
        let agents = targets.iter().filter(|target| target.agent().is_some());
        CheckReader {
            folder: folder.to_owned(),
            known: root.tables("target").iter().filter_map(name).collect(),
            models: models.map(|target| target.name.clone()).collect(),
            agents: agents.map(|target| target.name.clone()).collect(),
        }
    }

    /// For targets that are all programs.
    pub(super) fn of_targets(folder: &Path, known: Vec<String>) -> CheckReader {
        CheckReader { folder: folder.to_owned(), known, models: Vec::new(), agents: Vec::new() }
    }

    /// Reads the checks of the suite. Those with problems are left out.
    pub(super) fn of_suite(
        &self,
        root: &Node<'_, '_>,
        environment: Environment<'_>,
        templates: &mut Vec<Placed>,
        problems: &mut Problems<'_>,
    ) -> Vec<CheckSpec> {
        let mut ids = BTreeSet::new();
        let mut checks = Vec::new();
        for node in root.tables("check") {
            let table = node.to_json();
            // What is wrong with its form has been reported already.
            if !wrong_with(&table).is_empty() {
                continue;
            }
            match self.read(&table, &mut ids) {
                Ok(check) => {
                    for wrong in self.look_outside(&check, environment) {
                        node.report(wrong, problems);
                    }
                    for (key, written) in check.templates() {
                        let span = node.get(key).map_or(node.span.clone(), |value| value.span());
                        written.visit(&mut |template| {
                            let template = template.clone();
                            templates.push(Placed {
                                template,
                                span: span.clone(),
                                has_prompt: false,
                                step: None,
                            });
                        });
                    }
                    checks.push(check);
                }
                Err(wrong) => node.report(wrong, problems),
            }
        }
        checks
    }

    /// Reads the checks that a case brings along. `ids` has those of the suite.
    pub(crate) fn of_case(
        &self,
        case: &Case,
        mut ids: BTreeSet<String>,
    ) -> Result<Vec<CheckSpec>, Vec<Wrong>> {
        let Some(own) = &case.checks else { return Ok(Vec::new()) };
        let mut checks = Vec::new();
        let mut found = Vec::new();
        for (number, table) in (1..).zip(&own.tables) {
            let mut wrong = wrong_with(table);
            if wrong.is_empty() {
                match self.read(table, &mut ids) {
                    Ok(check) => checks.push(check),
                    Err(one) => wrong.push(one),
                }
            }
            // Only the case's place is known, so it must be said which of them is meant.
            let which =
                if own.tables.len() > 1 { format!("check {number}: ") } else { String::new() };
            found.extend(
                wrong
                    .into_iter()
                    .map(|wrong| Wrong { message: format!("{which}{}", wrong.message), ..wrong }),
            );
        }
        if found.is_empty() { Ok(checks) } else { Err(found) }
    }

    /// Reads a check whose form is right.
    fn read(
        &self,
        table: &Map<String, Value>,
        ids: &mut BTreeSet<String>,
    ) -> Result<CheckSpec, Wrong> {
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        let kind = text("kind").and_then(KindInfo::find);
        let kind = kind.ok_or_else(|| Wrong::at("kind", "unknown kind of check"))?;
        let id = match text("id") {
            Some(id) if !ids.insert(id.to_owned()) => {
                return Err(Wrong::at("id", format!("two checks have the id `{id}`")));
            }
            Some(id) => id.to_owned(),
            None => free_id(kind.name, ids),
        };
        let check = CheckSpec {
            id,
            targets: self.targets(&texts(table, "targets"))?,
            tags: texts(table, "tags"),
            judge: text("model").map(str::to_owned),
            negate: table.get("negate").and_then(Value::as_bool).unwrap_or(false),
            required: table.get("required").and_then(Value::as_bool).unwrap_or(true),
            weight: table.get("weight").and_then(Value::as_f64).unwrap_or(1.0),
            kind,
            rule: self.rule(kind, table)?,
        };
        let wants_code = kind.name == "exit_code";
        let has_it = |model: &TargetName| !wants_code && self.agents.contains(model);
        let model = self.models.iter().find(|model| check.applies_to(model) && !has_it(model));
        match model {
            Some(model) if kind.for_programs => {
                let whom = if wants_code { "programs" } else { "programs and models with tools" };
                let message = format!("`{}` is for {whom}; `{model}` is a model", kind.name);
                Err(Wrong::at("kind", message)
                    .with_hint("limit the check with `targets = [\"…\"]`"))
            }
            _ => Ok(check),
        }
    }

    fn targets(&self, names: &[String]) -> Result<Vec<TargetName>, Wrong> {
        let known = || self.known.iter().map(String::as_str);
        if let Some(name) = names.iter().find(|name| !self.known.contains(name)) {
            let wrong = Wrong::at("targets", format!("there is no target `{name}`"));
            return Err(Wrong { hint: suggest(name, known().collect::<Vec<_>>()), ..wrong });
        }
        Ok(names.iter().map(|name| name.as_str().into()).collect())
    }

    fn rule(&self, kind: &'static KindInfo, table: &Map<String, Value>) -> Result<Rule, Wrong> {
        let mut parameters = Vec::new();
        for parameter in kind.all_parameters() {
            let Some(value) = table.get(parameter.name) else { continue };
            let written = Written::read(value, parameter.kind)
                .map_err(|message| Wrong::at(parameter.name, message).with_hint(TEMPLATE_HINT))?;
            parameters.push((parameter.name.to_owned(), written));
        }
        self.name_files(kind, &mut parameters)?;
        let is_fixed = parameters.iter().all(|(_, written)| written.is_fixed());
        // What does not depend on the case shows its mistakes now.
        let filled =
            |(key, written): &(String, Written)| (key.clone(), written.without_templates());
        match CheckKind::build(kind.name, &parameters.iter().map(filled).collect()) {
            Ok(kind) if is_fixed => Ok(Rule::Fixed(kind)),
            Err(error)
                if parameters
                    .iter()
                    .all(|(key, written)| key != error.parameter || written.is_fixed()) =>
            {
                let hint = (error.parameter == "path" && kind.name == "json_path").then(|| {
                    "such as `$.cities[0].name`, with `$` for the whole output".to_owned()
                });
                Err(Wrong { hint, ..Wrong::at(error.parameter, error.message) })
            }
            _ => Ok(Rule::Templated(parameters)),
        }
    }

    /// Puts the contents of a schema's file in its place, and full paths where files are named.
    fn name_files(
        &self,
        kind: &KindInfo,
        parameters: &mut Vec<(String, Written)>,
    ) -> Result<(), Wrong> {
        let of = |name: &str| {
            let written = parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            written.map(Written::without_templates)
        };
        let (name, value) = match kind.name {
            "json_schema" | "contains_json" => match (of("file"), of("schema")) {
                (Some(_), Some(_)) => {
                    let message = "the check has either `schema` or `file`, not both";
                    return Err(Wrong::at("file", message));
                }
                (Some(Value::String(file)), None) => ("schema", self.schema(&file)?),
                _ => return Ok(()),
            },
            "program" => match of("command") {
                Some(Value::Array(words)) => {
                    let word = |word: &Value| {
                        let word = word.as_str().unwrap_or_default();
                        Value::from(beside(&self.folder, word).to_string_lossy())
                    };
                    ("command", words.iter().map(word).collect())
                }
                _ => return Ok(()),
            },
            "python" => match of("function") {
                Some(Value::String(function)) => match function.rsplit_once(':') {
                    Some((file, name)) => {
                        let file = beside(&self.folder, file);
                        ("function", format!("{}:{name}", file.to_string_lossy()).into())
                    }
                    None => return Ok(()),
                },
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        parameters.retain(|(key, _)| key != name && key != "file");
        parameters.push((name.to_owned(), Written::Fixed(value)));
        Ok(())
    }

    fn schema(&self, file: &str) -> Result<Value, Wrong> {
        let bytes = std::fs::read(self.folder.join(file)).map_err(|error| {
            Wrong::at("file", format!("{file}: cannot read the schema: {error}"))
                .with_hint("`file` is relative to the suite file")
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Wrong::at("file", format!("{file}: not JSON: {error}")))
    }

    /// What a check needs that is not in the suite: programs and files.
    pub(super) fn look_outside(
        &self,
        check: &CheckSpec,
        environment: Environment<'_>,
    ) -> Vec<Wrong> {
        let missing =
            |key, program: &OsStr| {
                let reason = find_program(program, environment).err()?;
                let message = format!("cannot run `{}`: {reason}", program.to_string_lossy());
                Some(Wrong::at(key, message).with_hint(
                    "name a program on the PATH, or an executable file beside the suite",
                ))
            };
        match &check.rule {
            Rule::Fixed(CheckKind::Program(program)) => {
                let word = program.command.first();
                word.and_then(|word| missing("command", OsStr::new(word))).into_iter().collect()
            }
            Rule::Fixed(CheckKind::Python(python)) => {
                let interpreter = missing("kind", OsStr::new(PYTHON_PROGRAM))
                    .map(|wrong| wrong.with_hint("install Python 3"));
                let function = match &python.source {
                    PythonSource::Expression(_) => None,
                    PythonSource::Function { file, name } => self.lacks_function(file, name),
                };
                interpreter.into_iter().chain(function).collect()
            }
            _ => Vec::new(),
        }
    }

    /// That a file does not define a function; whether it truly does, only Python knows.
    fn lacks_function(&self, file: &str, name: &str) -> Option<Wrong> {
        let folder = std::path::absolute(self.folder.join(".")).unwrap_or_default();
        let shown = Path::new(file).strip_prefix(folder).unwrap_or(Path::new(file)).display();
        match std::fs::read_to_string(file) {
            Err(error) => Some(
                Wrong::at("function", format!("cannot read `{shown}`: {error}"))
                    .with_hint("the file of `function` is relative to the suite file"),
            ),
            Ok(text) => {
                let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
                let occurs = text.split(|letter| !is_word(letter)).any(|word| word == name);
                (!occurs).then(|| {
                    Wrong::at("function", format!("`{shown}` has no function `{name}`"))
                        .with_hint(format!("define it: `def {name}(output, case, attempt):`"))
                })
            }
        }
    }
}

fn texts(table: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = table.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// `contains`, then `contains-2`, …
pub(super) fn free_id(kind: &str, ids: &mut BTreeSet<String>) -> String {
    let mut id = kind.to_owned();
    let mut number = 1;
    while !ids.insert(id.clone()) {
        number += 1;
        id = format!("{kind}-{number}");
    }
    id
}
