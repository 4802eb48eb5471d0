//! Reading of checks, of the suite and of single cases.

use super::check_fields::{self, CheckProblem, single_checks};
use super::programs::{absolute_if_file, find_program};
use super::spec::MEMBER_KEYS;
use super::targets::Target;
use super::template_value::TemplateValue;
use super::tree::{Node, SourceText};
use super::variables::{TEMPLATE_HINT, TemplateUse};
use crate::case::Case;
use crate::case_error::CaseError;
use crate::problem::{Problems, suggest};
use bakeoff_check::{Check, CheckKind, KindInfo, ParameterType, PythonSource};
use bakeoff_core::TargetName;
use bakeoff_llm::Environment;
use minijinja::Value as Fields;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Interpreter of `python` checks.
pub const PYTHON_PROGRAM: &str = "python3";

/// Check whose parameters may depend on the case.
#[derive(Debug)]
pub struct CheckSpec {
    /// Name in results.
    pub id: String,
    /// Targets to check; empty for all.
    pub targets: Vec<TargetName>,
    /// Tags of the cases to check, of which a case needs one; empty for all cases.
    pub tags: Vec<String>,
    /// Judge models by their names in the suite file, with the number of their calls per output without
    /// re-asking.
    pub judge_calls: Vec<(String, u64)>,
    examines_exit_code: bool,
    negate: bool,
    required: bool,
    weight: f64,
    min_score: Option<f64>,
    kind: &'static KindInfo,
    parameters: CheckParameters,
}

#[derive(Debug)]
enum CheckParameters {
    /// Equal for all cases.
    Fixed(CheckKind),
    /// Templates to be rendered with the fields of the case.
    Templated(Vec<(String, TemplateValue)>),
}

impl CheckSpec {
    /// Returns whether the check applies to a target.
    pub fn applies_to(&self, target: &TargetName) -> bool {
        self.targets.is_empty() || self.targets.contains(target)
    }

    /// Returns whether the check applies to cases with these tags.
    pub fn applies_to_tags(&self, tags: &[String]) -> bool {
        self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag))
    }

    /// Returns whether the check tests the exit code of a program.
    pub fn examines_exit_code(&self) -> bool {
        self.examines_exit_code
    }

    /// Renders the check for a case.
    ///
    /// # Errors
    ///
    /// When a template cannot be rendered, or a rendered parameter is invalid.
    pub fn for_case(&self, fields: &Fields) -> Result<Check, CaseError> {
        let kind = match &self.parameters {
            CheckParameters::Fixed(kind) => kind.clone(),
            CheckParameters::Templated(parameters) => {
                let render = |(key, value): &(String, TemplateValue)| {
                    Ok((key.clone(), value.render(fields)?))
                };
                let parameters = parameters.iter().map(render).collect::<Result<_, CaseError>>()?;
                CheckKind::build(self.kind.name, &parameters)?
            }
        };
        Ok(Check {
            id: self.id.clone(),
            kind,
            negate: self.negate,
            required: self.required,
            weight: self.weight,
            min_score: self.min_score,
        })
    }

    fn templates(&self) -> &[(String, TemplateValue)] {
        match &self.parameters {
            CheckParameters::Fixed(_) => &[],
            CheckParameters::Templated(parameters) => parameters,
        }
    }
}

/// Reader of the checks of the suite and of cases.
#[derive(Debug)]
pub(crate) struct CheckReader {
    /// Folder of the suite, which file names in checks are relative to.
    folder: PathBuf,
    /// Names of all targets in the file.
    known: Vec<String>,
    /// Names of the selected targets that are not programs.
    models: Vec<TargetName>,
    /// Names of the selected models with tools, which have a workspace.
    agents: Vec<TargetName>,
    /// Judge of checks that name none.
    judge: Option<String>,
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
            judge: default_judge(root).map(|judge| judge.value.to_owned()),
        }
    }

    /// Creates a reader for targets that are all programs.
    pub(super) fn of_targets(folder: &Path, known: Vec<String>) -> CheckReader {
        CheckReader {
            folder: folder.to_owned(),
            known,
            models: Vec::new(),
            agents: Vec::new(),
            judge: None,
        }
    }

    /// Reads the checks of the suite and skips those with problems.
    pub(super) fn of_suite(
        &self,
        root: &Node<'_, '_>,
        environment: Environment<'_>,
        templates: &mut Vec<TemplateUse>,
        problems: &mut Problems<'_>,
    ) -> Vec<CheckSpec> {
        let mut ids = BTreeSet::new();
        let mut checks = Vec::new();
        for node in root.tables("check") {
            let table = node.to_json();
            // The validation has reported these problems.
            if !check_fields::problems(&table).is_empty() {
                continue;
            }
            match self.read(&table, &mut ids) {
                Ok(check) => {
                    for problem in self.check_environment(&check, environment) {
                        node.report(problem, problems);
                    }
                    for (key, value) in check.templates() {
                        let span = node.get(key).map_or(node.span.clone(), |value| value.span());
                        value.visit(&mut |template| {
                            let template = template.clone();
                            templates.push(TemplateUse {
                                template,
                                span: span.clone(),
                                has_prompt: false,
                                roles: BTreeMap::new(),
                                step: None,
                            });
                        });
                    }
                    checks.push(check);
                }
                Err(problem) => node.report(problem, problems),
            }
        }
        checks
    }

    /// Reads the checks of a case. `ids` are the check ids of the suite.
    pub(crate) fn of_case(
        &self,
        case: &Case,
        mut ids: BTreeSet<String>,
    ) -> Result<Vec<CheckSpec>, Vec<CheckProblem>> {
        let Some(case_checks) = &case.checks else { return Ok(Vec::new()) };
        let mut checks = Vec::new();
        let mut found = Vec::new();
        for (number, table) in (1..).zip(&case_checks.tables) {
            let mut problems = check_fields::problems(table);
            if problems.is_empty() {
                match self.read(table, &mut ids) {
                    Ok(check) => checks.push(check),
                    Err(problem) => problems.push(problem),
                }
            }
            // Only the position of the case is known, so the message has the number of the check.
            let prefix = if case_checks.tables.len() > 1 {
                format!("check {number}: ")
            } else {
                String::new()
            };
            found.extend(problems.into_iter().map(|problem| CheckProblem {
                message: format!("{prefix}{}", problem.message),
                ..problem
            }));
        }
        if found.is_empty() { Ok(checks) } else { Err(found) }
    }

    /// Reads a check with valid keys and values.
    fn read(
        &self,
        table: &Map<String, Value>,
        ids: &mut BTreeSet<String>,
    ) -> Result<CheckSpec, CheckProblem> {
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        let kind = kind_of(table).ok_or_else(|| CheckProblem::at("kind", "unknown check kind"))?;
        let table = &self.with_judge(table)?;
        let id = match text("id") {
            Some(id) if !ids.insert(id.to_owned()) => {
                return Err(CheckProblem::at("id", format!("duplicate check id `{id}`")));
            }
            Some(id) => id.to_owned(),
            None => unused_id(kind.name, ids),
        };
        let singles = single_checks(table);
        let kinds = || singles.iter().filter_map(|check| kind_of(check));
        let check = CheckSpec {
            id,
            targets: self.targets(&texts(table, "targets"))?,
            tags: texts(table, "tags"),
            judge_calls: singles.iter().filter_map(|check| judge_call(check)).collect(),
            examines_exit_code: kinds().any(|kind| kind.name == "exit_code"),
            negate: table.get("negate").and_then(Value::as_bool).unwrap_or(false),
            required: table.get("required").and_then(Value::as_bool).unwrap_or(true),
            weight: table.get("weight").and_then(Value::as_f64).unwrap_or(1.0),
            min_score: table.get("min_score").and_then(Value::as_f64),
            kind,
            parameters: self.parameters(kind, table)?,
        };
        match kinds().find_map(|kind| self.unsupported(kind, &check)) {
            Some(problem) => Err(problem),
            None => Ok(check),
        }
    }

    /// Adds the default judge to a check that needs one, or to such checks in a group.
    fn with_judge(&self, table: &Map<String, Value>) -> Result<Map<String, Value>, CheckProblem> {
        let mut table = table.clone();
        if let Some(Value::Array(members)) = table.get_mut("checks") {
            for member in members.iter_mut().filter_map(Value::as_object_mut) {
                *member = self.with_judge(member).map_err(|problem| CheckProblem {
                    key: Some("checks".to_owned()),
                    ..problem
                })?;
            }
        }
        let needs_judge = kind_of(&table).is_some_and(has_judge) && !table.contains_key("model");
        if needs_judge {
            let judge = self.judge.as_deref().ok_or_else(|| {
                CheckProblem::at("kind", "the check has no `model` to judge")
                    .with_hint("add `model` to the check, or `judge` to [suite]")
            })?;
            table.insert("model".to_owned(), judge.into());
        }
        Ok(table)
    }

    /// Returns the problem of a kind for programs that applies to a model.
    fn unsupported(&self, kind: &KindInfo, check: &CheckSpec) -> Option<CheckProblem> {
        let needs_exit_code = kind.name == "exit_code";
        let is_supported = |model: &TargetName| !needs_exit_code && self.agents.contains(model);
        let mut models = self.models.iter().filter(|_| kind.for_programs);
        let model = models.find(|model| check.applies_to(model) && !is_supported(model))?;
        let supported = if needs_exit_code { "programs" } else { "programs and models with tools" };
        let message = format!("`{}` is for {supported}; `{model}` is a model", kind.name);
        let hint = "limit the check with `targets = [\"…\"]`";
        Some(CheckProblem::at("kind", message).with_hint(hint))
    }

    fn targets(&self, names: &[String]) -> Result<Vec<TargetName>, CheckProblem> {
        let known = || self.known.iter().map(String::as_str);
        if let Some(name) = names.iter().find(|name| !self.known.contains(name)) {
            let problem = CheckProblem::at("targets", format!("there is no target `{name}`"));
            return Err(CheckProblem {
                hint: suggest(name, known().collect::<Vec<_>>()),
                ..problem
            });
        }
        Ok(names.iter().map(|name| name.as_str().into()).collect())
    }

    fn parameters(
        &self,
        kind: &'static KindInfo,
        table: &Map<String, Value>,
    ) -> Result<CheckParameters, CheckProblem> {
        let parameters = self.templates(kind, table)?;
        let is_fixed = parameters.iter().all(|(_, value)| value.is_fixed());
        // Problems of parameters that do not depend on the case are reported now.
        let placeholder =
            |(key, value): &(String, TemplateValue)| (key.clone(), value.without_templates());
        match CheckKind::build(kind.name, &parameters.iter().map(placeholder).collect()) {
            Ok(kind) if is_fixed => Ok(CheckParameters::Fixed(kind)),
            Err(error)
                if parameters
                    .iter()
                    .all(|(key, value)| key != error.parameter || value.is_fixed()) =>
            {
                let hint = (error.parameter == "path" && kind.name == "json_path")
                    .then(|| "for example `$.cities[0].name`; `$` is the whole output".to_owned());
                Err(CheckProblem { hint, ..CheckProblem::at(error.parameter, error.message) })
            }
            _ => Ok(CheckParameters::Templated(parameters)),
        }
    }

    /// Compiles the templates of a check's parameters, and those of the checks in a group.
    fn templates(
        &self,
        kind: &'static KindInfo,
        table: &Map<String, Value>,
    ) -> Result<Vec<(String, TemplateValue)>, CheckProblem> {
        let mut parameters = Vec::new();
        for parameter in kind.all_parameters() {
            let Some(value) = table.get(parameter.name) else { continue };
            let value = match (parameter.kind, value) {
                (ParameterType::Checks, Value::Array(members)) => {
                    let members = members.iter().filter_map(Value::as_object);
                    TemplateValue::List(
                        members
                            .map(|member| self.member_templates(parameter.name, member))
                            .collect::<Result<_, _>>()?,
                    )
                }
                _ => TemplateValue::read(value, parameter.kind).map_err(|message| {
                    CheckProblem::at(parameter.name, message).with_hint(TEMPLATE_HINT)
                })?,
            };
            parameters.push((parameter.name.to_owned(), value));
        }
        self.resolve_files(kind, &mut parameters)?;
        Ok(parameters)
    }

    /// Compiles a check of a group. Problems are at the key of the group.
    fn member_templates(
        &self,
        group: &str,
        table: &Map<String, Value>,
    ) -> Result<TemplateValue, CheckProblem> {
        let at_group =
            |problem: CheckProblem| CheckProblem { key: Some(group.to_owned()), ..problem };
        let kind = kind_of(table).ok_or_else(|| CheckProblem::at(group, "unknown check kind"))?;
        let mut parameters = self.templates(kind, table).map_err(at_group)?;
        for key in MEMBER_KEYS {
            let value = table.get(key).map(|value| TemplateValue::Fixed(value.clone()));
            parameters.extend(value.map(|value| (key.to_owned(), value)));
        }
        Ok(TemplateValue::Table(parameters))
    }

    /// Replaces a schema file with its content and relative file names with absolute paths.
    fn resolve_files(
        &self,
        kind: &KindInfo,
        parameters: &mut Vec<(String, TemplateValue)>,
    ) -> Result<(), CheckProblem> {
        let of = |name: &str| {
            let value = parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            value.map(TemplateValue::without_templates)
        };
        let (name, value) = match kind.name {
            "json_schema" | "contains_json" => match (of("file"), of("schema")) {
                (Some(_), Some(_)) => {
                    let message = "the check has either `schema` or `file`, not both";
                    return Err(CheckProblem::at("file", message));
                }
                (Some(Value::String(file)), None) => ("schema", self.schema(&file)?),
                _ => return Ok(()),
            },
            "program" => match of("command") {
                Some(Value::Array(words)) => {
                    let word = |word: &Value| {
                        let word = word.as_str().unwrap_or_default();
                        Value::from(absolute_if_file(&self.folder, word).to_string_lossy())
                    };
                    ("command", words.iter().map(word).collect())
                }
                _ => return Ok(()),
            },
            "python" => match of("function") {
                Some(Value::String(function)) => match function.rsplit_once(':') {
                    Some((file, name)) => {
                        let file = absolute_if_file(&self.folder, file);
                        ("function", format!("{}:{name}", file.to_string_lossy()).into())
                    }
                    None => return Ok(()),
                },
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        parameters.retain(|(key, _)| key != name && key != "file");
        parameters.push((name.to_owned(), TemplateValue::Fixed(value)));
        Ok(())
    }

    fn schema(&self, file: &str) -> Result<Value, CheckProblem> {
        let bytes = std::fs::read(self.folder.join(file)).map_err(|error| {
            CheckProblem::at("file", format!("{file}: cannot read the schema: {error}"))
                .with_hint("`file` is relative to the suite file")
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| CheckProblem::at("file", format!("{file}: not JSON: {error}")))
    }

    /// Reports missing programs and files that a check needs.
    pub(super) fn check_environment(
        &self,
        check: &CheckSpec,
        environment: Environment<'_>,
    ) -> Vec<CheckProblem> {
        match &check.parameters {
            CheckParameters::Fixed(kind) => self.kind_environment(kind, environment),
            CheckParameters::Templated(_) => Vec::new(),
        }
    }

    fn kind_environment(
        &self,
        kind: &CheckKind,
        environment: Environment<'_>,
    ) -> Vec<CheckProblem> {
        let missing = |key, program: &OsStr| {
            let reason = find_program(program, environment).err()?;
            let message = format!("cannot run `{}`: {reason}", program.to_string_lossy());
            Some(CheckProblem::at(key, message).with_hint(
                "use a program on the PATH, or an executable file next to the suite file",
            ))
        };
        match kind {
            CheckKind::Program(program) => {
                let word = program.command.first();
                word.and_then(|word| missing("command", OsStr::new(word))).into_iter().collect()
            }
            CheckKind::Python(python) => {
                let interpreter = missing("kind", OsStr::new(PYTHON_PROGRAM))
                    .map(|problem| problem.with_hint("install Python 3"));
                let function = match &python.source {
                    PythonSource::Expression(_) => None,
                    PythonSource::Function { file, name } => self.check_function(file, name),
                };
                interpreter.into_iter().chain(function).collect()
            }
            CheckKind::Any(group) => {
                let members = group.members.iter();
                let problems =
                    members.flat_map(|member| self.kind_environment(&member.kind, environment));
                let at_group = |problem| CheckProblem { key: Some("checks".to_owned()), ..problem };
                problems.map(at_group).collect()
            }
            CheckKind::Local(_) | CheckKind::Rubric(_) | CheckKind::Pairwise(_) => Vec::new(),
        }
    }

    /// Reports a file that does not contain the name of a function. Only Python could tell whether the
    /// file defines it.
    fn check_function(&self, file: &str, name: &str) -> Option<CheckProblem> {
        let folder = std::path::absolute(self.folder.join(".")).unwrap_or_default();
        let shown = Path::new(file).strip_prefix(folder).unwrap_or(Path::new(file)).display();
        match std::fs::read_to_string(file) {
            Err(error) => Some(
                CheckProblem::at("function", format!("cannot read `{shown}`: {error}"))
                    .with_hint("the file of `function` is relative to the suite file"),
            ),
            Ok(text) => {
                let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
                let occurs = text.split(|letter| !is_word(letter)).any(|word| word == name);
                (!occurs).then(|| {
                    CheckProblem::at("function", format!("`{shown}` has no function `{name}`"))
                        .with_hint(format!("define it: `def {name}(output, case, attempt):`"))
                })
            }
        }
    }
}

fn kind_of(table: &Map<String, Value>) -> Option<&'static KindInfo> {
    KindInfo::find(table.get("kind")?.as_str()?)
}

/// Returns the default judge of a suite.
pub(super) fn default_judge<'a>(root: &Node<'a, '_>) -> Option<SourceText<'a>> {
    root.table("suite")?.text("judge")
}

/// Returns whether a judge decides checks of a kind.
fn has_judge(kind: &KindInfo) -> bool {
    kind.all_parameters().any(|parameter| parameter.name == "model")
}

/// Returns the judge of a check and the number of its calls per output.
fn judge_call(table: &Map<String, Value>) -> Option<(String, u64)> {
    let judge = table.get("model")?.as_str()?.to_owned();
    // A pairwise check asks in both orders.
    let calls = if kind_of(table)?.name == "pairwise" { 2 } else { 1 };
    Some((judge, calls))
}

fn texts(table: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = table.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Returns an unused id derived from the check kind: `contains`, then `contains-2`, …
pub(super) fn unused_id(kind: &str, ids: &mut BTreeSet<String>) -> String {
    let mut id = kind.to_owned();
    let mut number = 1;
    while !ids.insert(id.clone()) {
        number += 1;
        id = format!("{kind}-{number}");
    }
    id
}
